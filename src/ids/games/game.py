"""The closed forms of attributions, for SUM, COUNT, AVG, VAR_POP and VAR_SAMP.

An aggregate is modelled as a cooperative game whose players are the rows of a window W, without
NULLs. The worth v(W) is the value of the aggregate.

Every attribution has the form share + lift:

    share = m/N · v(W)            what m average rows would contribute
    lift  = Σ_d slope_d · deviation_d      what the predicate's rows contribute beyond that

``deviation_d`` is Σ_P (y - mean)**d minus m/N times the same sum over the window. The slopes depend
only on the game and the window. Hence every attribution is affine in the predicate's summaries, and
the deviations of the predicates in a partition add up to 0. The attributions therefore satisfy the
Efficiency axiom.

Each closed form is written once and accepts NumPy arrays or SQL symbols (``ids.exact.Symbol``). For
arrays it returns numbers. For symbols it returns SQL text that performs the same steps. ``let``,
``numbers`` and ``look_up`` cover the operations that NumPy does not dispatch to its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ids.errors import UnknownNameError

Floats = npt.NDArray[np.float64]


def let(x: Any) -> Any:
    """Name a SQL symbol, so that its text is not repeated; return arrays unchanged."""
    return x.let() if hasattr(x, "let") else x


def numbers(x: Any, dtype: type[np.generic]) -> Any:
    """Convert an array, a number or a SQL symbol to ``dtype``."""
    return x.astype(dtype) if hasattr(x, "let") else np.asarray(x, dtype=dtype)


def look_up(table: Floats, index: Any) -> Any:
    """Return ``table[index]``, elementwise."""
    return index.look_up(table) if hasattr(index, "let") else table[index]


class Moments(NamedTuple):
    """The moments of one window, or of many windows if the fields are arrays over emits.

    players  float64[…]            N, the number of rows whose y is not NULL
    total    float64[…]            Σ y
    mean     float64[…]            rounded to a double
    central  float64[degree+1, …]  Σ (y - mean - rest)**d
    rest     float64[…]            the rounding error of the mean: the exact mean is mean + rest
    """

    players: Floats
    total: Floats
    mean: Floats
    central: Floats
    rest: Floats = np.array(0.0)

    @classmethod
    def of(
        cls, players: float, total: float, mean: float, central: Sequence[float], rest: float = 0.0
    ) -> Moments:
        """Create the moments of a single window, without an axis for emits."""
        return cls(*map(np.array, (players, total, mean, central, rest)))


class Attributed(NamedTuple):
    """The value, share and lift of each predicate at each emit, float64[i, e]."""

    value: Floats
    share: Floats
    lift: Floats


class Coefficients(NamedTuple):
    """The coefficients of the affine form Φ = a_m·m + a_A·A_P + a_B·B_P (Eq. 1 of the paper)."""

    a_m: float
    a_A: float
    a_B: float


@dataclass(frozen=True, slots=True)
class Game:
    """A cooperative game whose players are the rows of a window.

    name      the name used in a query
    degree    the highest power sum required (0: only counts)
    power     the game's scaling: v(c·y) = c**power · v(y)
    worth     function from Moments to v(W)
    slopes    function from Moments to the slopes of deviation_1 … deviation_degree
    additive  whether a predicate's attribution equals its sum Σ_P y (SUM)
    affine    whether the worth is linear in the moments and the slopes depend only on N
    nulls     the aggregate is NULL in SQL if there are fewer rows than this
    """

    name: str
    degree: int
    power: int
    worth: Callable[[Moments], Floats]
    slopes: Callable[[Moments], Sequence[Floats]]
    additive: bool = False
    affine: bool = False
    nulls: int = 1


def attribute(
    game: Game, moments: Moments, members: Floats, item_total: Floats, deviation: Floats
) -> Attributed:
    """Evaluate the closed form for many predicates at many emits.

    members     float64[i, e]          m of each predicate
    item_total  float64[i, e]          Σ_P y
    deviation   float64[degree, i, e]  central deviations

    In a window without players, every result is 0.
    """
    players = moments.players > 0
    safe = np.where(players, moments.players, 1.0)
    worth = let(np.where(players, game.worth(moments), 0.0))
    # for a predicate that holds on every row, the value is exactly the worth of the window
    share = let(np.where(members == moments.players, worth, members * (worth / safe)))
    lift = np.zeros_like(share)
    for slope, each in zip(game.slopes(moments), deviation, strict=False):
        lift += np.where(players, slope, 0.0) * each
    lift = let(lift)
    if game.additive:
        # the exact sum is rounded once, whereas share + lift would be rounded three times
        return Attributed(item_total + 0.0, share, lift)
    return Attributed(share + lift, share, lift)


def coefficients(game: Game, count: int, total: float, squares: float = 0.0) -> Coefficients:
    """Return (a_m, a_A, a_B) for a window with N = ``count``, A = ``total`` and B = ``squares``.

    This is the uncentred form printed in the paper, for inspection and for sampling bounds. The
    engine evaluates share + lift instead, which does not suffer from cancellation.
    """
    if count == 0:
        return Coefficients(0.0, 0.0, 0.0)
    mean = total / count
    spread = max(squares - total * mean, 0.0)
    window = Moments.of(float(count), total, mean, [count, 0.0, spread])
    worth = float(game.worth(window))
    slopes = [float(s) for s in game.slopes(window)] + [0.0, 0.0]
    first, second = slopes[0], slopes[1]
    return Coefficients(
        a_m=worth / count - first * mean + second * (mean * mean - spread / count),
        a_A=first - 2.0 * mean * second,
        a_B=second,
    )


# Harmonic numbers. The paper updates H_N step by step, by |ΔN|. Floating-point steps drift; direct
# evaluation does not, needs no state and takes O(1). The first 256 values come from a table of
# exact sums. All others use only + - * /, because the last bit of a library logarithm differs
# between platforms.

_EXACT = 256
_LN2_HIGH = 0.693147180369123816490  # the top 33 bits of ln 2: k times this is exact
_LN2_LOW = 1.90821492927058770002e-10
_GAMMA = 0.57721566490153286061
_ZETA2 = 1.64493406684822643647


@cache
def _exact(power: int) -> Floats:
    """Return the first values of Σ_{k<=n} 1/k**power, each rounded once from a fraction."""
    total = Fraction(0)
    table = [0.0]
    for k in range(1, _EXACT):
        total += Fraction(1, k**power)
        table.append(float(total))
    return np.array(table)


def _tabulated(power: int, count: Any, beyond: Any) -> Floats:
    """Return the value from the table, or ``beyond`` for counts after its end."""
    first: Floats = look_up(_exact(power), np.minimum(count, _EXACT - 1))
    return np.where(count < _EXACT, first, beyond)


def _logarithm_parts(n: Floats) -> tuple[Floats, Floats]:
    """Return ln n as a large and a small part, from 2·atanh((f - 1)/(f + 1)), f in [0.7, 1.42]."""
    fraction, exponent = np.frexp(n)
    low = fraction < 0.70710678118654752440
    fraction = let(np.where(low, fraction * 2.0, fraction))
    k = let(np.where(low, exponent - 1, exponent))
    s = let((fraction - 1.0) / (fraction + 1.0))
    square = let(s * s)
    series = np.zeros_like(s)
    for odd in range(23, 1, -2):
        series = (series + 1.0 / odd) * square
    return k * _LN2_HIGH, k * _LN2_LOW + 2.0 * s * series + 2.0 * s


def harmonic(n: npt.ArrayLike) -> Floats:
    """Return H_n = Σ_{k<=n} 1/k, elementwise.

    >>> harmonic([0, 1, 2, 4]).tolist()
    [0.0, 1.0, 1.5, 2.0833333333333335]
    """
    count = numbers(n, np.int64)
    x = let(np.maximum(count, _EXACT).astype(np.float64))
    inverse = let(1.0 / x)
    square = let(inverse * inverse)
    tail = inverse * 0.5 - square * (1 / 12 - square * (1 / 120 - square / 252))
    large, small = _logarithm_parts(x)
    return _tabulated(1, count, large + (small + (_GAMMA + tail)))


def harmonic_squares(n: npt.ArrayLike) -> Floats:
    """Return H⁽²⁾_n = Σ_{k<=n} 1/k², elementwise.

    >>> harmonic_squares([0, 1, 2]).tolist()
    [0.0, 1.0, 1.25]
    """
    count = numbers(n, np.int64)
    x = let(np.maximum(count, _EXACT).astype(np.float64))
    inverse = let(1.0 / x)
    square = let(inverse * inverse)
    tail = inverse * (1.0 - inverse * 0.5 + square * (1 / 6 - square * (1 / 30 - square / 42)))
    return _tabulated(2, count, _ZETA2 - tail)


def average_slope(count: npt.ArrayLike) -> Floats:
    """Return the slope λ of AVG: H_{N-1}/(N-1), or 1 for N = 1, where the deviation is 0.

    >>> (average_slope([3, 4]) * [4, 18]).round(12).tolist()
    [3.0, 11.0]
    """
    n = numbers(count, np.float64)
    others = let(np.maximum(n - 1.0, 1.0))
    return np.where(n > 1, harmonic(others) / others, 1.0)


def population_slope(count: npt.ArrayLike) -> Floats:
    """Return the slope λ of VAR_POP, which is 0 for N <= 2, where the lift is 0.

    >>> (population_slope([3, 4]) * [8, 54]).round(12).tolist()
    [3.0, 17.0]
    """
    n = numbers(count, np.float64)
    big = let(np.maximum(n, 3.0))
    spread = harmonic(big) - harmonic_squares(big)
    slope = big * spread / ((big - 1.0) * (big - 2.0)) - 1.0 / (big * (big - 2.0))
    return np.where(n > 2, slope, 0.0)


def sample_slope(count: npt.ArrayLike) -> Floats:
    """Return the slope λ of VAR_SAMP, which is 0 for N <= 2.

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


def _slopes(*each: Callable[[Floats], Floats]) -> Callable[[Moments], Sequence[Floats]]:
    """Create ``Game.slopes`` from functions of N, one per deviation."""
    return lambda moments: tuple(slope(moments.players) for slope in each)


# The games by name; ``register_game`` adds to them.
GAMES: dict[str, Game] = {
    game.name: game
    for game in (
        Game("SUM", 1, 1, lambda w: w.total, _slopes(np.ones_like), additive=True, affine=True),
        Game("COUNT", 0, 0, lambda w: w.players, _slopes(), affine=True, nulls=0),
        Game("AVG", 1, 1, lambda w: w.mean, _slopes(average_slope), affine=True),
        Game("VAR_POP", 2, 2, _population, _slopes(np.zeros_like, population_slope), affine=True),
        Game("VAR_SAMP", 2, 2, _sample, _slopes(np.zeros_like, sample_slope), affine=True, nulls=2),
    )
}


def find(name: str) -> Game:
    """Return the game with this name; raise ``UnknownNameError`` if there is none."""
    if name not in GAMES:
        raise UnknownNameError("aggregate", name, GAMES)
    return GAMES[name]
