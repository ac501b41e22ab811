"""SUM, COUNT and AVG."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.games.game import Game, Moments
from ids.games.harmonic import harmonic
from ids.games.operands import let, numbers

__all__ = ["AVG", "COUNT", "SUM", "average_slope"]

Floats = npt.NDArray[np.float64]


def average_slope(count: npt.ArrayLike) -> Floats:
    """λ of AVG: H_{N-1}/(N-1), and 1 for N = 1 (where the deviation is 0).

    >>> (average_slope([3, 4]) * [4, 18]).round(12).tolist()
    [3.0, 11.0]
    """
    n = numbers(count, np.float64)
    others = let(np.maximum(n - 1.0, 1.0))
    return np.where(n > 1, harmonic(others) / others, 1.0)


def _one(moments: Moments) -> tuple[Floats]:
    return (np.ones_like(moments.players),)


def _average_slopes(moments: Moments) -> tuple[Floats]:
    return (average_slope(moments.players),)


SUM = Game("SUM", 1, 1, lambda w: w.total, _one, additive=True, affine=True)
COUNT = Game("COUNT", 0, 0, lambda w: w.players, lambda _: (), affine=True, nulls=0)
AVG = Game("AVG", 1, 1, lambda w: w.mean, _average_slopes, affine=True)
