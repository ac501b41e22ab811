"""Evaluates every item of a plan at every emit, for a segment of rows in window order.

In process, a segment is a whole table. On Spark, it consists of the rows that one task of a count
window processes.
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
from ids.model import MAX_ROWS, ItemKind, Scale
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


class Segment(NamedTuple):
    """The rows of a segment in window order, and their emits.

    atoms     uint32[n]   the atom of each row
    held      bool[a, K]  whether predicate k holds on atom i
    measures  the values of each measure; None for COUNT(*)
    scales    the scale of each measure; None if its values are too far apart for one scale
    priority  int64[n]    each row's priority in samples; empty if no item is APPROXIMATE
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
    """Compute every item of a plan at every emit."""
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
    """Collect the inputs for computing the items over measure ``number``."""
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
    """Return a callback that reports one measure's progress as part of the whole query."""
    return lambda done, total: progress(number * total + done, steps * total)


def scale_of(plan: SelectPlan, number: int, measure: Measure | None) -> Scale | None:
    """Return one scale for the whole measure, so that results do not depend on the segments.

    Returns None if the values are too far apart for one scale.
    """
    degree = plan.degrees[number]
    if measure is None or degree == 0:
        return Scale(0, 0, 0)
    return Scale.fit_column(measure.values, measure.largest, measure.smallest, degree)


def last_of_each_key(emits: EmitPlan) -> Emits:
    """Return each key's last emit and the emit before it, which SHAPLEY_DELTA needs."""
    last = np.flatnonzero(np.diff(emits.key, append=-1))
    before = last[emits.continues[last]] - 1
    both = np.union1d(last, before)
    kept = chosen(emits, both)
    return replace(kept, continues=kept.continues & np.isin(both, last))


def refuse_wide_windows(emits: EmitPlan) -> None:
    """Raise StateError if a window has more rows than can be summed exactly."""
    if isinstance(emits, CountEmits) and emits.window.size <= MAX_ROWS:
        return
    widest = int((emits.arrived - emits.expired).max(initial=0))
    if widest > MAX_ROWS:
        raise StateError(
            f"a window has {widest:,} rows, but at most {MAX_ROWS:,} can be summed exactly; "
            "choose a shorter window"
        )


def output_columns(plan: SelectPlan, emits: EmitPlan, answers: Answers) -> dict[str, pa.Array]:
    """Return the column ``n``, then the items in the order of the SELECT."""
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
    """Return the columns of an attribution, or of its change since the previous slide.

    ``continues`` is true if the previous emit is exactly one slide earlier. The difference of two
    infinities is NaN, as on Spark.
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
    """Return the value one slide earlier, or 0 if there is none."""
    before = np.zeros_like(values)
    before[1:] = values[:-1]
    return np.where(continues, before, 0.0)


def _doubles(values: npt.NDArray[np.float64], missing: npt.NDArray[np.bool_] | None) -> pa.Array:
    """Build a double column; ``missing`` marks the NULLs."""
    if missing is None or not missing.any():
        return pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(values)])
    return pa.array(values, mask=missing)
