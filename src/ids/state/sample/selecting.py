"""Which of the kept rows a drawing takes: the extremes whole, the rest by priority."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.kernels.highest import highest, highest_by_stratum, likely_highest

__all__ = ["Held", "extremes", "sampled", "sampled_by_stratum"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


class Held(NamedTuple):
    """The rows taken whole, and bounds on y of the players that are not."""

    mask: Mask
    low: float
    high: float


def extremes(value: Floats, plays: Mask, size: int) -> Held:
    """The ``size`` players of largest and those of smallest y; of equal ones the newer.

    Never by priority: rows that stay behind in a tie would be those of low priority, and be drawn
    too seldom. With a size of 0 nothing is held, and the bounds are the smallest and largest y.
    """
    mask = np.zeros(len(value), np.bool_)
    players = np.flatnonzero(plays)
    playing = value[players]
    if len(playing) <= size:
        mask[players] = True
        return Held(mask, 0.0, 0.0)
    if not size:
        return Held(mask, float(playing.min()), float(playing.max()))
    top, bottom = np.empty((2, len(playing)), np.bool_)
    highest(playing, size, top)
    highest(-playing, size, bottom)
    mask[players] = top | bottom
    low, high = float(playing[bottom].max()), float(playing[top].min())
    # crossed bounds: so few players that each is among the largest or the smallest
    return Held(mask, low, high) if low <= high else Held(mask, 0.0, 0.0)


def sampled(priority: Floats, held: Mask, size: int) -> Places:
    """The ``size`` rows of highest priority that are not held, the highest first."""
    near = np.empty(len(priority), np.bool_)
    likely_highest(priority, size + int(np.count_nonzero(held)), near)
    rows = np.flatnonzero(near & ~held)[::-1]  # of equal ones the newer first
    return rows[np.argsort(-priority[rows], kind="stable")[:size]]


def sampled_by_stratum(
    priority: Floats, stratum: npt.NDArray[np.int32], strata: int, held: Mask, size: int
) -> Places:
    """``sampled`` of each stratum, stratum after stratum."""
    rest = np.flatnonzero(~held)
    codes = stratum[rest]
    keep = np.empty(len(rest), np.bool_)
    room = np.bincount(codes, minlength=strata)
    highest_by_stratum(priority[rest], codes, size, room, keep)
    rows = rest[keep]
    order: Places = rows[np.lexsort((-priority[rows], stratum[rows]))]
    return order
