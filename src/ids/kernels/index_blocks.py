"""Blocks of an index: rows in the order of one column's values, built and read.

Every value is read as a *key*, an int64 in the order of the values: a whole number, an instant, a
code or a Boolean as it is; a double by its bits, with NaN above the rest and one zero. A block's
*directory* then finds a key without a look at the rows: an entry for each distinct key where these
are few, else one in ``_STRIDE`` places. Read back, keys become slices of blocks, and slices become
places or bits. Arrays that every reader takes:

blocks  int64[b, 6]    first row, rows, rows not NULL, first and last entry of the directory, and
                       whether each distinct key has an entry of its own; in window order
order   uint16[m]      block by block, the places inside it in the order of their keys
keys    int64[d]       the directories' keys, and
starts  int32[d]       where in their block each begins
values, valid, double  the column's rows inside, as ``build_block`` takes them
low     int64[k], high int64[k]   the keys asked for: ascending intervals, both ends inside
nulls   bool           whether NULL is asked for
first   int            the number of the oldest row inside: rows below it have expired
bounds  int32[b, k + 1, 2]   where each interval begins and ends in each block's order; NULLs last
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import types
from numba.extending import intrinsic

from ids.kernels.compile import compiled

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


LOWEST, HIGHEST = -(2**63), 2**63 - 1
# Rows a distinct key must have, on average, for each to get an entry of its own; places between
# entries where they have fewer.
COMMON, _STRIDE = 16, 32
_SIGN = np.uint64(2**63)
_INFINITY = 0x7FF0000000000000
_BYTE = np.uint64(8)
_MASK = np.uint64(255)
_ZERO = np.uint64(0)


@njit(inline="always")
def _key_of(value, double):
    """The key of a value; a double comes as its bits (``view(int64)``) and says so."""
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

    values  int64[n] | int32[n] | uint8[n]  the column's rows inside; doubles by their bits
    valid   bool[n]
    double  bool          whether the bits are those of doubles
    at      int           the block's first row in ``values``
    count   int           the block's rows, at most 65,536
    order   uint16[m]     the block's places in the order of their keys, written from ``into`` on
    keys    int64[d]      the directory's keys, written from ``entry`` on
    starts  int32[d]      where each stands in the order

    Returns (rows not NULL, entries written, whether each distinct key has its own); there is at
    most one entry for ``COMMON`` rows, and one more. O(count · bytes in which the keys differ):
    a radix sort, so that no comparison is guessed wrong. Twin: a stable argsort, in
    ``tests/state/test_index.py``.
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
    """Keys and places by ascending keys: one stable pass for each byte of the widest key."""
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
    """The place of the lowest bit set; the word is not 0."""

    def emit(_context, builder, _signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), emit


@njit(inline="always")
def _set_bit(bits, place):
    at = np.uint64(place)
    bits[at >> _SIX] |= _ONE << (at & _LOW)


@njit(inline="always")
def _emit_word(word, first, out, n):
    """Write ``first`` plus the place of each bit set; places below 0 are passed over."""
    while word:
        place = first + np.int64(_lowest_bit(word))
        out[n] = place
        n += place >= 0
        word &= word - _ONE
    return n


@njit(inline="always")
def _at_or_above(ascending, entry, last, key):
    """The first of the entries that is not below the key; ``last`` if all are."""
    count = last - entry
    while count > 0:
        half = count >> 1
        beyond = ascending[entry + half] < key
        entry = entry + half + 1 if beyond else entry
        count = count - half - 1 if beyond else half
    return entry


@njit(inline="always")
def _refine(order, at, begin, end, values, double, key, shift):
    """Between two entries of a directory: the first live row whose key is not below.

    ``shift`` is the block's first row less the oldest inside; where it is negative, rows that have
    expired stand in the order, whose values are gone: these are passed over one by one.
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
    """Write where each interval begins and ends in each block; return how many rows these hold.

    O(blocks · intervals · log entries): the rows are not looked at where every key has its entry,
    and five of them are where not.
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
    """Whether one row's key is in one of the intervals."""
    if not valid:
        return nulls
    key = _key_of(value, double)
    if len(high) == 1:
        return (low[0] <= key) & (key <= high[0])
    k = _at_or_above(high, 0, len(high), key)
    return k < len(high) and low[k] <= key


@compiled()
def emit_slices(blocks, order, bounds, values, valid, double, low, high, nulls, first, out):
    """Write the places inside of the rows asked for, ascending; return how many.

    Rows behind the last block are looked at one by one.
    out  int64[p]  room for the rows of the slices and those behind the blocks

    O(matches): rows of one key stand in window order as they are, a few are sorted, and many of
    several keys go by way of bits, at most 1,024 words a block.
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
    """Sort a few by insertion."""
    for i in range(begin + 1, end):
        value, j = out[i], i
        while j > begin and out[j - 1] > value:
            out[j] = out[j - 1]
            j -= 1
        out[j] = value


@njit
def _emit_straight(order, bounds, at, shift, words, out, n):
    """Many rows of one block, in window order by way of bits; ``words`` are 0 before and after."""
    for k in range(len(bounds)):
        for i in range(at + bounds[k, 0], at + bounds[k, 1]):
            _set_bit(words, order[i])
    for w in range(len(words)):
        n = _emit_word(words[w], shift + (w << 6), out, n)
        words[w] = _ZERO
    return n


@compiled()
def mark_slices(blocks, order, bounds, values, valid, double, low, high, nulls, first, bits):
    """As ``emit_slices``, but set the bit of each place: uint64[ceil(rows / 64)]. O(matches)."""
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
    """Set the bits of places, int64[n]. O(n)."""
    for i in range(len(places)):
        _set_bit(bits, places[i])


@compiled()
def emit_bits(bits, out):
    """Write the places of the bits that are set, ascending; return how many. O(words + bits)."""
    n = 0
    for w in range(len(bits)):
        n = _emit_word(bits[w], w << 6, out, n)
    return n


@compiled()
def keep_within(values, valid, double, low, high, nulls, places, out):
    """Of these places, those on which the key is asked for; returns how many. O(places).

    out  int64[places]  may be ``places`` itself
    """
    n = 0
    for i in range(len(places)):
        place = places[i]
        out[n] = place
        n += _asked(values[place], valid[place], double, low, high, nulls)
    return n
