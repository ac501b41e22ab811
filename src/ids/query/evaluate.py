"""A segment of rows in window order evaluated: every item of a plan at every emit, as columns.

Whole tables and the tasks of a count window on Spark share it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.errors import StateError
from ids.games import Attributed, Estimates
from ids.kernels import Rows
from ids.model import MAX_ROWS, ColumnData, ItemKind, Kind, Scale, Table
from ids.plan import PlannedItem, SelectPlan
from ids.predicates import Measure
from ids.query.approximate import Population, estimate_items, with_moments
from ids.query.emits import CountEmits, EmitPlan, Emits, chosen
from ids.query.replay import (
    Answers,
    MeasureJob,
    Progress,
    answer_blocks,
    answer_every_row,
    answer_wide_range,
)
from ids.source import ARROW_TYPES

EMIT_TIME = ARROW_TYPES["TIMESTAMP"]


class Segment(NamedTuple):
    """Rows in window order, and the emits over them.

    atoms     uint32[n]   the atom of each row
    held      bool[a, K]  on which atoms each predicate holds
    measures  the values of each measure; None for COUNT(*)
    scales    one for each measure; None where its values lie too far apart for one
    priority  int64[n]    what samples are drawn by; empty where no item asks for one
    """

    atoms: npt.NDArray[np.uint32]
    held: npt.NDArray[np.bool_]
    measures: Sequence[Measure | None]
    scales: Sequence[Scale | None]
    emits: EmitPlan
    priority: npt.NDArray[np.int64]


def evaluate_segment(
    plan: SelectPlan, segment: Segment, progress: Progress | None = None
) -> Answers:
    """Every item of a plan at every emit."""
    answers = Answers()
    steps = len(plan.measures)
    atoms, held, measures, scales, emits, priority = segment
    exact = with_moments(plan) if plan.sampled else plan
    for number in range(steps):
        tick = None if progress is None else _part(progress, number, steps)
        job, scale = _measure_job(exact, number, segment, tick), scales[number]
        if scale is None:
            answers |= answer_wide_range(job, plan.degrees[number])
        else:
            answers |= answer_every_row(job, scale) or answer_blocks(job, scale)
    if plan.sampled:
        arrived, expired = emits.arrived.view(np.int64), emits.expired.view(np.int64)
        rows = Population(priority, atoms, held, measures, arrived, expired, arrived - expired)
        answers.sampled = estimate_items(plan, rows, answers)
    return answers


def _measure_job(
    plan: SelectPlan, number: int, segment: Segment, progress: Progress | None
) -> MeasureJob:
    """The work on measure ``number`` of a plan."""
    atoms, held, measure = segment.atoms, segment.held, segment.measures[number]
    items = [item for item in plan.items if item.measure == number]
    predicates = sorted({i.predicate for i in items if i.predicate is not None})
    players = None if measure is None else measure.players
    if players is not None:
        atoms = np.where(players, atoms, np.uint32(len(held)))
    rows = Rows(atoms, np.zeros(0) if measure is None else measure.values)
    gaps = players is not None
    return MeasureJob(
        number, items, predicates, held[:, predicates], rows, gaps, segment.emits, progress
    )


def _part(progress: Progress, number: int, steps: int) -> Progress:
    """Progress of one measure as a part of the whole."""
    return lambda done, total: progress(number * total + done, steps * total)


def scale_of(plan: SelectPlan, number: int, measure: Measure | None) -> Scale | None:
    """One scale for a whole measure, so that neither segments nor paths show in the last bits.

    None where the values lie too far apart for one.
    """
    degree = plan.degrees[number]
    if measure is None or degree == 0:
        return Scale(0, 0, 0)
    return Scale.fit_column(measure.values, measure.largest, measure.smallest, degree)


def last_of_each_key(emits: EmitPlan) -> Emits:
    """The last emit of each key, and the one before it where a delta will look back at it."""
    last = np.flatnonzero(np.diff(emits.key, append=-1))
    before = last[emits.continues[last]] - 1
    both = np.union1d(last, before)
    kept = chosen(emits, both)
    return replace(kept, continues=kept.continues & np.isin(both, last))


def refuse_wide_windows(emits: EmitPlan) -> None:
    """A window of more rows than are summed exactly is an error."""
    if isinstance(emits, CountEmits) and emits.window.size <= MAX_ROWS:
        return
    widest = int((emits.arrived - emits.expired).max(initial=0))
    if widest > MAX_ROWS:
        raise StateError(
            f"a window of {widest:,} rows is more than the {MAX_ROWS:,} that are summed exactly; "
            "choose a shorter window"
        )


def output_columns(plan: SelectPlan, emits: EmitPlan, answers: Answers) -> dict[str, pa.Array]:
    """``n``, then the items in the order they were asked."""
    counts = answers.counts
    if counts is None:
        counts = (emits.arrived - emits.expired).view(np.int64)
    columns: dict[str, pa.Array] = {"n": pa.array(counts)}
    for item in plan.items:
        if item.kind is ItemKind.AGGREGATE:
            columns[item.name] = _doubles(*answers.aggregate(item))
        else:
            found = answers.sampled.get(item.name) or answers.attributed(item)
            columns |= item_columns(item, found, emits.continues)
    return columns


@np.errstate(over="ignore", invalid="ignore")
def item_columns(
    item: PlannedItem, found: Attributed | Estimates, continues: npt.NDArray[np.bool_]
) -> dict[str, pa.Array]:
    """An attribution, or its change since one slide before, under the names of its columns.

    ``continues`` says where the emit before stands exactly one slide before. The change from one
    infinity to another is NaN, as on Spark.
    """
    changes = item.kind is ItemKind.DELTA
    parts = {"SHARE": found.share, "LIFT": found.lift}
    value = found.value - _before(found.value, continues) if changes else found.value
    columns = {item.name: _doubles(value, None)}
    columns |= {f"{item.name}_{part.lower()}": _doubles(parts[part], None) for part in item.parts}
    if isinstance(found, Estimates):
        error = found.error + _before(found.error, continues) if changes else found.error
        columns[f"{item.name}_error"] = _doubles(error, None)
        if item.tells_spread:
            columns[f"{item.name}_standard_error"] = _doubles(found.standard_error, None)
        columns[f"{item.name}_mechanism"] = pa.repeat(pa.scalar("sample"), len(error))
    return columns


def _before(
    values: npt.NDArray[np.float64], continues: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """What stood one slide before; 0 where nothing did."""
    before = np.zeros_like(values)
    before[1:] = values[:-1]
    return np.where(continues, before, 0.0)


def _doubles(values: npt.NDArray[np.float64], missing: npt.NDArray[np.bool_] | None) -> pa.Array:
    """A double column; ``missing`` marks the NULLs."""
    if missing is None or not missing.any():
        return pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(values)])
    return pa.array(values, mask=missing)


def to_array(column: ColumnData) -> pa.Array:
    """One column as an Arrow array of its natural type."""
    missing = None if column.valid is None else ~column.valid
    if column.kind is Kind.TEXT:
        codes = pa.array(column.values, mask=missing)
        texts = pa.array(list(column.dictionary if column.dictionary is not None else []), "string")
        return pa.DictionaryArray.from_arrays(codes, texts).cast("string")
    if column.kind is Kind.TIME:
        return pa.array(column.values, mask=missing).cast(EMIT_TIME)
    return pa.array(column.values, mask=missing)


def to_table(table: Table) -> pa.Table:
    """A whole table."""
    return pa.table({name: to_array(column) for name, column in table.columns.items()})
