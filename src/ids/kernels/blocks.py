"""Building the blocks of an index: a stretch of rows, in the order of one column's values.

Every value is read as a *key*, an int64 in the order of the values: a whole number, an instant, a
code or a Boolean as it is; a double by its bits, with NaN above the rest and one zero. A block's
*directory* then finds a key without a look at the rows: an entry for each distinct key where these
are few, else one in ``STRIDE`` places.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np
from numba import njit

from ids.kernels.compiling import compiled

__all__ = ["COMMON", "HIGHEST", "LOWEST", "STRIDE", "build_block", "key_of"]

LOWEST, HIGHEST = -(2**63), 2**63 - 1
# Rows a distinct key must have, on average, for each to get an entry of its own; places between
# entries where they have fewer.
COMMON, STRIDE = 16, 32
_SIGN = np.uint64(2**63)
_INFINITY = 0x7FF0000000000000
_BYTE = np.uint64(8)
_MASK = np.uint64(255)
_ZERO = np.uint64(0)


@njit(inline="always")
def key_of(value, double):
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
            own = np.uint64(key_of(values[at + i], double)) ^ _SIGN
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
        if (i == 0 or key[i] != key[i - 1]) if own else i % STRIDE == 0:
            keys[at] = np.int64((key[i] + low) ^ _SIGN)
            starts[at] = np.int32(i)
            at += 1
    return at - entry, own
