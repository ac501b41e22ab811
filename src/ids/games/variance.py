"""VAR_POP and VAR_SAMP."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.games.game import Game, Moments
from ids.games.harmonic import harmonic, harmonic_squares
from ids.games.operands import let, numbers

__all__ = ["VAR_POP", "VAR_SAMP", "population_slope", "sample_slope"]

Floats = npt.NDArray[np.float64]


def population_slope(count: npt.ArrayLike) -> Floats:
    """λ of VAR_POP; 0 for N <= 2, where the lift vanishes.

    >>> (population_slope([3, 4]) * [8, 54]).round(12).tolist()
    [3.0, 17.0]
    """
    n = numbers(count, np.float64)
    big = let(np.maximum(n, 3.0))
    spread = harmonic(big) - harmonic_squares(big)
    slope = big * spread / ((big - 1.0) * (big - 2.0)) - 1.0 / (big * (big - 2.0))
    return np.where(n > 2, slope, 0.0)


def sample_slope(count: npt.ArrayLike) -> Floats:
    """λ of VAR_SAMP; 0 for N <= 2.

    >>> (sample_slope([3, 4]) * [4, 9]).round(12).tolist()
    [3.0, 5.0]
    """
    n = numbers(count, np.float64)
    big = let(np.maximum(n, 3.0))
    rest = big - 1.0
    slope = (big * (rest * harmonic(big) - big + 0.5) / (big - 2.0) - 0.5) / (rest * rest)
    return np.where(n > 2, slope, 0.0)


def _population(moments: Moments) -> Floats:
    worth: Floats = moments.central[2] / np.maximum(moments.players, 1.0)
    return worth


def _sample(moments: Moments) -> Floats:
    n = moments.players
    return np.where(n > 1, moments.central[2] / np.maximum(n - 1.0, 1.0), 0.0)


def _second_only(slope: Floats) -> tuple[Floats, Floats]:
    return np.zeros_like(slope), slope


def _population_slopes(moments: Moments) -> tuple[Floats, Floats]:
    return _second_only(population_slope(moments.players))


def _sample_slopes(moments: Moments) -> tuple[Floats, Floats]:
    return _second_only(sample_slope(moments.players))


VAR_POP = Game("VAR_POP", 2, 2, _population, _population_slopes, affine=True)
VAR_SAMP = Game("VAR_SAMP", 2, 2, _sample, _sample_slopes, affine=True, nulls=2)
