"""Moment polynomial games: v(S) = Σ_j c_j(|S|) · Π_d p_d(S), with p_d(S) = Σ_S y**d.

Every such game has a closed form. Put a row i into a random t-subset, average, subtract what any
row would bring, and sum over t: what is left is a polynomial in y_i whose coefficients depend on
the window's power sums and on N alone. ``expand`` finds that polynomial once, by set partitions;
the sums over t are tabulated per N. To add a game, write its terms and register it:

>>> from ids.games.moment import MomentGame, Term
>>> third = MomentGame("MY_M3", (Term(1, 1, (3,)), Term(-3, 2, (1, 2)), Term(2, 3, (1, 1, 1))))
>>> third.degree
3
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from math import comb, factorial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.errors import ScriptError
from ids.games.game import Game, Moments
from ids.model import MAX_DEGREE

Floats = npt.NDArray[np.float64]


class Term(NamedTuple):
    """``factor · |S|**-inverse · Π_{d in degrees} p_d(S)``."""

    factor: float
    inverse: int
    degrees: tuple[int, ...]


class _Monomial(NamedTuple):
    """A piece of the coefficient of y_i**power: weight(inverse, blocks; N) · Π P_d."""

    power: int
    inverse: int
    blocks: int
    sums: tuple[int, ...]


def _partitions(things: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """Every way to split positions into blocks."""
    if not things:
        yield []
        return
    first, rest = things[0], things[1:]
    for size in range(len(rest) + 1):
        for chosen in combinations(rest, size):
            left = tuple(t for t in rest if t not in chosen)
            for others in _partitions(left):
                yield [(first, *chosen), *others]


def _distinct(degrees: Sequence[int]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Σ over distinct rows of Π y**degree, as a polynomial in power sums (Möbius inversion)."""
    for blocks in _partitions(tuple(range(len(degrees)))):
        sign = 1.0
        for block in blocks:
            sign *= (-1.0) ** (len(block) - 1) * factorial(len(block) - 1)
        yield sign, tuple(sum(degrees[i] for i in block) for block in blocks)


def _without_row(sums: tuple[int, ...]) -> Iterator[tuple[float, int, tuple[int, ...]]]:
    """Π (P_d - y**d): the power sums of the other rows, as a polynomial in y."""
    for size in range(len(sums) + 1):
        for taken in combinations(range(len(sums)), size):
            kept = tuple(sorted(s for i, s in enumerate(sums) if i not in taken))
            yield (-1.0) ** size, sum(sums[i] for i in taken), kept


@cache
def _expand(terms: tuple[Term, ...]) -> tuple[tuple[_Monomial, float], ...]:
    """The coefficients of y_i, y_i**2, … in the mean worth of the subsets that contain row i."""
    found: Counter[_Monomial] = Counter()
    for factor, inverse, degrees in terms:
        for size in range(len(degrees) + 1):
            for own in combinations(range(len(degrees)), size):
                power = sum(degrees[i] for i in own)
                rest = tuple(d for i, d in enumerate(degrees) if i not in own)
                for blocks in _partitions(tuple(range(len(rest)))):
                    merged = [sum(rest[i] for i in block) for block in blocks]
                    for sign, sums in _distinct(merged):
                        for part, more, kept in _without_row(sums):
                            key = _Monomial(power + more, inverse, len(blocks), kept)
                            found[key] += factor * sign * part  # type: ignore[assignment]
    return tuple((k, v) for k, v in found.items() if k.power > 0 and v)


@lru_cache(maxsize=2**16)
def _weight(inverse: int, blocks: int, count: int) -> float:
    """Σ_{t=1}^{N-1} t**-inverse · (t-1)_blocks / (N-1)_blocks / (N-t), falling factorials."""
    t = np.arange(1, count, dtype=np.float64)
    terms = t**-inverse / (count - t)
    for b in range(blocks):
        # where N - 1 <= b the numerator vanishes for every t as well
        terms *= (t - 1.0 - b) / max(count - 1.0 - b, 1.0)
    return float(np.sum(terms[blocks:])) if count > blocks + 1 else 0.0


@dataclass(frozen=True, slots=True)
class MomentGame:
    """A moment polynomial game; ``central`` when shifting every value changes nothing.

    A central game is evaluated about the window's mean, where it is numerically at ease.
    """

    name: str
    terms: tuple[Term, ...]
    central: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.degree <= MAX_DEGREE:
            raise ScriptError(
                f"game {self.name!r} needs power sums up to {self.degree}",
                hint=f"degrees 1 to {MAX_DEGREE} are kept",
            )

    @property
    def degree(self) -> int:
        """The highest power sum, D: the state is D + 1 numbers per atom."""
        return max((sum(term.degrees) for term in self.terms), default=0)

    def game(self) -> Game:
        """The closed form, in the one shape of all games."""
        powers = {sum(term.degrees) for term in self.terms}
        if len(powers) != 1:
            raise ScriptError(
                f"game {self.name!r} mixes terms of degree {sorted(powers)}",
                hint="give every term the same total degree",
            )
        return Game(self.name, self.degree, powers.pop(), self._worth, self._slopes)

    def _sums(self, moments: Moments) -> list[Floats]:
        """P_0 … P_D about the mean, or about 0 for a game that is not central."""
        central = list(moments.central)
        if self.central:
            return central
        mean = moments.mean
        return [
            sum((comb(k, i) * mean ** (k - i) * central[i] for i in range(k + 1)), 0.0 * mean)
            for k in range(self.degree + 1)
        ]

    def _worth(self, moments: Moments) -> Floats:
        sums = self._sums(moments)
        size = np.maximum(moments.players, 1.0)
        worth = np.zeros_like(size)
        for factor, inverse, degrees in self.terms:
            product = factor * size ** float(-inverse)
            for d in degrees:
                product = product * sums[d]
            worth = worth + product
        return worth

    def _slopes(self, moments: Moments) -> list[Floats]:
        sums = self._sums(moments)
        counts, where = np.unique(np.asarray(moments.players), return_inverse=True)
        slopes = [np.zeros_like(np.asarray(moments.players)) for _ in range(self.degree)]
        for (power, inverse, blocks, kept), factor in _expand(self.terms):
            weights = np.array([_weight(inverse, blocks, int(n)) for n in counts])
            product = factor * weights[where].reshape(np.shape(moments.players))
            for d in kept:
                product = product * sums[d]
            slopes[power - 1] = slopes[power - 1] + product
        return slopes if self.central else self._about_mean(slopes, moments.mean)

    def _about_mean(self, slopes: list[Floats], mean: Floats) -> list[Floats]:
        """Σ_k slope_k·raw_k, regrouped by central deviations (raw_k = Σ_i C(k,i)·mean**(k-i))."""
        return [
            sum(
                (comb(k, i) * mean ** (k - i) * slopes[k - 1] for k in range(i, self.degree + 1)),
                0.0 * mean,
            )
            for i in range(1, self.degree + 1)
        ]


M3 = MomentGame("M3", (Term(1, 1, (3,)), Term(-3, 2, (1, 2)), Term(2, 3, (1, 1, 1)))).game()
M4 = MomentGame(
    "M4",
    (Term(1, 1, (4,)), Term(-4, 2, (1, 3)), Term(6, 3, (1, 1, 2)), Term(-3, 4, (1, 1, 1, 1))),
).game()
