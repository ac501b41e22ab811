"""Exact sums to attributions: every number is found as an integer and rounded once.

With m, S = Σ z and Q = Σ z² of a window W and of a predicate P, in units of 2**exponent,

    central_2    = (N·Q - S²) / N
    deviation_2  = (N·(N·Q_P - m·Q) - 2·S·(N·S_P - m·S)) / N²

where nothing cancels but integers. The first deviation takes the steps of the kernels, which round
as much as they do: ``mean_of`` and ``deviation_of`` are the twins of those of
``ids.kernels.wide_numbers`` on any operand, without fma. What fma(x, y, -x·y) finds there, Dekker's
product finds here: the same number, hence the same bits from there on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ids.exact.parts import LIMB_BITS, Parts, multiply, normalise, scale, subtract, to_pair
from ids.games import Attributed, Game, Moments, attribute, let, numbers

Pair = tuple[Any, Any]

_SPLITTER = 134217729.0  # 2**27 + 1


def _halves(x: Any) -> Pair:
    """X as the sum of two doubles of 26 bits each (Veltkamp)."""
    wide = let(x * _SPLITTER)
    high = let(wide - (wide - x))
    return high, let(x - high)


def _product(x: Any, y: Any) -> Pair:
    """X · y exactly (Dekker): the rounded product, and what it misses."""
    product = let(x * y)
    (a, b), (c, d) = _halves(x), _halves(y)
    return product, let(b * d - (((product - a * c) - b * c) - a * d))


def mean_of(high: Any, low: Any, players: Any) -> Pair:
    """A sum's mean: the rounded quotient, and what it misses."""
    mean = let(high / players)
    product, error = _product(mean, players)
    return mean, let(((high - product) - error + low) / players)


def _divide(pair: Pair, x: Any) -> Any:
    """Pair / double, rounded to a double."""
    quotient, missing = mean_of(*pair, x)
    return let(quotient + missing)


def deviation_of(high: Any, low: Any, members: Any, mean: Any, missing: Any) -> Any:
    """Σ_P y - m · mean, for a sum (high, low) and a mean (mean, missing); rounded once."""
    product, error = _product(members, mean)
    difference = let(high - product)
    shadow = let(difference - high)
    rest = (high - (difference - shadow)) - (product + shadow)
    return let(difference + (rest + (low - error - members * missing)))


class Sums(NamedTuple):
    """Exact sums of a set of rows, all 64-bit integers.

    count   m
    first   Σ a_k of every level; none where rows are only counted
    second  Σ b_k of every level; none where no square is summed
    """

    count: Any
    first: list[Any]
    second: list[Any]


class Window(NamedTuple):
    """A window's sums, normalised, and its moments in units of 2**exponent.

    missing  what the mean's rounded quotient misses
    """

    sums: Sums
    quotient: Any
    missing: Any
    moments: Moments


class Item(NamedTuple):
    """A predicate's rows within a window: m, Σ_P z and their deviations."""

    members: Any
    total: Any
    deviation: list[Any]


def window_of(sums: Sums, parts: Parts) -> Window:
    """The moments of a window; without players everything is 0."""
    players = let(numbers(sums.count, np.float64))
    zero = np.zeros_like(players)
    if not sums.first:
        return Window(sums, 0.0, 0.0, _moments(players, zero, zero, [players], zero))
    sums = _normalised(sums, parts)
    divisor = let(np.maximum(players, 1.0))
    high, low = to_pair(sums.first, -LIMB_BITS * parts.levels)
    quotient, missing = mean_of(high, low, divisor)
    central = [players, zero]
    if sums.second:
        spread = subtract(scale(sums.second, sums.count), multiply(sums.first, sums.first))
        central.append(_divide(to_pair(normalise(spread), -2 * LIMB_BITS * parts.levels), divisor))
    mean = let(quotient + missing)
    moments = _moments(players, let(high + low), mean, central, missing - (mean - quotient))
    return Window(sums, quotient, missing, moments)


def item_of(window: Window, sums: Sums, parts: Parts) -> Item:
    """What the closed forms need of a predicate in a window."""
    members = let(numbers(sums.count, np.float64))
    if not sums.first:
        return Item(members, np.zeros_like(members), [])
    sums = _normalised(sums, parts)
    high, low = to_pair(sums.first, -LIMB_BITS * parts.levels)
    deviation = [deviation_of(high, low, members, window.quotient, window.missing)]
    if sums.second:
        deviation.append(_second_deviation(window, sums, parts))
    return Item(members, let(high + low), deviation)


def _second_deviation(window: Window, sums: Sums, parts: Parts) -> Any:
    whole = window.sums
    first = normalise(subtract(scale(sums.first, whole.count), scale(whole.first, sums.count)))
    second = normalise(subtract(scale(sums.second, whole.count), scale(whole.second, sums.count)))
    cross = scale(multiply(whole.first, first), 2)
    exact = normalise(subtract(scale(second, whole.count), cross))
    divisor = let(np.maximum(window.moments.players, 1.0))
    # N² is a double to the bit: N is at most 2**26
    return _divide(to_pair(exact, -2 * LIMB_BITS * parts.levels), let(divisor * divisor))


def attribution(game: Game, window: Window, item: Item, parts: Parts) -> Attributed:
    """Value, share and lift in the measure's own units."""
    found = attribute(
        game,
        window.moments,
        item.members,
        item.total,
        item.deviation,  # type: ignore[arg-type]
    )
    return Attributed(*(np.ldexp(part, parts.exponent * game.power) for part in found))


def worth(game: Game, window: Window, parts: Parts) -> tuple[Any, Any]:
    """The aggregate in the measure's own units, and where it is NULL in SQL."""
    value = np.ldexp(game.worth(window.moments), parts.exponent * game.power)
    return value, window.moments.players < game.nulls


def _normalised(sums: Sums, parts: Parts) -> Sums:
    """Every carry taken, and the squares in units of the square of the values' unit."""
    second = [*sums.second, *[0] * (2 * parts.levels - parts.squares)] if sums.second else []
    return Sums(sums.count, normalise(sums.first), normalise(second) if second else [])


def _moments(players: Any, total: Any, mean: Any, central: list[Any], rest: Any) -> Moments:
    return Moments(players, total, mean, central, rest)  # type: ignore[arg-type]
