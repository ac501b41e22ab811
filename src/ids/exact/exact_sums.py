"""Exact sums: values are split into integers and summed, and each result is rounded once.

**Parts.** A value is split into integers, called parts. Their sums are exact in any order and on
any engine:

    y / 2**exponent = Σ_k a_k · 2**(-28·k)          k = 1 … levels
    (y / 2**exponent)² = Σ_k b_k · 2**(-28·k)       k = 1 … 2·levels

No part exceeds 2**28, so a sum over 2**34 rows fits into 64 bits.

**Limbs.** A sum of parts is an integer of any size, stored as limbs of 28 bits, most significant
first. A limb is an int64 array or a BIGINT symbol and may contain any integer. After ``normalise``
every limb except the first is a signed digit in [-2**27, 2**27). Therefore the first non-zero limb
is larger in magnitude than all limbs after it together. Numbers are aligned at their last limb.

**Closed forms.** With m, S = Σ z and Q = Σ z² of a window W and of a predicate P, in units of
2**exponent,

    central_2    = (N·Q - S²) / N
    deviation_2  = (N·(N·Q_P - m·Q) - 2·S·(N·S_P - m·S)) / N²

where all cancellation happens between integers. The first deviation uses the same steps as the
kernels, so both round in the same way: ``mean_of`` and ``deviation_of`` are versions of the
functions in ``ids.kernels.wide_numbers`` that accept any operand and do not need fma. Dekker's
product equals fma(x, y, -x·y), so all later steps produce the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from ids.games import Attributed, Game, Moments, attribute, let, numbers
from ids.model import bits_of

Limbs = Sequence[Any]
Pair = tuple[Any, Any]

LIMB_BITS = 28
FEW_LEVELS = 8  # with more levels the closed forms would overflow 64-bit limbs
_HALF = 2 ** (LIMB_BITS - 1)
_MASK = 2**LIMB_BITS - 1
_MANTISSA = 53
_SMALLEST = -1000  # for a smaller exponent, 2**-exponent would overflow a double
_SPLITTER = 134217729.0  # 2**27 + 1


def normalise(limbs: Limbs) -> list[Any]:
    """Propagate all carries; the result has one more limb.

    Requires |limb| <= 2**62. Carries are at most 2**35, so nothing overflows 64 bits. The first
    limb of the result is the last carry, at most 2**-28 times the first input limb, plus 2**7.
    """
    carried: list[Any] = []
    carry: Any = 0
    for limb in reversed([let(limb) for limb in limbs]):
        whole = limb + _HALF + carry
        carried.append(let((whole & _MASK) - _HALF))
        carry = whole >> LIMB_BITS
    return [let(carry), *reversed(carried)]


def scale(limbs: Limbs, factor: Any) -> list[Any]:
    """Multiply a number by a count; normalised limbs times 2**26 stay below 2**55."""
    return [limb * factor for limb in limbs]


def subtract(a: Limbs, b: Limbs) -> list[Any]:
    """Return a - b, limb by limb."""
    width = max(len(a), len(b))
    a, b = [0] * (width - len(a)) + list(a), [0] * (width - len(b)) + list(b)
    return [x - y for x, y in zip(a, b, strict=True)]


def multiply(a: Limbs, b: Limbs) -> list[Any]:
    """Return a · b for normalised numbers.

    With |limb| <= 2**28 and at most 32 limbs, a limb of the product is the sum of at most 32
    products of 2**56. It is therefore below 2**61, and twice the product is below 2**62.
    """
    product: list[Any] = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] = product[i + j] + x * y
    return product


def to_pair(limbs: Limbs, unit: int) -> Pair:
    """Convert a normalised number, whose last limb has the unit 2**unit, to doubles (high, low).

    For up to 105 significant bits, high is the nearest double and low is the exact remainder. For
    longer numbers the pair is within 2**-104 of the number.

    The limbs are added from the last one up, and the rounding error of each sum is computed exactly
    (a non-zero limb is larger than all limbs after it together). The errors together are at most
    one unit in the last place of the sum, and 2**-53 of that is a bit of the number, so the sum of
    the errors is exact, too.
    """
    top = len(limbs) - 1
    digits = [
        numbers(limb, np.float64) * 2.0 ** (unit + LIMB_BITS * (top - k))
        for k, limb in enumerate(limbs)
    ]
    sums = list(accumulate(reversed(digits), lambda below, digit: digit + below))
    named = [let(whole) for whole in sums]
    errors = [
        below - (whole - digit)
        for below, whole, digit in zip(named, named[1:], reversed(digits[:top]), strict=False)
    ]
    lost = let(reduce(lambda below, error: error + below, errors))
    high = let(named[-1] + lost)
    return high, let(lost - (high - named[-1]))


class Parts(NamedTuple):
    """How the values of a measure are split into parts.

    exponent  every |value| is below 2**exponent
    levels    the number of parts per value; bits down to 2**(exponent - 28·levels) are kept
    squares   the number of parts per square: twice the levels, or one fewer if the last part is
              always 0, or 0 if no squares are summed
    """

    exponent: int
    levels: int
    squares: int

    @property
    def wide(self) -> bool:
        """Whether there are too many levels for limbs, so that ``ids.exact.bigints`` is needed."""
        return self.levels > FEW_LEVELS

    @classmethod
    def fit(cls, largest: float, smallest: float, degree: int) -> Parts:
        """Return parts that keep all bits of non-zero values with these magnitudes."""
        if largest == 0.0:
            return cls._covering(0, 0, degree)
        return cls._covering(*bits_of(largest, smallest), degree)

    @classmethod
    def for_integers(cls, bits: int, degree: int) -> Parts:
        """Return parts for integers below 2**bits; the unit of the last part is 1."""
        return cls._covering(-(-bits // LIMB_BITS) * LIMB_BITS, 0, degree)

    def trimmed(self, smallest: float) -> Parts:
        """Drop the last part of the squares if it is 0 for all values of at least ``smallest``.

        This is the case if the last part of each value is a multiple of 2**14, since its square is
        then a multiple of 2**28.
        """
        _, lowest = bits_of(smallest, smallest)
        spare = lowest - (self.exponent - LIMB_BITS * self.levels)
        if not self.squares or self.wide or spare < 14:
            return self
        return self._replace(squares=self.squares - 1)

    @classmethod
    def _covering(cls, exponent: int, lowest: int, degree: int) -> Parts:
        if degree == 0:
            return cls(0, 0, 0)
        exponent = max(exponent, _SMALLEST)
        levels = max(1, -(-(exponent - lowest) // LIMB_BITS))
        return cls(exponent, levels, 2 * levels if degree > 1 else 0)


def split(y: Any, parts: Parts) -> tuple[list[Any], list[Any]]:
    """Return the parts of a double and of its square, as 64-bit integers.

    Part k is the value rounded at level k minus the value rounded at level k - 1. Both steps are
    exact, and the levels do not depend on each other. The square is computed from the parts. Pass 0
    instead of values of 2**exponent or more: their parts would overflow 64 bits.
    """
    if parts.wide:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return _split_wide(y, parts)
    z = let(y * 2.0**-parts.exponent)
    rounded = [let(np.rint(z * 2.0 ** (LIMB_BITS * (k + 1)))) for k in range(parts.levels)]
    levels = rounded[:1] + [here - above * 2.0**LIMB_BITS for above, here in pairwise(rounded)]
    return _with_squares([let(numbers(level, np.int64)) for level in levels], parts)


def _split_wide(y: Any, parts: Parts) -> tuple[list[Any], list[Any]]:
    """Split a double into many levels, of which at most three adjacent ones are not 0."""
    scaled = [let(np.ldexp(y, LIMB_BITS * (k + 1) - parts.exponent)) for k in range(parts.levels)]
    levels = []
    for above, here in pairwise([scaled[0] * 0.0, *scaled]):
        # from 2**81 on (or if infinite), all bits are in the levels above
        part = np.rint(here) - np.rint(above) * 2.0**LIMB_BITS
        fits = np.abs(here) < 2.0 ** (_MANTISSA + LIMB_BITS)
        levels.append(let(numbers(np.where(fits, part, 0.0), np.int64)))
    if not parts.squares:
        return levels, []
    products: list[Any] = [0] * (2 * parts.levels)
    for i, x in enumerate(levels):
        for j in range(i, min(i + 3, parts.levels)):
            product = x * levels[j]
            products[i + j + 1] = products[i + j + 1] + (product if i == j else product * 2)
    named = [*(let(product) for product in products), 0]
    return levels, [(here & _MASK) + (below >> LIMB_BITS) for here, below in pairwise(named)]


def split_integer(y: Any, parts: Parts) -> tuple[list[Any], list[Any]]:
    """Return the parts of a 64-bit integer (``Parts.for_integers``) and of its square.

    The largest integer, 2**63 - 1, is treated as 2**63, because both are the same double.
    """
    shifted = [y >> LIMB_BITS * (parts.levels - 1 - k) for k in range(parts.levels)]
    levels = shifted[:1] + [level & _MASK for level in shifted[1:]]
    if parts.exponent > 63:
        levels[-1] = levels[-1] + numbers(y == 2**63 - 1, np.int64)
    return _with_squares([let(level) for level in levels], parts)


def _with_squares(levels: list[Any], parts: Parts) -> tuple[list[Any], list[Any]]:
    return levels, normalise(multiply(levels, levels))[: parts.squares] if parts.squares else []


def _halves(x: Any) -> Pair:
    """Split x into the sum of two doubles of 26 bits each (Veltkamp)."""
    wide = let(x * _SPLITTER)
    high = let(wide - (wide - x))
    return high, let(x - high)


def _product(x: Any, y: Any) -> Pair:
    """Return the rounded product x · y and its rounding error (Dekker)."""
    product = let(x * y)
    (a, b), (c, d) = _halves(x), _halves(y)
    return product, let(b * d - (((product - a * c) - b * c) - a * d))


def mean_of(high: Any, low: Any, players: Any) -> Pair:
    """Return the sum (high, low) divided by a count, rounded, and the rounding error."""
    mean = let(high / players)
    product, error = _product(mean, players)
    return mean, let(((high - product) - error + low) / players)


def _divide(pair: Pair, x: Any) -> Any:
    """Divide a pair by a double, and round the result to a double."""
    quotient, missing = mean_of(*pair, x)
    return let(quotient + missing)


def deviation_of(high: Any, low: Any, members: Any, mean: Any, missing: Any) -> Any:
    """Return Σ_P y - m · mean, rounded once, for the pairs (high, low) and (mean, missing)."""
    product, error = _product(members, mean)
    difference = let(high - product)
    shadow = let(difference - high)
    rest = (high - (difference - shadow)) - (product + shadow)
    return let(difference + (rest + (low - error - members * missing)))


class Sums(NamedTuple):
    """The exact sums over a set of rows, as 64-bit integers.

    count   m, the number of rows
    first   Σ a_k for each level; empty if rows are only counted
    second  Σ b_k for each level; empty if no squares are summed
    """

    count: Any
    first: list[Any]
    second: list[Any]


class Window(NamedTuple):
    """The normalised sums of a window, and its moments in units of 2**exponent.

    quotient, missing  the rounded mean, and its rounding error
    """

    sums: Sums
    quotient: Any
    missing: Any
    moments: Moments


class Item(NamedTuple):
    """The sums of a predicate's rows in a window: m, Σ_P z and the deviations."""

    members: Any
    total: Any
    deviation: list[Any]


