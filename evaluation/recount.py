"""Attributions of the windows of a stream in whole numbers: prefix sums, then the closed forms.

Enumeration stops at a dozen rows; beyond, the closed forms are the truth (tests hold them to the
enumeration), if nothing is rounded on the way. Here sums are whole numbers, whatever their size,
and the harmonic numbers have 400 bits behind the point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import lcm

import numpy as np
import numpy.typing as npt

__all__ = ["CLOSED", "Recount", "slope", "whole_numbers"]

CLOSED = ("SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP")
_BITS = 400


def whole_numbers(ys: Sequence[float]) -> tuple[int, list[int]]:
    """``scale`` and the values times ``scale``, all of them whole: a double is a fraction."""
    exact = [Fraction(y) for y in ys]
    scale = lcm(*(y.denominator for y in exact))
    return scale, [int(y * scale) for y in exact]


class _Prefix:
    """Σ 1, Σ y and Σ y² of the rows before each row: those of a window are two differences."""

    def __init__(self, whole: list[int], counts: Iterable[bool]) -> None:
        held = [int(each) for each in counts]
        mine = [y if h else 0 for y, h in zip(whole, held, strict=True)]
        self._sums = tuple(
            list(accumulate(column, initial=0)) for column in (held, mine, (y * y for y in mine))
        )

    def between(self, first: int, last: int) -> tuple[int, int, int]:
        m, A, B = (column[last] - column[first] for column in self._sums)
        return m, A, B


class Recount:
    """The exact attributions of any stretch of rows, to some predicates. O(1) a question."""

    def __init__(
        self, values: npt.NDArray[np.float64], holds: Mapping[str, npt.NDArray[np.bool_]]
    ) -> None:
        self._scale, whole = whole_numbers(values.tolist())
        self._window = _Prefix(whole, [True] * len(whole))
        self._predicates = {name: _Prefix(whole, held) for name, held in holds.items()}

    def aggregate(self, game: str, first: int, last: int) -> Fraction:
        """v(W) of the rows from ``first`` up to, not including, ``last``."""
        N, A, B = self._window.between(first, last)
        return _worth(game, N, A, B) / self._unit(game)

    def attribution(self, game: str, predicate: str, first: int, last: int) -> Fraction:
        """The share and the lift of those rows, added."""
        return sum(self.parts(game, predicate, first, last), Fraction(0))

    def parts(self, game: str, predicate: str, first: int, last: int) -> tuple[Fraction, Fraction]:
        """(m/N)·v(W) and λ·dev of those rows."""
        N, A, B = self._window.between(first, last)
        if N == 0:
            return Fraction(0), Fraction(0)
        m, A_P, B_P = self._predicates[predicate].between(first, last)
        if _degree(game) == 2:
            # Σ_P (y − μ)² − (m/N)·Σ_W (y − μ)², multiplied out: nothing is rounded, nothing lost
            deviation = B_P - Fraction(2 * A * A_P, N) + Fraction(2 * m * A * A, N * N)
            deviation -= Fraction(m * B, N)
        else:
            deviation = A_P - Fraction(m * A, N)
        unit = self._unit(game)
        return m * _worth(game, N, A, B) / N / unit, slope(game, N) * deviation / unit

    def _unit(self, game: str) -> int:
        unit: int = self._scale ** _degree(game)
        return unit


def _degree(game: str) -> int:
    return {"COUNT": 0, "SUM": 1, "AVG": 1}.get(game, 2)


def _worth(game: str, N: int, A: int, B: int) -> Fraction:
    if N == 0 or (game == "VAR_SAMP" and N == 1):
        return Fraction(0)
    return {
        "SUM": lambda: Fraction(A),
        "COUNT": lambda: Fraction(N),
        "AVG": lambda: Fraction(A, N),
        "VAR_POP": lambda: Fraction(N * B - A * A, N * N),
        "VAR_SAMP": lambda: Fraction(N * B - A * A, N * (N - 1)),
    }[game]()


@lru_cache(maxsize=64)
def slope(game: str, N: int) -> Fraction:
    """λ of the game at N, to some 400 bits. O(N), remembered."""
    if game == "SUM":
        return Fraction(1)
    if game == "COUNT" or (game != "AVG" and N <= 2):
        return Fraction(0)
    if game == "AVG":
        found = _harmonic(N - 1) / (N - 1) if N > 1 else Fraction(1)
    elif game == "VAR_POP":
        found = N * (_harmonic(N) - _harmonic(N, 2)) / ((N - 1) * (N - 2))
        found -= Fraction(1, N * (N - 2))
    else:
        found = N * ((N - 1) * _harmonic(N) - N + Fraction(1, 2)) / (N - 2) - Fraction(1, 2)
        found /= (N - 1) ** 2
    return Fraction(round(found * (1 << _BITS)), 1 << _BITS)


def _harmonic(n: int, order: int = 1) -> Fraction:
    # Each term is cut off below the last bit, by less than one: n·2⁻⁴⁰⁰ in all.
    return Fraction(sum((1 << _BITS) // k**order for k in range(1, n + 1)), 1 << _BITS)
