"""Choosing a scale, and carrying exact sums from one scale to the next."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ids.kernels.digits import cut
from ids.model.scale import DIGIT_BITS, MAX_DIGITS, Scale

__all__ = ["cut_column", "decode", "encode", "fit", "grid", "rescale", "widen"]

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.int64]

_SAMPLE = 1024
_MANTISSA = 53
_SMALLEST = -900  # below this exponent 2**-exponent or a digit's unit would leave the doubles
_MAX_POWER_DIGITS = 3  # higher powers of wider values would leave the doubles when read back


def fit(values: Floats, largest: float, degree: int, *, margin: int = 0, least: int = 2) -> Scale:
    """A scale for these values: room for the largest, every bit of the typical one.

    ``margin`` bits of head-room are left above the largest, ``least`` digits given. Two digits
    (70 bits) serve ordinary data; a column whose largest value dwarfs its median gets more, so that windows without the
    outlier lose nothing. Costs a look at 1,024 values.
    """
    if degree == 0:
        return Scale(0, 0, 0)
    exponent = max(int(np.frexp(largest)[1]) + margin, _SMALLEST) if largest else 0
    typical = _typical(values, exponent)
    digits = max(least, -(-(exponent - typical + _MANTISSA) // DIGIT_BITS))
    digits = min(digits, _most_digits(degree))
    scale = Scale(exponent, digits, degree, (0,) * digits)
    if degree <= 2 or not len(values):
        return scale
    middle = np.array([np.median(_some(values))])
    return replace(scale, centre=tuple(int(q) for q in cut_column(middle, scale)[0]))


def widen(scale: Scale, values: Floats, largest: float, *, finer: bool) -> Scale | None:
    """The scale with digits added on top, so that ``largest`` fits, and below if ``finer``.

    Sums carry over exactly (``rescale``). The scale itself if nothing is missing; None if more
    digits would be needed than there are.
    """
    above = int(np.frexp(largest)[1]) - scale.exponent if largest else 0
    top = max(0, -(-above // DIGIT_BITS))
    missing = grid(scale) - (_typical(values, scale.exponent) - _MANTISSA)
    below = max(0, -(-missing // DIGIT_BITS)) if finer else 0
    most = _most_digits(scale.degree)
    below = min(below, max(0, most - scale.digits - top))
    if scale.digits + top > most:
        return None
    return replace(
        scale,
        exponent=scale.exponent + DIGIT_BITS * top,
        digits=scale.digits + top + below,
        centre=(0,) * top + scale.centre + (0,) * below,
    )


def _some(values: Floats) -> Floats:
    return values[:: max(1, len(values) // _SAMPLE)]


def _typical(values: Floats, otherwise: int) -> int:
    """The exponent of a typical magnitude: the median of some that are not 0."""
    some = np.abs(_some(values))
    some = some[some > 0]
    return max(int(np.frexp(np.median(some))[1]), _SMALLEST) if len(some) else otherwise


def _most_digits(degree: int) -> int:
    return MAX_DIGITS if degree <= 2 else _MAX_POWER_DIGITS


def cut_column(values: Floats, scale: Scale) -> Words:
    """The digits of a column, int64[n, max(1, D)]."""
    digits = np.zeros((len(values), max(1, scale.digits)), np.int64)
    if scale.digits:
        cut(values, 2.0**-scale.exponent, scale.layout, digits)
    return digits


def grid(scale: Scale) -> int:
    """The exponent of the smallest unit that counts."""
    return scale.exponent - DIGIT_BITS * scale.digits


def decode(words: Words, scale: Scale) -> tuple[int, list[int]]:
    """A summary as plain integers: m, then Σ q, Σ q², Σ (q - centre)³ … in grid units."""
    digits, pairs, powers, width = (len(part) for part in scale.layout)
    row = [int(w) for w in words]
    sums: list[int] = []
    if digits:
        sums.append(sum(row[1 + j] << _shift(j, digits) for j in range(digits)))
    at = 1 + digits
    if pairs:
        second = 0
        for i in range(digits):
            for j in range(i, digits):
                product = (row[at] % 2**64) + (row[at + 1] << 64)
                both = 1 if i == j else 2
                second += both * product << (_shift(i, digits) + _shift(j, digits))
                at += 2
        sums.append(second)
    for _ in range(powers):
        low = sum((row[at + w] % 2**64) << (64 * w) for w in range(width - 1))
        sums.append(low + (row[at + width - 1] << (64 * (width - 1))))
        at += width
    return row[0], sums


def encode(members: int, sums: list[int], scale: Scale) -> Words:
    """The inverse of ``decode`` (one of the equal ways to spread a sum over its digits)."""
    digits, pairs, powers, width = (len(part) for part in scale.layout)
    row = [members]
    if digits:
        row += _spread(sums[0], digits, DIGIT_BITS)
    if pairs:
        squares = iter(_spread(sums[1], digits, 2 * DIGIT_BITS))
        for i in range(digits):
            for j in range(i, digits):
                row += _words(next(squares) if i == j else 0, 2)
    for p in range(powers):
        row += _words(sums[2 + p], width)
    return np.array(row, dtype=np.int64)


def rescale(summary: Words, old: Scale, new: Scale) -> Words:
    """The same exact sums under a scale whose grid is as fine or finer."""
    finer = grid(old) - grid(new)
    members, sums = decode(summary, old)
    return encode(members, [s << (finer * (d + 1)) for d, s in enumerate(sums)], new)


def _shift(digit: int, digits: int) -> int:
    return DIGIT_BITS * (digits - 1 - digit)


def _spread(total: int, digits: int, bits: int) -> list[int]:
    """``total`` in base 2**bits, top first; the top digit takes what is left."""
    spread = []
    for _ in range(digits - 1):
        low = total % 2**bits
        spread.append(low)
        total = (total - low) >> bits
    return [total, *reversed(spread)]


def _words(total: int, count: int) -> list[int]:
    """Two's complement, low word first, each as a signed word."""
    words = [(total >> (64 * w)) % 2**64 for w in range(count)]
    return [w - 2**64 if w >= 2**63 else w for w in words]
