"""Third and higher powers, moved from one centre to another without losing a bit.

Σ (q - c)**d is kept as a whole number of many words. Read about another centre k it is
Σ_i C(d, i)·(c - k)**(d - i)·Σ (q - c)**i, which cancels without end when c lies far away; so it is
worked out in whole numbers of the same width, modulo 2**(64·words), where signs take care of
themselves. What comes out is small and is then read as a pair.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np
from numba import njit

from ids.kernels.pairs import from_words, scale
from ids.kernels.wide import add_words, mul_add, multiply_words
from ids.model.scale import DIGIT_BITS, MAX_DIGITS

__all__ = ["recentre_powers"]

_DIGIT = np.int64(2**DIGIT_BITS)
_WEIGHT = tuple(2.0 ** (-DIGIT_BITS * k) for k in range(MAX_DIGITS + 1))


@njit
def _add_pair(number, low, high):
    """``number += (low, high)``, a 128-bit integer, over all its words."""
    sign = high >> 63
    carry = np.uint64(0)
    for w in range(len(number)):
        word = low if w == 0 else (high if w == 1 else sign)
        partial = np.uint64(number[w]) + carry
        over = partial < carry
        whole = partial + np.uint64(word)
        over = over or whole < np.uint64(word)
        carry = np.uint64(1) if over else np.uint64(0)
        number[w] = np.int64(whole)


@njit
def _scale_word(number, factor, scratch):
    """``number *= factor`` for a factor of one word."""
    scratch[:] = factor >> 63
    scratch[0] = factor
    multiply_words(number, scratch)


@njit
def _first(total, centre, layout, number, scratch):
    """Σ (q - c)."""
    number[:] = 0
    for j in range(len(layout[0])):
        _scale_word(number, _DIGIT, scratch)
        rest = total[1 + j] - total[0] * centre[j]
        _add_pair(number, rest, rest >> 63)


@njit
def _second(total, centre, layout, number, scratch):
    """Σ (q - c)²: products of digits of one weight together, highest weight first."""
    count = len(layout[0])
    number[:] = 0
    for weight in range(2 * count - 1):
        _scale_word(number, _DIGIT, scratch)
        word = 1 + count
        for i in range(count):
            for j in range(i, count):
                if i + j == weight:
                    low, high = mul_add(total[word], total[word + 1], -centre[i], total[1 + j])
                    rest = total[1 + i] - centre[i] * total[0]
                    low, high = mul_add(low, high, -centre[j], rest)
                    _add_pair(number, low, high)
                    if i != j:
                        _add_pair(number, low, high)
                word += 2


@njit
def recentre_powers(total, centre, offset, layout, sums):
    """Σ (y - offset)**d for d = 3 … degree, as pairs in units of 2**exponent to the d.

    total   int64[words]       exact sums; powers of 3 and more about ``centre``
    centre  int64[D]           the scale's centre
    offset  int64[D]           the digits to read about
    sums    float64[degree,2]  rows 2, 3, … changed in place

    O(degree² · words²), allocates a few words.
    """
    count = len(layout[0])
    width = len(layout[3])
    degree = 2 + len(layout[2])
    powers = np.zeros((degree + 1, width), np.int64)
    scratch = np.zeros(width, np.int64)
    shift = np.zeros(width, np.int64)
    _add_pair(powers[0], total[0], total[0] >> 63)
    _first(total, centre, layout, powers[1], scratch)
    _second(total, centre, layout, powers[2], scratch)
    start = 1 + count + 2 * len(layout[1])
    for p in range(len(layout[2])):
        powers[3 + p] = total[start + p * width : start + (p + 1) * width]
    for j in range(count):
        _scale_word(shift, _DIGIT, scratch)
        _add_pair(shift, centre[j] - offset[j], (centre[j] - offset[j]) >> 63)
    moved = np.zeros(width, np.int64)
    term = np.zeros(width, np.int64)
    weight = _WEIGHT[count] * _WEIGHT[count]
    for d in range(3, degree + 1):
        weight *= _WEIGHT[count]
        moved[:] = powers[0]
        for i in range(1, d + 1):
            multiply_words(moved, shift)
            term[:] = powers[i]
            _scale_word(term, _binomial(d, i), scratch)
            add_words(moved, term, 0, width)
        sums[d - 1, 0], sums[d - 1, 1] = scale(from_words(moved, 0, width), weight)


@njit
def _binomial(d, i):
    chosen = np.int64(1)
    for k in range(i):
        chosen = chosen * (d - k) // (k + 1)
    return chosen