def window_of(sums: Sums, parts: Parts) -> Window:
    """Compute the moments of a window; if it has no players, all moments are 0."""
    players = let(numbers(sums.count, np.float64))
    zero = np.zeros_like(players)
    if not sums.first:
        moments = Moments(players, zero, zero, [players], zero)  # type: ignore[arg-type]
        return Window(sums, 0.0, 0.0, moments)
    sums = _normalised(sums, parts)
    divisor = let(np.maximum(players, 1.0))
    high, low = to_pair(sums.first, -LIMB_BITS * parts.levels)
    quotient, missing = mean_of(high, low, divisor)
    central: Any = [players, zero]
    if sums.second:
        spread = subtract(scale(sums.second, sums.count), multiply(sums.first, sums.first))
        central.append(_divide(to_pair(normalise(spread), -2 * LIMB_BITS * parts.levels), divisor))
    mean = let(quotient + missing)
    moments = Moments(players, let(high + low), mean, central, missing - (mean - quotient))
    return Window(sums, quotient, missing, moments)


def item_of(window: Window, sums: Sums, parts: Parts) -> Item:
    """Compute the inputs of the closed forms for a predicate in a window."""
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
    # N² is an exact double, because N is at most 2**26
    return _divide(to_pair(exact, -2 * LIMB_BITS * parts.levels), let(divisor * divisor))


def attribution(game: Game, window: Window, item: Item, parts: Parts) -> Attributed:
    """Return the value, share and lift in the measure's units."""
    deviation: Any = item.deviation
    found = attribute(game, window.moments, item.members, item.total, deviation)
    return Attributed(*(np.ldexp(part, parts.exponent * game.power) for part in found))


def worth(game: Game, window: Window, parts: Parts) -> tuple[Any, Any]:
    """Return the aggregate in the measure's units, and whether it is NULL in SQL."""
    value = np.ldexp(game.worth(window.moments), parts.exponent * game.power)
    return value, window.moments.players < game.nulls


def _normalised(sums: Sums, parts: Parts) -> Sums:
    """Propagate all carries, and convert squares to the squared unit of the values."""
    second = [*sums.second, *[0] * (2 * parts.levels - parts.squares)] if sums.second else []
    return Sums(sums.count, normalise(sums.first), normalise(second) if second else [])
