"""Double-double arithmetic: an unevaluated sum of two doubles, about 106 bits.

A pair is (high, low) with |low| at most half an ulp of high. The final centring of exact integer
sums happens in pairs, so that a deviation is rounded to a double once, at the end.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

from numba import njit

from ids.kernels.wide import fma

__all__ = [
    "add",
    "deviation_of",
    "divide",
    "from_word",
    "from_words",
    "mean_of",
    "multiply",
    "scale",
    "times",
    "two_sum",
]

_inline = njit(inline="always")


@_inline
def two_sum(a, b):
    """A + b exactly (Knuth)."""
    high = a + b
    shadow = high - a
    return high, (a - (high - shadow)) + (b - shadow)


@_inline
def add(a, b):
    """Pair + pair (accurate form: errors 2**-105 relative to the larger operand)."""
    high, low = two_sum(a[0], b[0])
    low += a[1] + b[1]
    total = high + low
    return total, low - (total - high)


@_inline
def times(a, x):
    """Pair * double."""
    high = a[0] * x
    low = fma(a[0], x, -high) + a[1] * x
    total = high + low
    return total, low - (total - high)


@_inline
def multiply(a, b):
    """Pair * pair."""
    high = a[0] * b[0]
    low = fma(a[0], b[0], -high) + (a[0] * b[1] + a[1] * b[0])
    total = high + low
    return total, low - (total - high)


@_inline
def divide(a, x):
    """Pair / double."""
    high = a[0] / x
    low = (fma(-high, x, a[0]) + a[1]) / x
    total = high + low
    return total, low - (total - high)


@_inline
def scale(a, power_of_two):
    """Pair * a power of two: exact."""
    return a[0] * power_of_two, a[1] * power_of_two


@_inline
def from_word(word):
    """A signed 64-bit integer as a pair: exact."""
    return two_sum(float(word >> 32) * 4294967296.0, float(word & 0xFFFFFFFF))


@_inline
def from_words(words, start, count):
    """A two's complement integer of ``count`` words, low word first, as a pair."""
    total = from_word(words[start + count - 1])
    for w in range(count - 2, -1, -1):
        word = words[start + w]
        high = float((word >> 32) & 0xFFFFFFFF) * 4294967296.0
        unsigned = two_sum(high, float(word & 0xFFFFFFFF))
        total = add(scale(total, 18446744073709551616.0), unsigned)
    return total


@_inline
def mean_of(high, low, players):
    """A sum's mean: the rounded quotient, and what it misses.

    Every path that needs a first deviation takes these very steps, so that the same exact sums
    give the same bits whichever path they came by.
    """
    mean = high / players
    return mean, (fma(-mean, players, high) + low) / players


@_inline
def deviation_of(high, low, members, mean, missing):
    """Σ_P y - m · mean, for a sum (high, low) and a mean (mean, missing); rounded once."""
    product = members * mean
    error = fma(members, mean, -product)
    difference = high - product
    shadow = difference - high
    rest = (high - (difference - shadow)) - (product + shadow)
    return difference + (rest + (low - error - members * missing))
