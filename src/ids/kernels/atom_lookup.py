"""Kernels that map rows to cells and cells to atoms.

A cell is the mixed-radix number of a row's classes, with one digit per factor. Reference:
``tests/oracles/three_valued.py``, which evaluates every predicate on every row.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ids.kernels.compiler import compiled

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


_COUNTED = 64
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_SHIFT = np.uint64(32)


@compiled()
def add_coded(cell, code, valid, class_of, null_class, stride):
    """Add a factor's digit, looked up by dictionary code.

    cell        uint64[n]             changed in place
    code        uint32[n] | uint8[n]  index into ``class_of``
    valid       bool[n] | bool[0]     which rows are not NULL; empty: all
    class_of    uint32[d]
    null_class  uint64                the class of NULL
    stride      uint64                the weight of the digit

    O(n), allocates nothing.
    """
    if valid.size:
        for i in range(cell.size):
            digit = np.uint64(class_of[code[i]]) if valid[i] else null_class
            cell[i] += digit * stride
    else:
        for i in range(cell.size):
            cell[i] += np.uint64(class_of[code[i]]) * stride


@njit(inline="always")
def _interval(value, cuts):
    """Count the cuts that are at or below the value.

    Counting a few dozen cuts is vectorised and faster than a binary search, whose branches are
    mispredicted. Only longer lists are first narrowed by bisection.
    """
    first, last = 0, cuts.size
    while last - first > _COUNTED:
        middle = (first + last) >> 1
        if value < cuts[middle]:
            last = middle
        else:
            first = middle
    rest = cuts[first:last]
    passed = np.uint64(first)
    for k in range(rest.size):
        passed += np.uint64(not value < rest[k])
    return passed


@compiled()
def add_ranged(cell, value, valid, cuts, class_of, null_class, stride):
    """Add a factor's digit, found by comparing the value with cuts; NaN is above all cuts.

    cell        uint64[n]             changed in place
    value       float64[n] | int64[n]
    valid       bool[n] | bool[0]     which rows are not NULL; empty: all
    cuts        type of value, [c]    ascending; a value is in interval k if k cuts are <= value
    class_of    uint32[c + 1]
    null_class  uint64
    stride      uint64

    O(n log c), allocates nothing.
    """
    nulls = valid.size > 0
    if cuts.size == 1:
        cut = cuts[0]
        below, above = np.uint64(class_of[0]) * stride, np.uint64(class_of[1]) * stride
        missing = null_class * stride
        for i in range(cell.size):
            digit = below if value[i] < cut else above
            cell[i] += missing if nulls and not valid[i] else digit
        return
    for i in range(cell.size):
        interval = _interval(value[i], cuts)
        missing = nulls and not valid[i]
        digit = np.uint64(class_of[interval])
        cell[i] += (null_class if missing else digit) * stride


@compiled()
def look_up(cell, atom_of, atom):
    """Write the atom of each row's cell; return the number of rows whose cell has no atom yet.

    cell     uint64[n]
    atom_of  int32[c]   -1 for a cell without an atom
    atom     int32[n]   written

    O(n), allocates nothing.
    """
    unseen = 0
    for i in range(cell.size):
        found = atom_of[cell[i]]
        atom[i] = found
        unseen += found < 0
    return unseen


@compiled()
def link(cell, atom, atom_of, following, first):
    """Assign atoms to cells, and link the cells of each atom into a list.

    cell       uint64[m]  distinct cells without an atom
    atom       int32[m]
    atom_of    int32[c]   changed in place
    following  int32[c]   the next cell of the same atom, or -1; changed in place
    first      int32[a]   the atom's first cell, or -1; changed in place

    O(m).
    """
    for i in range(cell.size):
        atom_of[cell[i]] = atom[i]
        following[cell[i]] = first[atom[i]]
        first[atom[i]] = np.int32(cell[i])


@compiled()
def unlink(atom, atom_of, following, first):
    """Remove all cells from the given atoms: the inverse of ``link``.

    atom       int64[m]
    atom_of    int32[c]   changed in place
    following  int32[c]
    first      int32[a]   changed in place

    O(cells of these atoms).
    """
    for i in range(atom.size):
        cell = first[atom[i]]
        while cell >= 0:
            atom_of[cell] = -1
            cell = following[cell]
        first[atom[i]] = -1


@njit(inline="always")
def _slot(previous, word, slots, key_previous, key_word):
    """Return the slot that contains the pair's number, or the free slot to insert it."""
    mask = np.uint64(slots.size - 1)
    mixed = (word ^ (previous * _GOLDEN)) * _MIX
    mixed ^= mixed >> _SHIFT
    at = (mixed * _GOLDEN >> _SHIFT) & mask
    found = slots[at]
    while found >= 0 and (key_word[found] != word or key_previous[found] != previous):
        at = (at + np.uint64(1)) & mask
        found = slots[at]
    return at


@compiled()
def intern(previous, word, start, slots, key_previous, key_word, count, number):
    """Number distinct pairs (previous, word) in order of first occurrence.

    previous      uint64[n]
    word          uint64[n]
    start         int        the first row to process
    slots         int32[2^s] open addressing: a pair's number, or -1; changed in place
    key_previous  uint64[k]  the pairs by number, k <= 2^(s-1); changed in place
    key_word      uint64[k]
    count         int        the number of pairs so far
    number        uint64[n]  written

    Returns (rows processed, number of pairs). Stops early if ``key_word`` is full at a new pair.
    O(n).
    """
    for i in range(start, word.size):
        at = _slot(previous[i], word[i], slots, key_previous, key_word)
        found = slots[at]
        if found < 0:
            if count == key_word.size:
                return i, count
            found = count
            slots[at] = found
            key_previous[found] = previous[i]
            key_word[found] = word[i]
            count += 1
        number[i] = found
    return word.size, count


@compiled()
def reseat(key_previous, key_word, count, slots):
    """Insert the first ``count`` pairs into empty, larger slots.

    key_previous  uint64[k]
    key_word      uint64[k]
    slots         int32[2^s]  all -1; changed in place

    O(count).
    """
    for i in range(count):
        slots[_slot(key_previous[i], key_word[i], slots, key_previous, key_word)] = i
