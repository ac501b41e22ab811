"""The slide loop of a query that emits at every row: exact sums and closed form in one pass.

If a window emits after each row, copying and centring the sums per emit costs far more than
maintaining them. Here the sums of each item over a block of emits are running totals of integers,
converted to exact pairs of doubles. The closed form of the first-degree games (SUM, COUNT, AVG)
then follows for the whole block. Every loop except the running total is vectorised: no branches, no
calls, a fixed length, and the columns of one scratch array at constant distances. ``replay`` and
``centre_block`` give the same numbers, bit for bit.

Results are written with non-temporal stores, eight doubles at a time. A result column is not read
again soon. Ordinary stores would first load each cache line only to overwrite it; these do not,
which halves the memory traffic of a query that is bound by its output.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic

from ids.kernels.closed_form import attribution
from ids.kernels.compiler import compiled
from ids.kernels.wide_numbers import deviation_of, mean_of, two_sum
from ids.model import DIGIT_BITS

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


DENSE_ROWS = 2 ** (52 - DIGIT_BITS)  # the sum of this many digits is an exact double
DENSE_ITEMS = 62  # one bit of a signed word per item, and one for the window

BLOCK = 136  # emits per block: the scratch array fits into the L1 cache, in whole cache lines
_LANES = 8  # doubles written at once
_RADIX = float(2**DIGIT_BITS)

# Without checks for division by zero, which would prevent vectorisation.
_loop = njit(nogil=True, error_model="numpy")


@intrinsic
def _store_lanes(_typing, target, row, place, source, start):
    """Store ``target[row, place : place + 8] = source[start : start + 8]``, bypassing the caches.

    target  float64[r, n]  C-contiguous; the address written must be aligned to 64 bytes
    source  float64[m]
    """
    signature = types.void(target, types.int64, types.int64, source, types.int64)

    def emit(context, builder, signature, arguments):
        into = context.make_array(signature.args[0])(context, builder, arguments[0])
        data = context.make_array(signature.args[3])(context, builder, arguments[3])
        width = builder.extract_value(into.shape, 1)
        at = builder.add(builder.mul(arguments[1], width), arguments[2])
        lanes = ir.VectorType(ir.DoubleType(), _LANES).as_pointer()
        origin = builder.bitcast(builder.gep(data.data, [arguments[4]]), lanes)
        spot = builder.bitcast(builder.gep(into.data, [at]), lanes)
        store = builder.store(builder.load(origin, align=8), spot, align=64)
        hint = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        store.set_metadata("nontemporal", hint)
        return context.get_dummy_value()

    return signature, emit


@intrinsic
def _fence(_typing):
    """Make all stores so far visible to other threads."""

    def emit(context, builder, _signature, _arguments):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), emit


class Forms(NamedTuple):
    """First-degree games, and the output rows for their answers.

    by_count, by_total, by_mean  float64[g]  v = by_count·N + by_total·Σ y + by_mean·mean
    slope     float64[g, n]     the slope of the deviation, by N
    additive  bool[g]           whether the value is Σ_P y
    worth     int64[g]          output row of v, or -1
    answers   int64[g, i, 3]    output rows of value, share and lift of each item, or -1
    counts    int64             output row of the number of rows in the window, written as int64
    """

    by_count: npt.NDArray[np.float64]
    by_total: npt.NDArray[np.float64]
    by_mean: npt.NDArray[np.float64]
    slope: npt.NDArray[np.float64]
    additive: npt.NDArray[np.bool_]
    worth: npt.NDArray[np.int64]
    answers: npt.NDArray[np.int64]
    counts: int


@_loop
def _words(atoms, member, words):
    for i in range(len(atoms)):
        words[i] = member[atoms[i]]


@_loop
def _cut(values, unit, top, low):
    for i in range(len(values)):
        rest = values[i] * unit * _RADIX
        whole = np.rint(rest)
        top[i] = np.int64(whole)
        low[i] = np.int64(np.rint((rest - whole) * _RADIX))


@_loop
def _load(rows, member, start, size, unit, ints, column, place):
    """Write membership words and both digits of ``size`` rows to three columns, at ``place``."""
    words = column * BLOCK + place
    _words(rows.atom[start : start + size], member, ints[words : words + size])
    top = words + BLOCK
    low = top + BLOCK
    values = rows.values[start : start + size]
    _cut(values, unit, ints[top : top + size], ints[low : low + size])


# Columns of the integer scratch: arriving words and digits, expiring words and digits, then an
# item's change and, summed up, its m and digit sums.
@_loop
def _change(ints, item):
    """Compute the change of an item at each emit: arriving minus expiring, masked by membership."""
    for e in range(BLOCK):
        comes = -((ints[e] >> item) & 1)
        goes = -((ints[3 * BLOCK + e] >> item) & 1)
        ints[6 * BLOCK + e] = goes - comes
        ints[7 * BLOCK + e] = (ints[BLOCK + e] & comes) - (ints[4 * BLOCK + e] & goes)
        ints[8 * BLOCK + e] = (ints[2 * BLOCK + e] & comes) - (ints[5 * BLOCK + e] & goes)


@_loop
def _sum_up(ints, running, size):
    """Turn changes into totals, starting from the totals before this block."""
    members = running[0]
    top = running[1]
    low = running[2]
    for e in range(BLOCK):
        members += ints[6 * BLOCK + e]
        top += ints[7 * BLOCK + e]
        low += ints[8 * BLOCK + e]
        ints[6 * BLOCK + e] = members
        ints[7 * BLOCK + e] = top
        ints[8 * BLOCK + e] = low
    running[0] = ints[6 * BLOCK + size - 1]
    running[1] = ints[7 * BLOCK + size - 1]
    running[2] = ints[8 * BLOCK + size - 1]


# Columns of an item's doubles: m, Σ y as an exact pair, then value, share, lift.
@_loop
def _read(ints, item):
    """Convert totals to doubles: m, and Σ y as an exact pair in units of the lowest digit."""
    for e in range(BLOCK):
        top = float(ints[7 * BLOCK + e]) * _RADIX
        low = float(ints[8 * BLOCK + e])
        item[e] = float(ints[6 * BLOCK + e])
        item[BLOCK + e], item[2 * BLOCK + e] = two_sum(top, low)


# Columns of the window's doubles: N, the mean as a pair, Σ y rounded.
@_loop
def _average(item, window):
    """Compute the window's mean as a pair; 0 without players."""
    for e in range(BLOCK):
        players = item[e]
        mean, missing = mean_of(item[BLOCK + e], item[2 * BLOCK + e], players)
        window[e] = players
        window[BLOCK + e] = mean if players > 0.0 else 0.0
        window[2 * BLOCK + e] = missing if players > 0.0 else 0.0
        window[3 * BLOCK + e] = item[BLOCK + e] + item[2 * BLOCK + e]


