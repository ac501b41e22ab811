"""Blocks of an index: rows sorted by the values of one column.

Every value is converted to a *key*, an int64 in the order of the values: an integer, a timestamp, a
code or a Boolean as it is; a double by its bits, with NaN above the rest and only one zero. The
*directory* of a block finds a key without reading the rows. It has one entry per distinct key if
these are few, else one entry per ``_STRIDE`` positions. A lookup turns keys into slices of blocks,
and slices into row positions or bits. Arrays that every lookup takes:

blocks  int64[b, 6]    first row, rows, rows not NULL, first and last entry of the directory, and
                       whether each distinct key has an entry; in window order
order   uint16[m]      block by block, the positions in the block, sorted by key
keys    int64[d]       the keys of the directories, and
starts  int32[d]       where in the block's order each begins
values, valid, double  the column's rows in the window, as ``build_block`` takes them
low     int64[k], high int64[k]   the requested keys: ascending intervals, both ends included
nulls   bool           whether NULL is requested
first   int            the number of the oldest row in the window: rows below it have expired
bounds  int32[b, k + 1, 2]   where each interval begins and ends in each block's order; NULLs last
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic

from ids.kernels.compiler import compiled

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


LOWEST, HIGHEST = -(2**63), 2**63 - 1
# With at least COMMON rows per distinct key, on average, every key gets a directory entry;
# otherwise there is one entry per _STRIDE positions.
COMMON, _STRIDE = 16, 32
_SIGN = np.uint64(2**63)
_INFINITY = 0x7FF0000000000000
_BYTE = np.uint64(8)
_MASK = np.uint64(255)
_ZERO = np.uint64(0)


@njit(inline="always")
def _key_of(value, double):
    """Return the key of a value; doubles are passed as their bits (``view(int64)``)."""
    bits = np.int64(value)
    if not double:
        return bits
    if (bits & np.int64(HIGHEST)) > np.int64(_INFINITY):
        return np.int64(HIGHEST)
    if bits >= 0:
        return bits
    return np.int64(0) if bits == np.int64(LOWEST) else bits ^ np.int64(HIGHEST)


@compiled()
def build_block(values, valid, double, at, count, order, into, keys, starts, entry):
    """Sort one block, NULLs last, and write its directory; equal keys stay in window order.

    values  int64[n] | int32[n] | uint8[n]  the column's rows in the window; doubles as their bits
    valid   bool[n]
    double  bool          whether ``values`` are the bits of doubles
    at      int           the block's first row in ``values``
    count   int           the block's rows, at most 65,536
    order   uint16[m]     the block's positions sorted by key, written from ``into`` on
    keys    int64[d]      the directory's keys, written from ``entry`` on
    starts  int32[d]      the position of each key in the order

    Returns (rows not NULL, entries written, whether each distinct key has an entry). There is at
    most one entry per ``COMMON`` rows, plus one. O(count · bytes in which the keys differ): a radix
    sort avoids mispredicted comparisons.
    Reference: a stable argsort in ``tests/state/test_index.py``.
    """
    key, place = np.empty(count, np.uint64), np.empty(count, np.uint16)
    known = 0
    missing = into + count
    low, high = ~_ZERO, _ZERO
    for i in range(count):
        if valid[at + i]:
            own = np.uint64(_key_of(values[at + i], double)) ^ _SIGN
            key[known] = own
            place[known] = np.uint16(i)
            known += 1
            low, high = min(low, own), max(high, own)
    for i in range(count - 1, -1, -1):
        if not valid[at + i]:
            missing -= 1
            order[missing] = np.uint16(i)
    for i in range(known):
        key[i] -= low
    key, place = _radix(key, place, known, high - low)
    for i in range(known):
        order[into + i] = place[i]
    written, own = _directory(key, known, low, keys, starts, entry)
    return known, written, own


@njit
def _radix(key, place, known, widest):
    """Sort keys and positions by key: one stable pass per byte of the widest key."""
    other, away = np.empty_like(key), np.empty_like(place)
    shift = _ZERO
    while known > 1 and widest > _ZERO:
        first = np.zeros(257, np.int64)
        for i in range(known):
            first[((key[i] >> shift) & _MASK) + np.uint64(1)] += 1
        if first.max() < known:
            for b in range(256):
                first[b + 1] += first[b]
            for i in range(known):
                byte = (key[i] >> shift) & _MASK
                to = first[byte]
                first[byte] = to + 1
                other[to] = key[i]
                away[to] = place[i]
            key, other = other, key
            place, away = away, place
        widest >>= _BYTE
        shift += _BYTE
    return key, place


@njit
def _directory(key, known, low, keys, starts, entry):
    distinct = 0
    for i in range(known):
        distinct += i == 0 or key[i] != key[i - 1]
    own = distinct * COMMON <= known
    at = entry
    for i in range(known):
        if (i == 0 or key[i] != key[i - 1]) if own else i % _STRIDE == 0:
            keys[at] = np.int64((key[i] + low) ^ _SIGN)
            starts[at] = np.int32(i)
            at += 1
    return at - entry, own


_FEW = 32
_SIX, _LOW = np.uint64(6), np.uint64(63)
_ONE = np.uint64(1)


@intrinsic
def _lowest_bit(_typing, _word):
    """Return the position of the lowest set bit; the word must not be 0."""

    def emit(_context, builder, _signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), emit


@njit(inline="always")
def _set_bit(bits, place):
    at = np.uint64(place)
    bits[at >> _SIX] |= _ONE << (at & _LOW)


@njit(inline="always")
def _emit_word(word, first, out, n):
    """Write ``first`` plus the position of each set bit; skip results below 0."""
    while word:
        place = first + np.int64(_lowest_bit(word))
        out[n] = place
        n += place >= 0
        word &= word - _ONE
    return n


@njit(inline="always")
def _at_or_above(ascending, entry, last, key):
    """Return the first entry that is not below the key, or ``last`` if there is none."""
    count = last - entry
    while count > 0:
        half = count >> 1
        beyond = ascending[entry + half] < key
        entry = entry + half + 1 if beyond else entry
        count = count - half - 1 if beyond else half
    return entry


@njit(inline="always")
def _refine(order, at, begin, end, values, double, key, shift):
    """Find the first live row, between two directory entries, whose key is not below ``key``.

    ``shift`` is the block's first row minus the oldest row in the window. If it is negative, the
    order contains expired rows whose values are gone; these are skipped one by one.
    """
    if shift < 0:
        for i in range(begin, end):
            row = shift + np.int64(order[at + i])
            if row >= 0 and not _key_of(values[row], double) < key:
                return i
        return end
    while begin < end:
        middle = (begin + end) >> 1
        if _key_of(values[shift + np.int64(order[at + middle])], double) < key:
            begin = middle + 1
        else:
            end = middle
    return begin


@compiled()
def find_slices(blocks, order, keys, starts, values, double, low, high, nulls, first, bounds):
    """Write where each interval begins and ends in each block; return the number of rows in them.

    O(blocks · intervals · log entries). Rows are read only if not every key has an entry: five per
    lookup.
    """
    total = 0
    origin = blocks[0, 0] if len(blocks) else 0
    for b in range(len(blocks)):
        known, entry, last, own = blocks[b, 2], blocks[b, 3], blocks[b, 4], blocks[b, 5]
        at, shift = blocks[b, 0] - origin, blocks[b, 0] - first
        for k in range(len(low)):
            for side in range(2):
                key = low[k]
                if side:
                    if high[k] == np.int64(HIGHEST):
                        bounds[b, k, 1] = known
                        break
                    key = high[k] + 1
                entry = _at_or_above(keys, entry, last, key)
                end = np.int64(starts[entry]) if entry < last else known
                if not own and entry > blocks[b, 3]:
                    begin = np.int64(starts[entry - 1]) + 1
                    end = _refine(order, at, begin, end, values, double, key, shift)
                bounds[b, k, side] = np.int32(end)
            total += bounds[b, k, 1] - bounds[b, k, 0]
        bounds[b, len(low), 0] = known
        bounds[b, len(low), 1] = blocks[b, 1] if nulls else known
        total += bounds[b, len(low), 1] - bounds[b, len(low), 0]
    return total


@njit(inline="always")
def _asked(value, valid, double, low, high, nulls):
    """Return whether a row's key is in one of the intervals."""
    if not valid:
        return nulls
    key = _key_of(value, double)
    if len(high) == 1:
        return (low[0] <= key) & (key <= high[0])
    k = _at_or_above(high, 0, len(high), key)
    return k < len(high) and low[k] <= key


