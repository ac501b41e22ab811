"""Moment polynomial games: v(S) = Σ_j c_j(|S|) · Π_d p_d(S), with p_d(S) = Σ_S y**d.

Every such game has a closed form. Take the mean worth of the t-subsets that contain row i, subtract
the part that is the same for every row, and sum over t. The result is a polynomial in y_i whose
coefficients depend only on the window's power sums and on N. ``_expand`` derives this polynomial
once per game, from set partitions, and the sums over t are cached per N. To add a game, define its
terms and pass the game to ``register_game``:

>>> from ids.games import MomentGame, Term
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

from ids.errors import ArgumentError
from ids.games.game import GAMES, Game, Moments
from ids.model import MAX_DEGREE

Floats = npt.NDArray[np.float64]


class Term(NamedTuple):
    """A term of a game: ``factor · |S|**-inverse · Π_{d in degrees} p_d(S)``."""

    factor: float
    inverse: int
    degrees: tuple[int, ...]


class _Monomial(NamedTuple):
    """A summand of the coefficient of y_i**power: weight(inverse, blocks; N) · Π P_d."""

    power: int
    inverse: int
    blocks: int
    sums: tuple[int, ...]


def _partitions(things: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """Yield every partition of the positions into blocks."""
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
    """Express Σ Π y**degree over distinct rows in power sums (Möbius inversion)."""
    for blocks in _partitions(tuple(range(len(degrees)))):
        sign = 1.0
        for block in blocks:
            sign *= (-1.0) ** (len(block) - 1) * factorial(len(block) - 1)
        yield sign, tuple(sum(degrees[i] for i in block) for block in blocks)


def _without_row(sums: tuple[int, ...]) -> Iterator[tuple[float, int, tuple[int, ...]]]:
    """Expand Π (P_d - y**d), the power sums without one row, in powers of the row's y."""
    for size in range(len(sums) + 1):
        for taken in combinations(range(len(sums)), size):
            kept = tuple(sorted(s for i, s in enumerate(sums) if i not in taken))
            yield (-1.0) ** size, sum(sums[i] for i in taken), kept


@cache
def _expand(terms: tuple[Term, ...]) -> tuple[tuple[_Monomial, float], ...]:
    """Return the coefficients of y_i, y_i**2, … in the mean worth of subsets containing row i."""
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
    """Return Σ_{t=1}^{N-1} t**-inverse · (t-1)_blocks / (N-1)_blocks / (N-t).

    ``(x)_k`` is the falling factorial.
    """
    t = np.arange(1, count, dtype=np.float64)
    terms = t**-inverse / (count - t)
    for b in range(blocks):
        # if N - 1 <= b, the numerator is also 0 for every t
        terms *= (t - 1.0 - b) / max(count - 1.0 - b, 1.0)
    return float(np.sum(terms[blocks:])) if count > blocks + 1 else 0.0


@dataclass(frozen=True, slots=True)
class MomentGame:
    """A moment polynomial game.

    ``central`` means that v does not change if a constant is added to every value. Such a game is
    evaluated about the window's mean, which is numerically stable.
    """

    name: str
    terms: tuple[Term, ...]
    central: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.degree <= MAX_DEGREE:
            raise ArgumentError(
                f"game {self.name!r} has degree {self.degree}",
                hint=f"use terms of degrees 1 to {MAX_DEGREE}",
            )

    @property
    def degree(self) -> int:
        """The degree D of the highest power sum; D + 1 numbers are kept per atom."""
        return max((sum(term.degrees) for term in self.terms), default=0)

    def game(self) -> Game:
        """Return the closed form as a ``Game``."""
        powers = {sum(term.degrees) for term in self.terms}
        if len(powers) != 1:
            raise ArgumentError(
                f"game {self.name!r} mixes terms of degree {sorted(powers)}",
                hint="give every term the same total degree",
            )
        return Game(self.name, self.degree, powers.pop(), self._worth, self._slopes)

    def _sums(self, moments: Moments) -> list[Floats]:
        """Return P_0 … P_D about the mean, or about 0 if the game is not central."""
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
        """Convert slopes of raw deviations to slopes of central ones (binomial theorem)."""
        return [
            sum(
                (comb(k, i) * mean ** (k - i) * slopes[k - 1] for k in range(i, self.degree + 1)),
                0.0 * mean,
            )
            for i in range(1, self.degree + 1)
        ]


def register_game(game: MomentGame) -> Game:
    """Make a game available to scripts and engines under its name, in upper case."""
    name = game.name.upper()
    if name in GAMES:
        raise ArgumentError(f"a game {name!r} already exists", hint="choose another name")
    GAMES[name] = MomentGame(name, game.terms, game.central).game()
    return GAMES[name]


register_game(
    MomentGame("M3", (Term(1, 1, (3,)), Term(-3, 2, (1, 2)), Term(2, 3, (1, 1, 1)))),
)
register_game(
    MomentGame(
        "M4",
        (Term(1, 1, (4,)), Term(-4, 2, (1, 3)), Term(6, 3, (1, 1, 2)), Term(-3, 4, (1, 1, 1, 1))),
    )
)
