"""Closed forms over Python integers, for values whose magnitudes differ too much for limbs.

The sums of a window that contains both 1e300 and 1e-300 have two thousand bits. Here such sums are
Python integers in NumPy object arrays. This is slow, but as exact as the limbs (28-bit digits) in
``ids.exact.exact_sums``, and the steps are the same. Power sums of any degree are supported.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, ldexp
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ids.exact.exact_sums import LIMB_BITS, Limbs, deviation_of, mean_of
from ids.games import Attributed, Game, Moments, attribute

Floats = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]

_MANTISSA = 53
# The exponents of a sum for which no step of a closed form overflows or underflows: products are
# split into halves, and their rounding errors are 2**-106 of them.
_LOWEST, _HIGHEST = -900, 990
_NOTHING = -(2**32)  # less than the exponent of any non-zero sum


class Powers(NamedTuple):
    """Exact power sums over rows in each of e windows.

    rows   int64[e]             the number of rows
    sums   D times object[e]    Σ y**d / 2**(d·unit) for d = 1 … D, Python integers
    unit   every value is an integer multiple of 2**unit
    """

    rows: npt.NDArray[np.int64]
    sums: Sequence[Objects]
    unit: int


def unit_of(values: Floats) -> int:
    """Return a ``unit`` such that every value is an integer multiple of 2**unit."""
    return int(np.frexp(values[values != 0])[1].min(initial=0)) - _MANTISSA


def integers(values: Floats, unit: int) -> Objects:
    """Divide each value by 2**unit (see ``unit_of``) and return Python integers."""
    fraction, exponent = np.frexp(values)
    whole = (fraction * 2.0**_MANTISSA).astype(np.int64).astype(object)
    shifted: Objects = whole << np.maximum(exponent - _MANTISSA - unit, 0).astype(object)
    return shifted


def sum_powers(values: Floats, unit: int, degree: int) -> Powers:
    """Compute the power sums of one window's values."""
    whole = integers(values, unit)
    sums = [np.array([(whole**d).sum()], object) for d in range(1, degree + 1)]
    return Powers(np.array([len(values)]), sums, unit)


def from_limbs(limbs: Limbs) -> Objects:
    """Convert limbs, most significant first, to Python integers in units of the last limb."""
    whole = np.zeros_like(limbs[0], dtype=object)
    for limb in limbs:
        whole = (whole << LIMB_BITS) + limb.astype(object)
    return whole


def big_worth(game: Game, window: Powers) -> Floats:
    """Return the aggregate of each window, in the measure's units."""
    shift = _shift(game, window)
    moments, _, _ = _moments(game, window, shift)
    return _in_units(game.worth(moments), game, shift)


def big_attribution(game: Game, window: Powers, item: Powers) -> Attributed:
    """Return the value, share and lift of ``item`` in each window, in the measure's units."""
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
    """Return the moments in units of 2**shift, the rounded mean, and its rounding error."""
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
    """Return Σ_P (y - mean)**d minus m/N times the same sum over the window."""
    number = np.maximum(window.rows, 1).astype(object)
    members = item.rows.astype(object)
    numerator = number * _spread(window, item, d) - members * _spread(window, window, d)
    return _quotients(numerator, number ** (d + 1), d * (window.unit - shift))


def _spread(window: Powers, item: Powers, d: int) -> Objects:
    """Return Σ_P (N·y - S)**d, with N and S from the window."""
    number, total = window.rows.astype(object), window.sums[0]
    powers = [item.rows.astype(object), *item.sums]
    terms = (comb(d, i) * number**i * powers[i] * (-total) ** (d - i) for i in range(d + 1))
    return sum(terms, np.zeros_like(total))


def _shift(game: Game, *given: Powers) -> npt.NDArray[np.int64]:
    """Choose the unit 2**shift of each window; shift is 0 unless doubles would over/underflow."""
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
    """Convert back to the measure's units; overflow yields infinity."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(value, shift * game.power)


def _pairs(whole: Objects, unit: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Convert integers in units of 2**unit to the nearest double and the rounded remainder."""
    high, low = _pair(whole, unit.astype(object))
    return high.astype(np.float64), low.astype(np.float64)


def _quotients(numerator: Objects, denominator: Objects, unit: npt.NDArray[np.int64]) -> Floats:
    """Convert fractions in units of 2**unit to the nearest doubles."""
    found: Floats = _quotient(numerator, denominator, unit.astype(object)).astype(np.float64)
    return found


def _pair_of(whole: int, unit: int) -> tuple[float, float]:
    spare = max(whole.bit_length() - _MANTISSA, 0)
    half = 1 << spare >> 1
    near = whole + half >> spare << spare
    if near - whole == half and half and near >> spare & 1:
        near -= 1 << spare  # round half to even
    return ldexp(near >> spare, spare + unit), _ldexp(whole - near, unit)


def _ldexp(whole: int, unit: int) -> float:
    spare = max(whole.bit_length() - 64, 0)
    # set the last bit if any bit was cut off, so that the result is rounded correctly
    rest = whole >> spare
    return ldexp(rest | 1 if rest << spare != whole else rest, spare + unit)


def _quotient_of(numerator: int, denominator: int, unit: int) -> float:
    if unit >= 0:
        return (numerator << unit) / denominator
    return numerator / (denominator << -unit)


_pair = np.frompyfunc(_pair_of, 2, 2)
_quotient = np.frompyfunc(_quotient_of, 3, 1)
