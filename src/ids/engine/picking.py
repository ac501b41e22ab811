"""The sums of some rows of the retained window: those that a scan or an index has found."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.engine.core import Core
from ids.kernels.picking import LANES, tally_places

__all__ = ["held_sums", "place_sums"]

Words = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def held_sums(core: Core, measure: int, held: Bools, degree: int) -> Words:
    """The summary of the rows that are marked, int64[1, words], right up to ``degree``.

    Sums are exact, so the window less the unmarked rows is the same to the bit: whichever are
    fewer are looked at.
    """
    count = int(np.count_nonzero(held))
    if 2 * count <= len(held):
        return place_sums(core, measure, np.flatnonzero(held), degree)
    rest = np.flatnonzero(~held)
    return _tallied(core, measure, rest, degree, core.measures[measure].window, -1)


def place_sums(core: Core, measure: int, places: Words, degree: int) -> Words:
    """The summary of the rows at the places, int64[1, words], right up to ``degree``."""
    nothing = np.zeros(core.measures[measure].scale.words, np.int64)
    return _tallied(core, measure, places, degree, nothing, 1)


def _tallied(
    core: Core, measure: int, places: Words, degree: int, start: Words, sign: int
) -> Words:
    """``start`` and ``sign`` times the rows; powers beyond the degree are left out."""
    summaries = core.measures[measure]
    layout, words = summaries.scale.up_to(degree)
    lanes = np.zeros((LANES, summaries.scale.words), np.int64)
    lanes[0, :words] = start[:words]
    digits, players = core.playing(measure)
    tally_places(lanes, places, digits, players, summaries.centre, layout, sign)
    return lanes[:1]
