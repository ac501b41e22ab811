"""The closed forms on Python integers, for values too far apart in magnitude for fixed limbs.

A window that holds 1e300 beside 1e-300 has sums of two thousand bits. Here they are Python
integers in NumPy object arrays: slow, and as exact as the limbs of
``ids.exact.exact_sums``, whose steps these are. Sums of powers up to any degree are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, ldexp
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ids.exact.exact_sums import deviation_of, mean_of
from ids.exact.parts import LIMB_BITS, Limbs
from ids.games import Attributed, Game, Moments, attribute

Floats = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]

_MANTISSA = 53
# Exponents of a sum that leave the steps of a closed form inside the doubles: products are taken
# apart into halves, and what they miss is 2**-106 of them.
_LOWEST, _HIGHEST = -900, 990
_NOTHING = -(2**32)  # below the exponent of any sum that is not 0


class Powers(NamedTuple):
    """Exact sums of some rows at each of e windows.

    rows   int64[e]             how many rows
    sums   D times object[e]    Σ y**d / 2**(d·unit) for d = 1 … D, Python integers
    unit   every value is a whole multiple of 2**unit
    """

    rows: npt.NDArray[np.int64]
    sums: Sequence[Objects]
    unit: int


def unit_of(values: Floats) -> int:
    """The exponent of a power of two that every value is a whole multiple of."""
    return int(np.frexp(values[values != 0])[1].min(initial=0)) - _MANTISSA


def integers(values: Floats, unit: int) -> Objects:
    """Each value divided by 2**unit (``unit_of``), as a Python integer."""
    fraction, exponent = np.frexp(values)
    whole = (fraction * 2.0**_MANTISSA).astype(np.int64).astype(object)
    shifted: Objects = whole << np.maximum(exponent - _MANTISSA - unit, 0).astype(object)
    return shifted


def sum_powers(values: Floats, unit: int, degree: int) -> Powers:
    """The sums of one window's values."""
    whole = integers(values, unit)
    sums = [np.array([(whole**d).sum()], object) for d in range(1, degree + 1)]
    return Powers(np.array([len(values)]), sums, unit)


def from_limbs(limbs: Limbs) -> Objects:
    """Limbs, most significant first, as Python integers in units of the last one."""
    whole = np.zeros_like(limbs[0], dtype=object)
    for limb in limbs:
        whole = (whole << LIMB_BITS) + limb.astype(object)
    return whole


def big_worth(game: Game, window: Powers) -> Floats:
    """The aggregate in the measure's own units."""
    shift = _shift(game, window)
    moments, _, _ = _moments(game, window, shift)
    return _in_units(game.worth(moments), game, shift)


def big_attribution(game: Game, window: Powers, item: Powers) -> Attributed:
    """Value, share and lift, in the measure's own units, of ``item``'s rows in each window."""
    shift = _shift(game, window, item)
    moments, quotient, missing = _moments(game, window, shift)
    members = item.rows.astype(np.float64)
    total, deviation = np.zeros_like(members), []
    if game.degree:
        high, low = _pairs(item.sums[0], item.unit - shift)
        total = high + low
        deviation.append(deviation_of(high, low, members, quotient, missing))
    deviation += [_deviation(window, item, d, shift) for d in range(2, game.degree + 1)]
    found = attribute(game, moments, members, total, deviation)  # type: ignore[arg-type]
    return Attributed(*(_in_units(part, game, shift) for part in found))


def _moments(game: Game, window: Powers, shift: npt.NDArray[np.int64]) -> tuple[Moments, Any, Any]:
    """The window's moments in units of 2**shift; the mean's quotient, and what it misses."""
    players = window.rows.astype(np.float64)
    nothing = np.zeros_like(players)
    if not game.degree:
        return Moments(players, nothing, nothing, np.array([players])), nothing, nothing
    high, low = _pairs(window.sums[0], window.unit - shift)
    quotient, missing = mean_of(high, low, np.maximum(players, 1.0))
    number, unit = np.maximum(window.rows, 1).astype(object), window.unit - shift
    # Σ (y - S/N)**d = Σ (N·y - S)**d / N**d
    central = [
        _quotients(_spread(window, window, d), number**d, d * unit)
        for d in range(2, game.degree + 1)
    ]
    mean, powers = quotient + missing, np.array([players, nothing, *central])
    rest = missing - (mean - quotient)
    return Moments(players, high + low, mean, powers, rest), quotient, missing


def _deviation(window: Powers, item: Powers, d: int, shift: npt.NDArray[np.int64]) -> Floats:
    """Σ_P (y - mean)**d less m/N of the window's."""
    number = np.maximum(window.rows, 1).astype(object)
    members = item.rows.astype(object)
    numerator = number * _spread(window, item, d) - members * _spread(window, window, d)
    return _quotients(numerator, number ** (d + 1), d * (window.unit - shift))


def _spread(window: Powers, item: Powers, d: int) -> Objects:
    """Σ_P (N·y - S)**d, for the window's N and S."""
    number, total = window.rows.astype(object), window.sums[0]
    powers = [item.rows.astype(object), *item.sums]
    terms = (comb(d, i) * number**i * powers[i] * (-total) ** (d - i) for i in range(d + 1))
    return sum(terms, np.zeros_like(total))


def _shift(game: Game, *given: Powers) -> npt.NDArray[np.int64]:
    """The unit, as a power of two, in which a window is evaluated: 1 wherever doubles allow it."""
    top = np.full(len(given[0].rows), _NOTHING, np.int64)
    for each in given:
        for d, power in enumerate(each.sums[: game.degree], start=1):
            bits = np.array([whole.bit_length() for whole in power], np.int64)
            top = np.maximum(top, np.where(bits > 0, -(-bits // d) + each.unit, _NOTHING))
    top[top == _NOTHING] = 0
    degree = max(game.degree, 1)
    shift: npt.NDArray[np.int64] = top - np.clip(top, _LOWEST // degree, _HIGHEST // degree)
    return shift


def _in_units(value: Floats, game: Game, shift: npt.NDArray[np.int64]) -> Floats:
    """Back in the measure's own units; what no double holds comes out infinite."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(value, shift * game.power)


def _pairs(whole: Objects, unit: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Integers in units of 2**unit: the nearest double, and the double nearest to the rest."""
    high, low = _pair(whole, unit.astype(object))
    return high.astype(np.float64), low.astype(np.float64)


def _quotients(numerator: Objects, denominator: Objects, unit: npt.NDArray[np.int64]) -> Floats:
    """Fractions in units of 2**unit as the nearest doubles."""
    found: Floats = _quotient(numerator, denominator, unit.astype(object)).astype(np.float64)
    return found


def _pair_of(whole: int, unit: int) -> tuple[float, float]:
    spare = max(whole.bit_length() - _MANTISSA, 0)
    half = 1 << spare >> 1
    near = whole + half >> spare << spare
    if near - whole == half and half and near >> spare & 1:
        near -= 1 << spare  # a tie goes to the even one
    return ldexp(near >> spare, spare + unit), _ldexp(whole - near, unit)


def _ldexp(whole: int, unit: int) -> float:
    spare = max(whole.bit_length() - 64, 0)
    # a bit that stands for all that are cut off keeps the rounding right
    rest = whole >> spare
    return ldexp(rest | 1 if rest << spare != whole else rest, spare + unit)


def _quotient_of(numerator: int, denominator: int, unit: int) -> float:
    if unit >= 0:
        return (numerator << unit) / denominator
    return numerator / (denominator << -unit)


_pair = np.frompyfunc(_pair_of, 2, 2)
_quotient = np.frompyfunc(_quotient_of, 3, 1)