# Columns of a game's doubles: v, slope, v/N, all in the measure's own units.
@_loop
def _weigh(window, forms, g, unit, game):
    slope = forms.slope[g]
    changes = 0
    for e in range(BLOCK):
        changes += window[e] != window[0]
    if changes == 0:
        game[BLOCK : 2 * BLOCK] = slope[np.int64(window[0])] * unit
    else:
        for e in range(BLOCK):
            # after the last emit of a short block the values are arbitrary
            players = min(max(np.int64(window[e]), 0), len(slope) - 1)
            game[BLOCK + e] = slope[players] * unit
    by_count = forms.by_count[g]
    by_total = forms.by_total[g] * unit
    by_mean = forms.by_mean[g] * unit
    for e in range(BLOCK):
        players = window[e]
        mean = window[BLOCK + e] + window[2 * BLOCK + e]
        worth = by_count * players + by_total * window[3 * BLOCK + e] + by_mean * mean
        game[e] = worth
        game[2 * BLOCK + e] = worth / players if players > 0.0 else 0.0


@_loop
def _close(item, window, game):
    """Evaluate the closed form of one game: lift = slope·(Σ_P y - m·mean), then value and share."""
    for e in range(BLOCK):
        members = item[e]
        deviation = deviation_of(
            item[BLOCK + e],
            item[2 * BLOCK + e],
            members,
            window[BLOCK + e],
            window[2 * BLOCK + e],
        )
        lift = game[BLOCK + e] * deviation
        value, share = attribution(
            members, window[e], game[e], game[2 * BLOCK + e], lift, 0.0, False
        )
        item[3 * BLOCK + e] = value
        item[4 * BLOCK + e] = share
        item[5 * BLOCK + e] = lift


