"""The exact representation of a measure: whole digits against a power of two.

A value y becomes D signed digits of 35 bits, top digit first:

    y / 2**exponent = Σ_j q_j · 2**(-35·(j+1))

Sums of digits and of products of digits are sums of integers: exact, in any order, and undone
exactly by expiry. With D digits every bit down to 2**(exponent - 35·D) counts; what lies below is
rounded away once per value, always the same way, so it cannot drift either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import frexp

DIGIT_BITS = 35
MAX_DIGITS = 5
MAX_DEGREE = 6
MAX_ROWS = 2**26  # a digit (35 bits) less a centre, times this, stays inside a signed 64-bit sum

_MANTISSA = 53
_LAST_BIT = -1074  # no double has a bit below this one

Layout = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def bits_of(largest: float, smallest: float) -> tuple[int, int]:
    """Exponents that enclose the bits of values of these magnitudes: above all, at the lowest."""
    return frexp(largest)[1], max(frexp(smallest)[1] - _MANTISSA, _LAST_BIT)


@dataclass(frozen=True, slots=True)
class Scale:
    """How a measure's values are cut into digits.

    exponent  every |value| is below 2**exponent
    digits    how many digits of 35 bits each value gets (0: rows are only counted)
    degree    the highest power that is summed
    centre    digits subtracted before powers of 3 and more are taken (they are shift-sensitive)
    """

    exponent: int
    digits: int
    degree: int
    centre: tuple[int, ...] = ()

    @property
    def layout(self) -> Layout:
        """The shape of a summary as four tuples whose *lengths* a kernel is compiled for:

        digits, pairs of digits, powers of 3 and more, and the words of each such power.
        """
        return _layout(self.digits, self.degree)

    @property
    def words(self) -> int:
        """64-bit words of one summary: count, digit sums, products of digits, higher powers."""
        return _words(self.digits, self.degree)

    def up_to(self, degree: int) -> tuple[Layout, int]:
        """The layout and the words of the sums that a game of this degree needs.

        Powers of 3 and more are as wide as the highest of them: all are taken, or none.
        """
        least = self.degree if degree > 2 else min(degree, self.degree)
        return _layout(self.digits, least), _words(self.digits, least)


@cache
def _layout(digits: int, degree: int) -> Layout:
    pairs = digits * (digits + 1) // 2 if degree >= 2 else 0
    powers = max(degree - 2, 0)
    bits = degree * (DIGIT_BITS * digits + 1) + MAX_ROWS.bit_length()
    words = bits // 64 + 1 if powers else 0
    return (0,) * digits, (0,) * pairs, (0,) * powers, (0,) * words


@cache
def _words(digits: int, degree: int) -> int:
    each, pairs, powers, words = _layout(digits, degree)
    return 1 + len(each) + 2 * len(pairs) + len(powers) * len(words)