@compiled()
def emit_slices(blocks, order, bounds, values, valid, double, low, high, nulls, first, out):
    """Write the positions in the window of the matching rows, ascending; return how many.

    Rows after the last block are checked one by one.
    out  int64[p]  large enough for the rows of the slices and those after the blocks

    O(matches): rows with one key are already in window order, a few rows are sorted, and many rows
    with several keys go through a bitmap of at most 1,024 words per block.
    """
    n = 0
    words = np.empty(0, np.uint64)
    origin = blocks[0, 0] if len(blocks) else 0
    behind = 0
    single = len(low) + nulls <= 1 and (nulls or len(low) == 0 or low[0] == high[0])
    for b in range(len(blocks)):
        at, shift = blocks[b, 0] - origin, blocks[b, 0] - first
        behind = shift + blocks[b, 1]
        rows = np.int64(0)
        for k in range(bounds.shape[1]):
            rows += bounds[b, k, 1] - bounds[b, k, 0]
        if single or rows <= _FEW:
            begun = n
            for k in range(bounds.shape[1]):
                for i in range(at + bounds[b, k, 0], at + bounds[b, k, 1]):
                    place = shift + np.int64(order[i])
                    out[n] = place
                    n += place >= 0
            if not single:
                _insert(out, begun, n)
        else:
            if not len(words):
                words = np.zeros(1024, np.uint64)
            n = _emit_straight(order, bounds[b], at, shift, words, out, n)
    for place in range(behind, len(values)):
        out[n] = place
        n += _asked(values[place], valid[place], double, low, high, nulls)
    return n