@_loop
def _own_total(item, unit):
    """Write the value of an additive game; a branch in ``_close`` would slow down all games."""
    for e in range(BLOCK):
        item[3 * BLOCK + e] = (item[BLOCK + e] + item[2 * BLOCK + e]) * unit


@_loop
def _write(out, row, place, column, start, size):
    """Copy one column of answers to its output row (row -1: not requested)."""
    if row < 0:
        return
    if size == BLOCK and place % _LANES == 0:
        for e in range(0, BLOCK, _LANES):
            _store_lanes(out, row, place + e, column, start + e)
    else:
        for e in range(size):
            out[row, place + e] = column[start + e]


@_loop
def _answer(ints, running, item, window, games, forms, unit, out, place, size):
    """Process every item of one block: totals, then each game's closed form, then the output."""
    for k in range(len(running)):
        _change(ints, k)
        _sum_up(ints, running[k], size)
        _read(ints, item)
        if k == 0:
            _average(item, window)
        for g in range(len(games)):
            if k == 0:
                _weigh(window, forms, g, unit, games[g])
                _write(out, forms.worth[g], place, games[g], 0, size)
                continue
            _close(item, window, games[g])
            if forms.additive[g]:
                _own_total(item, unit)
            for part in range(3):
                row = forms.answers[g, k - 1, part]
                _write(out, row, place, item, (3 + part) * BLOCK, size)


@compiled(error_model="numpy")
def dense(rows, member, width, starts, first, stop, exponent, forms, out):
    """Compute emits ``first`` to ``stop`` of a count window that emits at every row.

    rows      ``slide.Rows``, key by key; emit e belongs to row e
    width     the rows in a full window
    member    int64[a + 1]  bit 0: the atom's rows are players; bit k: item k - 1 holds
    starts    int64[k + 1]  the first row of each key, and the end
    exponent  of the scale (two digits)
    forms     the games, and the output rows for their answers
    out       float64[r, n] out: answers; n is a multiple of 8, rows are aligned to 64 bytes

    O(emits · items), allocates a few KiB. Ranges of emits are independent and can run on threads.
    """
    unit = 2.0**-exponent
    lowest = 2.0 ** (exponent - 2 * DIGIT_BITS)
    items = forms.answers.shape[1] + 1
    ints = np.zeros(9 * BLOCK, np.int64)
    running = np.zeros((items, 3), np.int64)
    item = np.zeros(6 * BLOCK)
    window = np.zeros(4 * BLOCK)
    games = np.zeros((len(forms.worth), 3 * BLOCK))
    counts = np.zeros(BLOCK, np.int64)
    for key in range(len(starts) - 1):
        begin = max(starts[key], first)
        end = min(starts[key + 1], stop)
        if begin >= end:
            continue
        running[:] = 0
        for at in range(max(starts[key], begin - width), begin, BLOCK):
            # rows in the window before this range: summed, but nothing is emitted
            size = min(BLOCK, begin - at)
            _load(rows, member, at, size, unit, ints, 0, 0)
            ints[3 * BLOCK : 6 * BLOCK] = 0
            for k in range(items):
                _change(ints, k)
                _sum_up(ints, running[k], size)
        for at in range(begin, end, BLOCK):
            size = min(BLOCK, end - at)
            _load(rows, member, at, size, unit, ints, 0, 0)
            none = min(max(starts[key] + width - at, 0), size)
            ints[3 * BLOCK : 3 * BLOCK + none] = 0
            _load(rows, member, at - width + none, size - none, unit, ints, 3, none)
            for e in range(BLOCK):
                counts[e] = min(at + 1 - starts[key] + e, width)
            _write(out, forms.counts, at, counts.view(np.float64), 0, size)
            _answer(ints, running, item, window, games, forms, lowest, out, at, size)
    _fence()
