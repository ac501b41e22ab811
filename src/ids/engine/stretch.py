"""A stretch of rows in window order, answered: shared by whole tables and by tasks on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.engine.answers import Answers
from ids.engine.arrow import doubles
from ids.engine.asked import Progress, asked_of
from ids.engine.dense import answer_dense
from ids.engine.emitting import answer_measure
from ids.engine.rows import Measure
from ids.errors import StateError
from ids.model.query import ItemKind
from ids.model.scale import MAX_ROWS, Scale
from ids.plan import PlannedItem, SelectPlan
from ids.window import CountEmits, EmitPlan, Emits

__all__ = ["Stretch", "answer", "last_of_each_key", "output_columns", "refuse_wide_windows"]


class Stretch(NamedTuple):
    """Rows in window order, and when the window speaks over them.

    atoms     uint32[n]   the atom of each row
    held      bool[a, K]  on which atoms each predicate holds
    measures  the values of each measure; None for COUNT(*)
    scales    one for each measure
    """

    atoms: npt.NDArray[np.uint32]
    held: npt.NDArray[np.bool_]
    measures: Sequence[Measure | None]
    scales: Sequence[Scale]
    emits: EmitPlan


def answer(plan: SelectPlan, stretch: Stretch, progress: Progress | None = None) -> Answers:
    """Every item of a plan at every emit."""
    answers = Answers.empty()
    steps = len(plan.measures)
    atoms, held, measures, scales, emits = stretch
    for number in range(steps):
        tick = None if progress is None else _part(progress, number, steps)
        asked = asked_of(plan, number, measures[number], scales[number], atoms, held, emits, tick)
        answers |= answer_dense(asked) or answer_measure(asked)
    return answers


def _part(progress: Progress, number: int, steps: int) -> Progress:
    """Progress of one measure as a part of the whole."""
    return lambda done, total: progress(number * total + done, steps * total)


def last_of_each_key(emits: EmitPlan) -> Emits:
    """The last emit of each key, and the one before it where a delta will look back at it."""
    last = np.flatnonzero(np.diff(emits.key, append=-1))
    before = last[emits.continues[last]] - 1
    chosen = np.union1d(last, before)
    return Emits(
        arrived=emits.arrived[chosen],
        expired=emits.expired[chosen],
        instant=None if emits.instant is None else emits.instant[chosen],
        key=emits.key[chosen],
        continues=emits.continues[chosen] & np.isin(chosen, last),
    )


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
        for suffix, values, missing in _item_columns(item, answers, emits):
            columns[item.name + suffix] = doubles(values, missing)
    return columns


def _item_columns(
    item: PlannedItem, answers: Answers, emits: EmitPlan
) -> list[tuple[str, npt.NDArray[np.float64], npt.NDArray[np.bool_] | None]]:
    if item.kind is ItemKind.AGGREGATE:
        worth, missing = answers.aggregate(item)
        return [("", worth, missing)]
    attributed = answers.attributed(item)
    if item.kind is ItemKind.DELTA:
        before = np.zeros_like(attributed.value)
        before[1:] = attributed.value[:-1]
        return [("", attributed.value - np.where(emits.continues, before, 0.0), None)]
    parts = {"SHARE": attributed.share, "LIFT": attributed.lift}
    return [
        ("", attributed.value, None),
        *((f"_{part.lower()}", parts[part], None) for part in item.parts),
    ]
