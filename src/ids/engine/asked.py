"""What is asked of one measure: its rows, its items, its emits."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.engine.rows import Measure
from ids.kernels.replay import Rows
from ids.model.scale import Scale
from ids.plan import PlannedItem, SelectPlan
from ids.state.scaling import fit_column
from ids.window import EmitPlan

__all__ = ["Asked", "Progress", "asked_of", "scale_of"]

Progress = Callable[[int, int], None]


class Asked(NamedTuple):
    """One measure's work.

    number      the measure's place in the plan
    items       what the SELECT asks of it
    predicates  the numbers of their predicates, ascending
    held        bool[a, p]  on which atoms each of these holds
    rows        each row's atom and value; a row that is no player is of atom a, which holds nothing
    gaps        whether there are such rows
    """

    number: int
    items: list[PlannedItem]
    predicates: list[int]
    held: npt.NDArray[np.bool_]
    rows: Rows
    gaps: bool
    emits: EmitPlan
    progress: Progress | None


def asked_of(
    plan: SelectPlan,
    number: int,
    measure: Measure | None,
    atoms: npt.NDArray[np.uint32],
    held: npt.NDArray[np.bool_],
    emits: EmitPlan,
    progress: Progress | None,
) -> Asked:
    """The work on measure ``number`` of a plan."""
    items = [item for item in plan.items if item.measure == number]
    predicates = sorted({i.predicate for i in items if i.predicate is not None})
    players = None if measure is None else measure.players
    if players is not None:
        atoms = np.where(players, atoms, np.uint32(len(held)))
    values = np.zeros(0) if measure is None else measure.values
    return Asked(
        number,
        items,
        predicates,
        held[:, predicates],
        Rows(atoms, values),
        players is not None,
        emits,
        progress,
    )


def scale_of(plan: SelectPlan, number: int, measure: Measure | None) -> Scale | None:
    """One scale for a whole measure, so that neither stretches nor paths show in the last bits.

    None where the values lie too far apart for one.
    """
    degree = plan.degrees[number]
    if measure is None or degree == 0:
        return Scale(0, 0, 0)
    return fit_column(measure.values, measure.largest, measure.smallest, degree)
