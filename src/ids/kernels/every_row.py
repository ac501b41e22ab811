"""The slide loop of a query that emits at every row: exact sums and closed form in one pass.

When a window emits after each row, copying sums and centring them emit by emit costs far more than
maintaining them. Here each item's sums over a block of emits are a running total of integers, read
as exact pairs of doubles, and the closed form of the first-degree games (SUM, COUNT, AVG) follows
for the whole block. Every loop but the running total runs on vectors: no branches, no calls, fixed
length, columns of one scratch array at constant distances. Twin: ``replay`` with ``centre_block``,
whose numbers these are, to the bit.

Results are written past the caches, eight doubles at a time. A result column is not read again
soon: ordinary stores would first fetch each line of memory only to overwrite it; these do not,
which halves the traffic of a query that is bound by its output.
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
from ids.kernels.compile import compiled
from ids.kernels.wide_numbers import deviation_of, mean_of, two_sum
from ids.model import DIGIT_BITS

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


DENSE_ROWS = 2 ** (52 - DIGIT_BITS)  # so many digits sum to a whole number a double holds
DENSE_ITEMS = 62  # with the window itself, one bit each of a signed word

BLOCK = 136  # emits at a time: scratch stays in the nearest cache, whole lines each
_LANES = 8  # doubles written at once
_RADIX = float(2**DIGIT_BITS)

# The numbers of a kernel without bounds or zero checks: they would keep loops from vectors.
_loop = njit(nogil=True, error_model="numpy")


@intrinsic
def _store_lanes(_typing, target, row, place, source, start):
    """``target[row, place : place + 8] = source[start : start + 8]``, past the caches.

    target  float64[r, n]  C-contiguous; the place written must be aligned to 64 bytes
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
    """Everything stored so far is visible to other threads from here on."""

    def emit(context, builder, _signature, _arguments):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), emit


class Forms(NamedTuple):
    """First-degree games, and where their answers go.

    by_count, by_total, by_mean  float64[g]  v = by_count·N + by_total·Σ y + by_mean·mean
    slope     float64[g, n]     the factor of the deviation, by N
    additive  bool[g]           whether the value is Σ_P y itself
    worth     int64[g]          output row of v, or -1
    answers   int64[g, i, 3]    output rows of value, share and lift of each item, or -1
    counts    int64             output row of the rows in the window, written as int64
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
    """Membership words and both digits of ``size`` rows, to three columns from ``place`` on."""
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
    """What each emit changes in an item: arriving less expiring, masked by membership."""
    for e in range(BLOCK):
        comes = -((ints[e] >> item) & 1)
        goes = -((ints[3 * BLOCK + e] >> item) & 1)
        ints[6 * BLOCK + e] = goes - comes
        ints[7 * BLOCK + e] = (ints[BLOCK + e] & comes) - (ints[4 * BLOCK + e] & goes)
        ints[8 * BLOCK + e] = (ints[2 * BLOCK + e] & comes) - (ints[5 * BLOCK + e] & goes)


@_loop
def _sum_up(ints, running, size):
    """Changes to totals, from the totals before this block on."""
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
    """Totals as doubles: m, and Σ y as an exact pair in units of the lowest digit."""
    for e in range(BLOCK):
        top = float(ints[7 * BLOCK + e]) * _RADIX
        low = float(ints[8 * BLOCK + e])
        item[e] = float(ints[6 * BLOCK + e])
        item[BLOCK + e], item[2 * BLOCK + e] = two_sum(top, low)


# Columns of the window's doubles: N, the mean as a pair, Σ y rounded.
@_loop
def _average(item, window):
    """The window's mean as a pair; 0 where there is no player."""
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
            # lanes behind the last emit of a short block hold anything at all
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
    """The closed form of one game: lift = slope·(Σ_P y - m·mean), then value and share."""
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
    """The value of an additive game; apart, as a choice inside ``_close`` would cost all games."""
    for e in range(BLOCK):
        item[3 * BLOCK + e] = (item[BLOCK + e] + item[2 * BLOCK + e]) * unit


@_loop
def _write(out, row, place, column, start, size):
    """One column of answers to its output row (row -1: nobody asked)."""
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
    """Every item of one block: totals, then each game's closed form, then out."""
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
    """Emits ``first`` to ``stop`` of a count window of ``width`` rows that emits at every row.

    rows      ``slide.Rows``, key by key; emit e is that of row e
    member    int64[a + 1]  bit 0: the atom's rows are players; bit k: item k - 1 holds
    starts    int64[k + 1]  where each key's rows begin
    exponent  of the scale (two digits)
    forms     the games, and where their answers go
    out       float64[r, n] out: answers; n a multiple of 8, rows aligned to 64 bytes

    O(emits · items), allocates a few KiB. Ranges of emits are independent: run them on threads.
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
            # rows already inside when this range begins: summed, but nothing is emitted
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
