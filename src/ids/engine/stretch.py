"""A stretch of rows in window order, answered: shared by whole tables and by tasks on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.engine.answers import Answers
from ids.engine.arrow import doubles
from ids.engine.asked import Progress, asked_of
from ids.engine.dense import answer_dense
from ids.engine.emitting import answer_measure
from ids.engine.moments import with_moments
from ids.engine.rows import Measure
from ids.engine.sampled import Population, estimated
from ids.engine.wide_range import answer_wide_range
from ids.errors import StateError
from ids.estimates import Estimates
from ids.games import Attributed
from ids.model.query import ItemKind
from ids.model.scale import MAX_ROWS, Scale
from ids.plan import PlannedItem, SelectPlan
from ids.window import CountEmits, EmitPlan, Emits, chosen

__all__ = [
    "Stretch",
    "answer",
    "item_columns",
    "last_of_each_key",
    "output_columns",
    "refuse_wide_windows",
]


class Stretch(NamedTuple):
    """Rows in window order, and when the window speaks over them.

    atoms     uint32[n]   the atom of each row
    held      bool[a, K]  on which atoms each predicate holds
    measures  the values of each measure; None for COUNT(*)
    scales    one for each measure; None where its values lie too far apart for one
    priority  int64[n]    what samples are drawn by, where an item asks for one
    """

    atoms: npt.NDArray[np.uint32]
    held: npt.NDArray[np.bool_]
    measures: Sequence[Measure | None]
    scales: Sequence[Scale | None]
    emits: EmitPlan
    priority: npt.NDArray[np.int64] | None = None


def answer(plan: SelectPlan, stretch: Stretch, progress: Progress | None = None) -> Answers:
    """Every item of a plan at every emit."""
    answers = Answers.empty()
    steps = len(plan.measures)
    atoms, held, measures, scales, emits, priority = stretch
    exact = with_moments(plan)
    for number in range(steps):
        tick = None if progress is None else _part(progress, number, steps)
        asked = asked_of(exact, number, measures[number], atoms, held, emits, tick)
        scale = scales[number]
        if scale is None:
            answers |= answer_wide_range(asked, plan.degrees[number])
        else:
            answers |= answer_dense(asked, scale) or answer_measure(asked, scale)
    if plan.sampled:
        assert priority is not None
        arrived, expired = emits.arrived.view(np.int64), emits.expired.view(np.int64)
        rows = Population(priority, atoms, held, measures, arrived, expired, arrived - expired)
        answers.sampled = estimated(plan, rows, answers)
    return answers


def _part(progress: Progress, number: int, steps: int) -> Progress:
    """Progress of one measure as a part of the whole."""
    return lambda done, total: progress(number * total + done, steps * total)


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
            columns[item.name] = doubles(*answers.aggregate(item))
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
    columns = {item.name: doubles(value, None)}
    columns |= {f"{item.name}_{part.lower()}": doubles(parts[part], None) for part in item.parts}
    if isinstance(found, Estimates):
        error = found.error + _before(found.error, continues) if changes else found.error
        columns[f"{item.name}_error"] = doubles(error, None)
        if item.tells_spread:
            columns[f"{item.name}_standard_error"] = doubles(found.standard_error, None)
        columns[f"{item.name}_mechanism"] = pa.repeat(pa.scalar("sample"), len(error))
    return columns


def _before(
    values: npt.NDArray[np.float64], continues: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """What stood one slide before; 0 where nothing did."""
    before = np.zeros_like(values)
    before[1:] = values[:-1]
    return np.where(continues, before, 0.0)
