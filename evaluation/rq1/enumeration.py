"""The definition of the Shapley value, by enumeration of all 2^N coalitions, in whole numbers.

Slow and obvious: it knows the games' definitions and nothing of closed forms. Whatever it says is
exact, so an answer of the engine can be held to it to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt

from evaluation.recount import whole_numbers

__all__ = ["GAMES", "shapley_values", "worth"]

GAMES = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP", "M3", "M4")
_DEGREE = {"SUM": 1, "COUNT": 0, "AVG": 1, "VAR_POP": 2, "VAR_SAMP": 2, "M3": 3, "M4": 4}

Objects = npt.NDArray[np.object_]  # Python's own whole numbers, which do not overflow
Masks = npt.NDArray[np.bool_]


def shapley_values(game: str, ys: Sequence[float]) -> list[Fraction]:
    """Every row's Shapley value. O(N · 2^N); N = 12 takes some 50 ms.

    φ_i = Σ over S without i of |S|!·(N−|S|−1)!/N! · (v(S ∪ i) − v(S))
    """
    N = len(ys)
    scale, whole = whole_numbers(ys)
    coalitions = np.arange(1 << N)
    member = (coalitions[:, None] >> np.arange(N) & 1).astype(bool)
    size = member.sum(axis=1)
    numerator = _numerators(game, member, whole)
    values = [Fraction(0)] * N
    for s in range(N):
        chance = Fraction(factorial(s) * factorial(N - s - 1), factorial(N))
        of_size = coalitions[size == s]
        for i in range(N):
            without = of_size[~member[of_size, i]]
            joined = Fraction(numerator[without | 1 << i].sum(), _denominator(game, s + 1))
            before = Fraction(numerator[without].sum(), _denominator(game, s))
            values[i] += chance * (joined - before)
    return [value / scale ** _DEGREE[game] for value in values]


def worth(game: str, ys: Sequence[float]) -> Fraction:
    """v(W): the aggregate of all rows, 0 of none."""
    if not ys:
        return Fraction(0)
    scale, whole = whole_numbers(ys)
    everyone = np.ones((1, len(ys)), bool)
    numerator: int = _numerators(game, everyone, whole)[0]
    return Fraction(numerator, _denominator(game, len(ys)) * int(scale ** _DEGREE[game]))


def _numerators(game: str, member: Masks, whole: Sequence[int]) -> Objects:
    """The worth of every coalition, times the denominator of its size."""
    y = np.array(whole, dtype=object)
    size: Objects = np.array([int(s) for s in member.sum(axis=1)], dtype=object)
    if game == "COUNT":
        return size
    total: Objects = np.where(member, y, 0).sum(axis=1)
    if game in ("SUM", "AVG"):
        return total
    # Σ (y − mean)^d times s^d: every term is a whole number.
    deviation: Any = np.where(member, size[:, None] * y - total[:, None], 0)
    powers: Objects = (deviation ** _DEGREE[game]).sum(axis=1)
    return powers


def _denominator(game: str, s: int) -> int:
    """What the numerators of coalitions of s rows are to be divided by; of the empty one, 1."""
    found = {
        "SUM": 1,
        "COUNT": 1,
        "AVG": s,
        "VAR_POP": s**2 * s,
        "VAR_SAMP": s**2 * (s - 1),
        "M3": s**3 * s,
        "M4": s**4 * s,
    }[game]
    return max(found, 1)  # v(∅) = 0, and so is the sample variance of one row
