"""Choosing a scale, and carrying exact sums from one scale to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ids.kernels import cut
from ids.model import DIGIT_BITS, MAX_DIGITS, Scale, bits_of

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.int64]

_SAMPLE = 1024  # values whose median is taken for the centre: any centre gives the same sums
_MANTISSA = 53
_SMALLEST = -900  # below this exponent 2**-exponent or a digit's unit would leave the doubles
_LARGEST = 1000
_ABOVE_MIDDLE = 60  # bits of room above a magnitude in the middle, where not all can be held
_MOST_BITS = 960  # a power of more bits would leave the doubles when it is read back


def fit(values: Floats, largest: float, degree: int, *, lowest: int, margin: int = 0) -> Scale:
    """A scale for these values: room for the largest, and every bit down to 2**lowest.

    Two digits (70 bits) serve ordinary data; where magnitudes lie far apart there are more, so
    that a window without the large values loses nothing. Where there are no more digits to give,
    what lies below the grid is rounded. ``margin`` bits of head-room are left above the largest
    where the digits suffice.
    """
    if degree == 0:
        return Scale(0, 0, 0)
    tight = max(int(np.frexp(largest)[1]), _SMALLEST) if largest else 0
    most = _most_digits(degree)
    exponent = tight + margin
    digits = max(2, -(-(exponent - lowest) // DIGIT_BITS))
    if digits > most:
        exponent, digits = tight, most
    scale = Scale(exponent, digits, degree, (0,) * digits)
    if degree <= 2 or not len(values):
        return scale
    some = np.sort(values[:: max(1, len(values) // _SAMPLE)])
    middle = some[len(some) // 2 :][:1]  # one of the values: the mean of two may overflow
    return replace(scale, centre=tuple(int(q) for q in cut_column(middle, scale)[0]))


def fit_column(values: Floats, largest: float, smallest: float, degree: int) -> Scale | None:
    """A scale that holds every bit of a whole column of finite values; None if there is none."""
    exponent, lowest = bits_of(largest, smallest)
    if exponent - lowest > 2 * DIGIT_BITS:
        lowest = lowest_bit(values)  # round numbers need fewer digits than they might
    if not spans(exponent, lowest, degree):
        return None
    return fit(values, largest, degree, lowest=lowest)


def fit_most(values: Floats, degree: int) -> tuple[Scale, npt.NDArray[np.bool_]]:
    """A scale about the middle of the magnitudes, and which values it does not hold."""
    exponents = np.frexp(values[values != 0])[1]
    exponent = int(np.median(exponents)) + _ABOVE_MIDDLE if len(exponents) else 0
    exponent = min(max(exponent, _SMALLEST), _LARGEST)
    lowest = exponent - DIGIT_BITS * _most_digits(degree)
    scale = fit(values, 2.0 ** (exponent - 1), degree, lowest=lowest)
    sizes = np.abs(values)
    with np.errstate(over="ignore", under="ignore"):
        units = np.ldexp(sizes, -lowest)
    held = (sizes < 2.0**exponent) & (units >= 1.0) & (units == np.rint(units))
    return scale, ~held & (values != 0)


def spans(exponent: int, lowest: int, degree: int) -> bool:
    """Whether a scale of that degree can hold bits from 2**exponent down to 2**lowest."""
    return exponent - lowest <= _most_digits(degree) * DIGIT_BITS


def widen(scale: Scale, largest: float, lowest: int) -> Scale | None:
    """The scale with digits added: on top for ``largest``, below for the bit 2**lowest.

    Sums carry over exactly (``rescale``). The scale itself if nothing is missing; None if more
    digits would be needed than there are.
    """
    above = int(np.frexp(largest)[1]) - scale.exponent if largest else 0
    top = max(0, -(-above // DIGIT_BITS))
    below = max(0, -(-(grid(scale) - lowest) // DIGIT_BITS))
    if scale.digits + top + below > _most_digits(scale.degree):
        return None
    return replace(
        scale,
        exponent=scale.exponent + DIGIT_BITS * top,
        digits=scale.digits + top + below,
        centre=(0,) * top + scale.centre + (0,) * below,
    )


def lowest_bit(values: Floats, enough: int | None = None) -> int:
    """The exponent of the last bit set in any value, or a bound on it that is ``enough`` or more.

    Costs a few passes; where the bound is enough, one.
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


def within(values: Floats, largest: float, scale: Scale) -> bool:
    """Whether the scale holds every one of these values to its last bit."""
    return widen(scale, largest, lowest_bit(values, grid(scale))) == scale