@njit
def _insert(out, begin, end):
    """Sort a few values by insertion."""
    for i in range(begin + 1, end):
        value, j = out[i], i
        while j > begin and out[j - 1] > value:
            out[j] = out[j - 1]
            j -= 1
        out[j] = value


@njit
def _emit_straight(order, bounds, at, shift, words, out, n):
    """Write many rows of one block in window order, through the bitmap ``words``, left all 0."""
    for k in range(len(bounds)):
        for i in range(at + bounds[k, 0], at + bounds[k, 1]):
            _set_bit(words, order[i])
    for w in range(len(words)):
        n = _emit_word(words[w], shift + (w << 6), out, n)
        words[w] = _ZERO
    return n


@compiled()
def mark_slices(blocks, order, bounds, values, valid, double, low, high, nulls, first, bits):
    """Like ``emit_slices``, but set the bit of each position in ``bits``, uint64[ceil(rows / 64)].

    O(matches).
    """
    origin = blocks[0, 0] if len(blocks) else 0
    behind = 0
    for b in range(len(blocks)):
        at, shift = blocks[b, 0] - origin, blocks[b, 0] - first
        behind = shift + blocks[b, 1]
        for k in range(bounds.shape[1]):
            for i in range(at + bounds[b, k, 0], at + bounds[b, k, 1]):
                place = shift + np.int64(order[i])
                if place >= 0:
                    _set_bit(bits, place)
    for place in range(behind, len(values)):
        if _asked(values[place], valid[place], double, low, high, nulls):
            _set_bit(bits, place)


@compiled()
def mark_places(places, bits):
    """Set the bits at the given positions, int64[n]. O(n)."""
    for i in range(len(places)):
        _set_bit(bits, places[i])


@compiled()
def emit_bits(bits, out):
    """Write the positions of the set bits, ascending; return how many. O(words + bits)."""
    n = 0
    for w in range(len(bits)):
        n = _emit_word(bits[w], w << 6, out, n)
    return n


@compiled()
def keep_within(values, valid, double, low, high, nulls, places, out):
    """Keep the positions whose key is in one of the intervals; return how many. O(places).

    out  int64[places]  may be ``places`` itself
    """
    n = 0
    for i in range(len(places)):
        place = places[i]
        out[n] = place
        n += _asked(values[place], valid[place], double, low, high, nulls)
    return n
