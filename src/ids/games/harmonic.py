"""Harmonic numbers without a table: O(1) for any n, the same bits on every machine.

The paper steps H_N up and down by |ΔN|. Stepping in floating point drifts; evaluating does not,
costs less than one step per row, and needs no state. Only + - * / are used beyond the first 256
exact values (no library logarithm, whose last bit differs from one platform to the next).
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ids.games.game import let, look_up, numbers

Floats = npt.NDArray[np.float64]

_EXACT = 256
_LN2_HIGH = 0.693147180369123816490  # the top 33 bits of ln 2: k times this is exact
_LN2_LOW = 1.90821492927058770002e-10
_GAMMA = 0.57721566490153286061
_ZETA2 = 1.64493406684822643647


@cache
def _exact(power: int) -> Floats:
    """Σ 1/k**power for the first n, each rounded once from the exact rational."""
    total = Fraction(0)
    table = [0.0]
    for k in range(1, _EXACT):
        total += Fraction(1, k**power)
        table.append(float(total))
    return np.array(table)


def _tabulated(power: int, count: Any, beyond: Any) -> Floats:
    """The exact value where there is one, ``beyond`` elsewhere."""
    first: Floats = look_up(_exact(power), np.minimum(count, _EXACT - 1))
    return np.where(count < _EXACT, first, beyond)


def _logarithm_parts(n: Floats) -> tuple[Floats, Floats]:
    """Ln n as a large and a small part, by 2·atanh((f - 1)/(f + 1)) on f in [0.7, 1.42]."""
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
    """H_n = Σ_{k<=n} 1/k, elementwise.

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
    """H⁽²⁾_n = Σ_{k<=n} 1/k², elementwise.

    >>> harmonic_squares([0, 1, 2]).tolist()
    [0.0, 1.0, 1.25]
    """
    count = numbers(n, np.int64)
    x = let(np.maximum(count, _EXACT).astype(np.float64))
    inverse = let(1.0 / x)
    square = let(inverse * inverse)
    tail = inverse * (1.0 - inverse * 0.5 + square * (1 / 6 - square * (1 / 30 - square / 42)))
    return _tabulated(2, count, _ZETA2 - tail)
