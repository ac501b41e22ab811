"""The scale of a measure: how its values are stored as integers, so that sums are exact.

A value y becomes D signed digits of 35 bits, top digit first:

    y / 2**exponent = Σ_j q_j · 2**(-35·(j+1))

Sums of digits and of products of digits are sums of integers: exact, in any order, and undone
exactly when rows expire. D digits keep every bit down to 2**(exponent - 35·D), the *grid*. Bits
below the grid are rounded once per value, always in the same way, so sums do not drift.

A *summary* is an int64 array: the row count, the digit sums, the sums of products of two digits,
and the sums of higher powers. A *grid unit* is 2**grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import frexp

import numpy as np
import numpy.typing as npt

DIGIT_BITS = 35
MAX_DIGITS = 5
MAX_DEGREE = 6
MAX_ROWS = 2**26  # a digit (35 bits) less a centre, times this, stays inside a signed 64-bit sum

_MANTISSA = 53
_LAST_BIT = -1074  # no double has a lower bit
_CENTRE_SAMPLE = 1024  # values whose median becomes the centre: any centre gives the same sums
_SMALLEST = -900  # below this exponent 2**-exponent or a digit's unit would overflow a double
_LARGEST = 1000
_ABOVE_MIDDLE = 60  # bits kept above the median magnitude when not all magnitudes fit
_MOST_BITS = 960  # a power with more bits would overflow a double when it is decoded

Layout = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]
Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.int64]


def bits_of(largest: float, smallest: float) -> tuple[int, int]:
    """Return exponents that enclose the bits of values between these two magnitudes.

    The first is above the top bit of ``largest``; the second is at or below the last bit of any
    value from ``smallest`` on.
    """
    return frexp(largest)[1], max(frexp(smallest)[1] - _MANTISSA, _LAST_BIT)


def lowest_bit(values: Floats, enough: int | None = None) -> int:
    """Return the exponent of the lowest bit set in any value.

    If a lower bound that costs one pass is already ``enough`` or more, return that bound instead.
    """
    magnitudes = np.abs(values)
    magnitudes = magnitudes[magnitudes > 0]
    if not len(magnitudes):
        return enough or 0
    bound = int(np.frexp(magnitudes.min())[1]) - _MANTISSA
    if enough is not None and bound >= enough:
        return bound
    fraction, exponent = np.frexp(magnitudes)
    whole = (fraction * 2.0**_MANTISSA).astype(np.int64)
    last = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return int((exponent + last).min()) - _MANTISSA


@dataclass(frozen=True, slots=True)
class Scale:
    """How a measure's values are cut into digits.

    exponent  every |value| is below 2**exponent
    digits    digits of 35 bits per value (0: rows are only counted)
    degree    the highest power that is summed
    centre    digits subtracted before powers of 3 and more are taken (they are shift-sensitive)

    >>> scale = Scale.fit(np.array([1.5, 4.0]), 4.0, 2, lowest=-1)
    >>> scale.exponent, scale.digits, scale.grid
    (3, 2, -67)
    """

    exponent: int
    digits: int
    degree: int
    centre: tuple[int, ...] = ()

    @classmethod
    def fit(
        cls, values: Floats, largest: float, degree: int, *, lowest: int, margin: int = 0
    ) -> Scale:
        """Return a scale for values up to ``largest``, exact down to the bit 2**lowest.

        Two digits (70 bits) are enough for ordinary data. Magnitudes that are far apart get more
        digits, so that the small values are exact once the large ones have expired. When the
        maximum number of digits is too few, bits below the grid are rounded. ``margin`` bits are
        left free above the largest value if the digits allow it.
        """
        if degree == 0:
            return cls(0, 0, 0)
        tight = max(frexp(largest)[1], _SMALLEST) if largest else 0
        most = _most_digits(degree)
        exponent = tight + margin
        digits = max(2, -(-(exponent - lowest) // DIGIT_BITS))
        if digits > most:
            exponent, digits = tight, most
        scale = cls(exponent, digits, degree, (0,) * digits)
        if degree <= 2 or not len(values):
            return scale
        some = np.sort(values[:: max(1, len(values) // _CENTRE_SAMPLE)])
        median = float(some[len(some) // 2])  # one of the values: the mean of two may overflow
        return replace(scale, centre=scale._cut(median))

    @classmethod
    def fit_column(
        cls, values: Floats, largest: float, smallest: float, degree: int
    ) -> Scale | None:
        """Return a scale that keeps every bit of a column of finite values; None if none does."""
        exponent, lowest = bits_of(largest, smallest)
        if exponent - lowest > 2 * DIGIT_BITS:
            lowest = lowest_bit(values)  # round numbers need fewer digits than the bound suggests
        if not cls.can_span(exponent, lowest, degree):
            return None
        return cls.fit(values, largest, degree, lowest=lowest)

    @classmethod
    def fit_most(cls, values: Floats, degree: int) -> tuple[Scale, npt.NDArray[np.bool_]]:
        """Return a scale around the median magnitude, and a mask of the values it cannot hold."""
        exponents = np.frexp(values[values != 0])[1]
        exponent = int(np.median(exponents)) + _ABOVE_MIDDLE if len(exponents) else 0
        exponent = min(max(exponent, _SMALLEST), _LARGEST)
        lowest = exponent - DIGIT_BITS * _most_digits(degree)
        scale = cls.fit(values, 2.0 ** (exponent - 1), degree, lowest=lowest)
        sizes = np.abs(values)
        with np.errstate(over="ignore", under="ignore"):
            units = np.ldexp(sizes, -lowest)
        held = (sizes < 2.0**exponent) & (units >= 1.0) & (units == np.rint(units))
        return scale, ~held & (values != 0)

    @staticmethod
    def can_span(exponent: int, lowest: int, degree: int) -> bool:
        """Return whether a scale of this degree can hold bits from 2**exponent to 2**lowest."""
        return exponent - lowest <= _most_digits(degree) * DIGIT_BITS

    @property
    def layout(self) -> Layout:
        """Return the shape of a summary as four tuples whose lengths a kernel is compiled for:

        digits, pairs of digits, powers of 3 and more, and words per such power.
        """
        return _layout(self.digits, self.degree)

    @property
    def words(self) -> int:
        """Return the number of 64-bit words in a summary."""
        return _words(self.digits, self.degree)

    @property
    def grid(self) -> int:
        """Return the exponent of the lowest bit that is kept."""
        return self.exponent - DIGIT_BITS * self.digits

    def up_to(self, degree: int) -> tuple[Layout, int]:
        """Return the layout and the words of the sums that a game of this degree needs.

        Powers of 3 and more all have the width of the highest one, so all or none are included.
        """
        least = self.degree if degree > 2 else min(degree, self.degree)
        return _layout(self.digits, least), _words(self.digits, least)

    def holds(self, values: Floats, largest: float) -> bool:
        """Return whether every one of these values fits to its last bit."""
        return self.widen(largest, lowest_bit(values, self.grid)) == self

    def widen(self, largest: float, lowest: int) -> Scale | None:
        """Return this scale with digits added above for ``largest`` and below for 2**lowest.

        Returns the same scale if nothing is missing, and None if it would need too many digits.
        ``convert`` carries summaries over to the result exactly.
        """
        above = frexp(largest)[1] - self.exponent if largest else 0
        top = max(0, -(-above // DIGIT_BITS))
        below = max(0, -(-(self.grid - lowest) // DIGIT_BITS))
        if not top and not below:
            return self
        if self.digits + top + below > _most_digits(self.degree):
            return None
        return replace(
            self,
            exponent=self.exponent + DIGIT_BITS * top,
            digits=self.digits + top + below,
            centre=(0,) * top + self.centre + (0,) * below,
        )

    def _cut(self, value: float) -> tuple[int, ...]:
        """Return the digits of one value, by the same steps as the kernel ``cut``."""
        digits, rest = [], value * 2.0**-self.exponent
        for _ in range(self.digits):
            rest *= 2.0**DIGIT_BITS
            digits.append(round(rest))
            rest -= digits[-1]
        return tuple(digits)

    def values_of(self, digits: Words) -> Floats:
        """Return the values with these digits, int64[n, D]; exact unless a value was rounded."""
        values = np.zeros(len(digits))
        for j in range(self.digits):
            values += np.ldexp(digits[:, j].astype(np.float64), -DIGIT_BITS * (j + 1))
        # the exponent comes last: the first digit of the largest doubles, rounded up, is 2**1024
        return np.ldexp(values, self.exponent)

    def decode(self, summary: Words) -> tuple[int, list[int]]:
        """Return a summary as integers: the count, then Σ q, Σ q², Σ (q - centre)³ … in grid units.

        Equal state means equal integers.
        """
        digits, _, powers, width = (len(part) for part in self.layout)
        sums: list[int] = []
        if digits:
            sums.append(sum(int(summary[1 + j]) << _shift(j, digits) for j in range(digits)))
        at = 1 + digits
        if self.degree >= 2:
            second = 0
            for i, j in self._pairs():
                both = 1 if i == j else 2
                pair = _join_words(summary, at, 2)
                second += both * pair << (_shift(i, digits) + _shift(j, digits))
                at += 2
            sums.append(second)
        for _ in range(powers):
            sums.append(_join_words(summary, at, width))
            at += width
        return int(summary[0]), sums

    def encode(self, count: int, sums: Sequence[int]) -> Words:
        """Return a summary that ``decode`` turns into these integers."""
        words = [0] * self.words
        digits, _, powers, width = (len(part) for part in self.layout)
        words[0] = count
        for j, part in enumerate(_cut_integer(sums[0], DIGIT_BITS, digits) if digits else []):
            words[1 + j] = part
        if self.degree >= 2:
            pairs = self._pairs()
            for j, part in enumerate(_cut_integer(sums[1], 2 * DIGIT_BITS, digits)):
                words[pairs[j, j] : pairs[j, j] + 2] = _split_words(part, 2)
        for p in range(powers):
            at = self.words - (powers - p) * width
            words[at : at + width] = _split_words(sums[2 + p], width)
        return np.array(words, np.int64)

    def convert(self, summaries: Words, wider: Scale) -> Words:
        """Return summaries, int64[n, words], under a scale that ``widen`` has returned: exact.

        The added digits are 0 in every row summed so far, so digit sums only move to other words.
        Powers of 3 and more are integers in grid units, and shift by the digits added below.
        """
        below = (self.grid - wider.grid) // DIGIT_BITS
        top = wider.digits - self.digits - below
        moved = np.zeros((len(summaries), wider.words), np.int64)
        plain = 1 + self.digits
        moved[:, 0] = summaries[:, 0]
        moved[:, 1 + top : plain + top] = summaries[:, 1:plain]
        from_pairs, to_pairs = self._pairs(), wider._pairs()
        for (i, j), word in from_pairs.items():
            at = to_pairs[i + top, j + top]
            moved[:, at : at + 2] = summaries[:, word : word + 2]
        start, width = plain + 2 * len(from_pairs), len(wider.layout[3])
        after = 1 + wider.digits + 2 * len(to_pairs)
        for p in range(len(self.layout[2])):
            shift = DIGIT_BITS * below * (p + 3)
            for row, summary in zip(moved, summaries, strict=True):
                power = _join_words(summary, start, len(self.layout[3])) << shift
                row[after : after + width] = _split_words(power, width)
            start, after = start + len(self.layout[3]), after + width
        return moved

    def _pairs(self) -> dict[tuple[int, int], int]:
        """Return the first word of each pair of digits."""
        if self.degree < 2:
            return {}
        pairs = [(i, j) for i in range(self.digits) for j in range(i, self.digits)]
        return {pair: 1 + self.digits + 2 * k for k, pair in enumerate(pairs)}


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


def _most_digits(degree: int) -> int:
    return min(MAX_DIGITS, _MOST_BITS // (DIGIT_BITS * max(1, degree)))


def _cut_integer(total: int, bits: int, count: int) -> list[int]:
    """Return an integer as ``count`` digits of ``bits`` bits, top first; the top one is signed."""
    top = total >> (bits * (count - 1))
    return [top] + [total >> (bits * k) & (2**bits - 1) for k in range(count - 2, -1, -1)]


def _shift(digit: int, digits: int) -> int:
    return DIGIT_BITS * (digits - 1 - digit)


def _join_words(words: Words, start: int, width: int) -> int:
    """Return one integer from its two's complement words, low word first."""
    row = [int(w) for w in words[start : start + width]]
    low = sum((w % 2**64) << (64 * k) for k, w in enumerate(row[:-1]))
    return low + (row[-1] << (64 * (width - 1)))


def _split_words(total: int, count: int) -> list[int]:
    """Return the signed 64-bit words of an integer: the inverse of ``_join_words``."""
    words = [(total >> (64 * w)) % 2**64 for w in range(count)]
    return [w - 2**64 if w >= 2**63 else w for w in words]
