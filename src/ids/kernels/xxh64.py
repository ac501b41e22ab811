"""XXH64 as computed by Spark's ``xxhash64``, so that Spark and the engine draw the same rows.

Spark hashes a BIGINT or a DOUBLE as one word of eight bytes and a STRING as its UTF-8 bytes. Each
hash is the seed of the next. The first seed is 42, and NULL leaves the hash unchanged.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ids.kernels.compiler import compiled

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


START = 42  # Spark's first seed, and therefore the hash of NULL alone

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)


@njit
def _rotated(x, bits):
    return (x << np.uint64(bits)) | (x >> np.uint64(64 - bits))


@njit
def _finished(h):
    h = (h ^ (h >> np.uint64(33))) * _P2
    h = (h ^ (h >> np.uint64(29))) * _P3
    return h ^ (h >> np.uint64(32))


@njit
def _round(lane, word):
    return _rotated(lane + word * _P2, 31) * _P1


@njit
def _with_word(h, word):
    return _rotated(h ^ _round(np.uint64(0), word), 27) * _P1 + _P4


@compiled()
def hash_words(words, hashes):
    """Update each row's hash with a word.

    words   int64[n]  BIGINTs, or the bits of DOUBLEs (one NaN, no -0.0)
    hashes  int64[n]  the hash so far; changed in place

    O(n), allocates nothing. Reference: Spark's ``xxhash64`` in ``tests/spark/test_approximate.py``.
    """
    for i in range(np.uint64(len(words))):
        h = np.uint64(hashes[i]) + _P5 + np.uint64(8)
        hashes[i] = np.int64(_finished(_with_word(h, np.uint64(words[i]))))


@njit
def _read(data, at, size):
    """Return ``size`` bytes as a little-endian integer."""
    word = np.uint64(0)
    for k in range(size):
        word |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return word


@njit
def _hashed(data, at, end, seed):
    length = np.uint64(end - at)
    if end - at >= 32:
        a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while at + 32 <= end:
            a = _round(a, _read(data, at, 8))
            b = _round(b, _read(data, at + 8, 8))
            c = _round(c, _read(data, at + 16, 8))
            d = _round(d, _read(data, at + 24, 8))
            at += 32
        h = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
        for lane in (a, b, c, d):
            h = (h ^ _round(np.uint64(0), lane)) * _P1 + _P4
    else:
        h = seed + _P5
    h += length
    while at + 8 <= end:
        h = _with_word(h, _read(data, at, 8))
        at += 8
    if at + 4 <= end:
        h = _rotated(h ^ (_read(data, at, 4) * _P1), 23) * _P2 + _P3
        at += 4
    while at < end:
        h = _rotated(h ^ (np.uint64(data[at]) * _P5), 11) * _P1
        at += 1
    return _finished(h)


@compiled()
def hash_texts(data, starts, hashes):
    """Update each text's hash with its bytes.

    data    uint8[b]    all texts as UTF-8, concatenated
    starts  int64[n+1]  where each begins, and the end of the last
    hashes  int64[n]    the hash so far; changed in place

    O(b), allocates nothing. Reference: as for ``hash_words``.
    """
    for i in range(len(hashes)):
        hashes[i] = np.int64(_hashed(data, starts[i], starts[i + 1], np.uint64(hashes[i])))


@njit
def _table(load, rows):
    """Return an empty hash table, int64[2^s], with at least ``load`` slots per row."""
    size = 1
    while size < load * rows:
        size *= 2
    return np.full(size, -1, np.int64)


@njit
def _slot(start, value, table, hashes):
    """Return the slot of a row with this hash, or the free slot to insert it."""
    mask = np.uint64(len(table) - 1)
    slot = start & mask
    while table[slot] >= 0 and hashes[table[slot]] != value:
        slot = (slot + np.uint64(1)) & mask
    return slot


@compiled()
def ordinals(hashes, out):
    """Number the rows of equal hash 0, 1, 2 … in their order.

    hashes  int64[n]
    out     int64[n]  written

    O(n) expected: a hash table with open addressing, half full.
    Reference: a dictionary, in the test.
    """
    newest = _table(2, len(hashes))  # the newest row of each hash
    for i in range(len(hashes)):
        slot = _slot(_finished(np.uint64(hashes[i])), hashes[i], newest, hashes)
        out[i] = 0 if newest[slot] < 0 else out[newest[slot]] + 1
        newest[slot] = i


@compiled()
def places_among(hashes, wanted):
    """Return the positions of the hashes that are among ``wanted``, int64[k] ascending.

    hashes, wanted  int64[n], int64[m]

    O(n + m) expected: a hash table with open addressing, a quarter full. Reference: ``np.isin``.
    """
    some = _table(4, len(wanted))  # a row of each hash that is wanted
    for i in range(len(wanted)):
        some[_slot(np.uint64(wanted[i]), wanted[i], some, wanted)] = i
    out = np.empty(len(hashes), np.int64)
    count = 0
    for i in range(len(hashes)):
        out[count] = i
        count += some[_slot(np.uint64(hashes[i]), hashes[i], some, wanted)] >= 0
    return out[:count].copy()
