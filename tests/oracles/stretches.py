"""Attributions of any stretch of a long stream: sums in whole numbers, then the closed forms.

Enumeration stops at a dozen rows; beyond, the closed forms are the truth, if nothing is rounded on
the way. Here sums are whole numbers, whatever their size, and λ has 400 bits behind the point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import lcm

from tests.oracles.shapley import lift_factor

__all__ = ["Stretches"]

_BITS = 400


class Stretches:
    """The exact attributions of any stretch of rows, to some predicates. O(1) a question."""

    def __init__(self, values: Iterable[float], holds: Mapping[str, Iterable[bool]]) -> None:
        exact = [Fraction(float(y)) for y in values]
        self._scale = lcm(*(y.denominator for y in exact))
        ys = [int(y * self._scale) for y in exact]
        self._window = _running(ys, [True] * len(ys))
        self._predicates = {name: _running(ys, held) for name, held in holds.items()}

    def aggregate(self, game: str, first: int, last: int) -> Fraction:
        """v(W) of the rows from ``first`` up to, not including, ``last``."""
        N, A, B = self._between(self._window, first, last)
        if N == 0 or (game == "VAR_SAMP" and N == 1):
            return Fraction(0)
        squares = B - A * A / N
        plain = {"SUM": A, "COUNT": Fraction(N), "AVG": A / N, "VAR_POP": squares / N}
        return plain[game] if game in plain else squares / (N - 1)

    def attribution(self, game: str, predicate: str, first: int, last: int) -> Fraction:
        """The share and the lift of those rows, added."""
        return sum(self.parts(game, predicate, first, last), Fraction(0))

    def parts(self, game: str, predicate: str, first: int, last: int) -> tuple[Fraction, Fraction]:
        """(m/N)·v(W) and λ·dev of those rows."""
        N, A, B = self._between(self._window, first, last)
        if N == 0:
            return Fraction(0), Fraction(0)
        m, A_P, B_P = self._between(self._predicates[predicate], first, last)
        mean = A / N
        deviation = A_P - m * mean
        if game in ("VAR_POP", "VAR_SAMP"):  # Σ_P (y − μ)² − (m/N)·Σ_W (y − μ)²
            deviation = B_P - 2 * mean * A_P + 2 * m * mean * mean - m * B / N
        return m * self.aggregate(game, first, last) / N, _slope(game, N) * deviation

    def _between(
        self, sums: list[list[int]], first: int, last: int
    ) -> tuple[int, Fraction, Fraction]:
        m, A, B = (column[last] - column[first] for column in sums)
        return m, Fraction(A, self._scale), Fraction(B, self._scale**2)


def _running(ys: Sequence[int], held: Iterable[bool]) -> list[list[int]]:
    """Σ 1, Σ y and Σ y² of the held rows before each row: those of a window are two differences."""
    rows = list(zip(ys, held, strict=True))
    powers = ((y**k if h else 0 for y, h in rows) for k in range(3))
    return [list(accumulate(column, initial=0)) for column in powers]


@lru_cache(maxsize=64)
def _slope(game: str, N: int) -> Fraction:
    return Fraction(round(lift_factor(game, N) * (1 << _BITS)), 1 << _BITS)
