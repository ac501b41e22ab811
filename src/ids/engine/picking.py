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
    summaries = core.measures[measure]
    _, words = summaries.scale.up_to(degree)
    lanes = np.zeros((LANES, summaries.scale.words), np.int64)
    lanes[0, :words] = summaries.window[:words]
    return _tallied(core, measure, np.flatnonzero(~held), degree, lanes, -1)


def place_sums(core: Core, measure: int, places: Words, degree: int) -> Words:
    """The summary of the rows at the places, int64[1, words], right up to ``degree``."""
    lanes = np.zeros((LANES, core.measures[measure].scale.words), np.int64)
    return _tallied(core, measure, places, degree, lanes, 1)


def _tallied(
    core: Core, measure: int, places: Words, degree: int, lanes: Words, sign: int
) -> Words:
    """``sign`` times the rows added to the first lane; powers beyond the degree are left out."""
    summaries = core.measures[measure]
    digits, players = core.playing(measure)
    layout, _ = summaries.scale.up_to(degree)
    tally_places(lanes, places, digits, players, summaries.centre, layout, sign)
    return lanes[:1]