def _most_digits(degree: int) -> int:
    return min(MAX_DIGITS, _MOST_BITS // (DIGIT_BITS * max(1, degree)))


def cut_column(values: Floats, scale: Scale) -> Words:
    """The digits of a column, int64[n, max(1, D)]."""
    digits = np.zeros((len(values), max(1, scale.digits)), np.int64)
    if scale.digits:
        cut(values, 2.0**-scale.exponent, scale.layout, digits)
    return digits


def uncut(digits: Words, scale: Scale) -> Floats:
    """The values again, from their digits: exact where none was rounded."""
    values = np.zeros(len(digits))
    for j in range(scale.digits):
        values += np.ldexp(digits[:, j].astype(np.float64), -DIGIT_BITS * (j + 1))
    # at the end: the first digit of the largest doubles, rounded up, is 2**1024
    return np.ldexp(values, scale.exponent)


def grid(scale: Scale) -> int:
    """The exponent of the smallest unit that counts."""
    return scale.exponent - DIGIT_BITS * scale.digits


def decode(words: Words, scale: Scale) -> tuple[int, list[int]]:
    """A summary as plain integers: m, then Σ q, Σ q², Σ (q - centre)³ … in grid units."""
    digits, _, powers, width = (len(part) for part in scale.layout)
    sums: list[int] = []
    if digits:
        sums.append(sum(int(words[1 + j]) << _shift(j, digits) for j in range(digits)))
    at = 1 + digits
    if scale.degree >= 2:
        second = 0
        for i, j in _pairs(scale):
            both = 1 if i == j else 2
            second += both * _joined(words, at, 2) << (_shift(i, digits) + _shift(j, digits))
            at += 2
        sums.append(second)
    for _ in range(powers):
        sums.append(_joined(words, at, width))
        at += width
    return int(words[0]), sums


def rescale(summaries: Words, old: Scale, new: Scale) -> Words:
    """The same exact sums, int64[n, words], under a scale with digits added on either side.

    The added digits are 0 in every row summed so far: sums move to their new places as they are.
    Powers of 3 and more are whole integers in grid units, and shift by the digits added below.
    """
    below = (grid(old) - grid(new)) // DIGIT_BITS
    top = new.digits - old.digits - below
    moved = np.zeros((len(summaries), new.words), np.int64)
    plain = 1 + old.digits
    moved[:, 0] = summaries[:, 0]
    moved[:, 1 + top : plain + top] = summaries[:, 1:plain]
    from_pairs, to_pairs = _pairs(old), _pairs(new)
    for (i, j), word in from_pairs.items():
        at = to_pairs[i + top, j + top]
        moved[:, at : at + 2] = summaries[:, word : word + 2]
    start, width = plain + 2 * len(from_pairs), len(new.layout[3])
    after = 1 + new.digits + 2 * len(to_pairs)
    for p in range(len(old.layout[2])):
        shift = DIGIT_BITS * below * (p + 3)
        for row, summary in zip(moved, summaries, strict=True):
            power = _joined(summary, start, len(old.layout[3])) << shift
            row[after : after + width] = _words(power, width)
        start, after = start + len(old.layout[3]), after + width
    return moved


def encode(count: int, sums: Sequence[int], scale: Scale) -> Words:
    """A summary that ``decode`` reads as these integers."""
    words = [0] * scale.words
    digits, _, powers, width = (len(part) for part in scale.layout)
    words[0] = count
    for j, part in enumerate(_cut_integer(sums[0], DIGIT_BITS, digits) if digits else []):
        words[1 + j] = part
    if scale.degree >= 2:
        pairs = _pairs(scale)
        for j, part in enumerate(_cut_integer(sums[1], 2 * DIGIT_BITS, digits)):
            words[pairs[j, j] : pairs[j, j] + 2] = _words(part, 2)
    for p in range(powers):
        at = scale.words - (powers - p) * width
        words[at : at + width] = _words(sums[2 + p], width)
    return np.array(words, np.int64)


def _cut_integer(total: int, bits: int, count: int) -> list[int]:
    """An integer in ``count`` places of ``bits`` bits, top first; the top one takes the sign."""
    places = [total >> (bits * (count - 1))]
    return places + [total >> (bits * k) & (2**bits - 1) for k in range(count - 2, -1, -1)]


def _pairs(scale: Scale) -> dict[tuple[int, int], int]:
    """The first word of each pair of digits."""
    if scale.degree < 2:
        return {}
    pairs = [(i, j) for i in range(scale.digits) for j in range(i, scale.digits)]
    return {pair: 1 + scale.digits + 2 * k for k, pair in enumerate(pairs)}


def _shift(digit: int, digits: int) -> int:
    return DIGIT_BITS * (digits - 1 - digit)


def _joined(words: Words, start: int, width: int) -> int:
    """Two's complement, low word first, as one integer."""
    row = [int(w) for w in words[start : start + width]]
    low = sum((w % 2**64) << (64 * k) for k, w in enumerate(row[:-1]))
    return low + (row[-1] << (64 * (width - 1)))


def _words(total: int, count: int) -> list[int]:
    """The inverse of ``_joined``: each word as a signed one."""
    words = [(total >> (64 * w)) % 2**64 for w in range(count)]
    return [w - 2**64 if w >= 2**63 else w for w in words]
