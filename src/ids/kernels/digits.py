"""Values to digits, and rows into summaries.

A summary is a row of int64 words (see ``ids.model.scale``):

    word 0            m, the number of rows
    words 1 … D       Σ q_j, top digit first
    then 2 per pair   Σ q_i·q_j for i <= j, 128 bits each, low word first (degree >= 2)
    then              Σ (Σ_j (q_j - centre_j)·2**…)**d for d = 3 … degree, low word first

``layout`` is the nested tuple of ``Scale.layout``: its lengths are compile-time constants, so the
loops over digits unroll.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np
from numba import njit

from ids.kernels.compiling import compiled
from ids.kernels.wide import mul_add, power_add
from ids.model.scale import DIGIT_BITS

__all__ = ["accumulate", "cut", "cut_one"]

_RADIX = float(2**DIGIT_BITS)


@njit(inline="always")
def cut_one(value, unit, layout, digits):
    """One value's digits, top first: ``value * unit`` must lie in (-1, 1).

    digits  int64[D]  changed in place

    Each step is exact: rint keeps the top bits, the rest is what was left.
    """
    rest = value * unit
    for j in range(len(layout[0])):
        rest *= _RADIX
        top = np.rint(rest)
        rest -= top
        digits[j] = np.int64(top)


@compiled()
def cut(values, unit, layout, digits):
    """Every value's digits: ``cut_one`` over a column.

    values  float64[n]
    unit    2**-exponent
    digits  int64[n, D]  changed in place

    O(n·D), allocates nothing. Twin: ``tests/oracles/recount.py``.
    """
    for i in range(len(values)):
        cut_one(values[i], unit, layout, digits[i])


@njit(inline="always")
def accumulate(summaries, atom, digits, centre, scratch, layout, sign):
    """Add ``sign`` times one row to its atom's summary.

    summaries  int64[a, words]  changed in place
    digits     int64[D]         the row's digits
    centre     int64[D]         subtracted before powers of 3 and more
    scratch    int64[D]         room for the centred digits
    sign       +1 inserted, -1 expired
    """
    count = len(layout[0])
    summaries[atom, 0] += sign
    for j in range(count):
        summaries[atom, 1 + j] += sign * digits[j]
    word = 1 + count
    if len(layout[1]) > 0:
        for i in range(count):
            signed = sign * digits[i]
            for j in range(i, count):
                low, high = mul_add(
                    summaries[atom, word], summaries[atom, word + 1], signed, digits[j]
                )
                summaries[atom, word] = low
                summaries[atom, word + 1] = high
                word += 2
    if len(layout[2]) > 0:
        for j in range(count):
            scratch[j] = digits[j] - centre[j]
        power_add(summaries, np.int64(atom), np.int64(word), scratch, layout, np.int64(sign))
