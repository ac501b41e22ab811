"""The slide loop: a window's rows come and go, and every emit takes a copy of its summaries.

A window is two row pointers. Emit e has seen rows up to ``arrived[e]`` and dropped rows up to
``expired[e]``; count and time windows, every slide and every key of PARTITION BY differ only in
these two arrays. A row touches one atom; an item is the merge of the atoms it covers.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ids.kernels.compiling import compiled
from ids.kernels.digits import accumulate, cut_one
from ids.model.scale import Layout

__all__ = ["Bounds", "Cut", "Lists", "Rows", "replay"]


class Rows(NamedTuple):
    """The rows, in window order: ``atom`` uint32[n] and ``values`` float64[n]."""

    atom: npt.NDArray[np.uint32]
    values: npt.NDArray[np.float64]


class Bounds(NamedTuple):
    """Row bounds of each emit, both uint64[e] and ascending."""

    arrived: npt.NDArray[np.uint64]
    expired: npt.NDArray[np.uint64]


class Lists(NamedTuple):
    """A list of numbers for each key, end to end: list k is members[starts[k]:starts[k + 1]]."""

    starts: npt.NDArray[np.uint32]
    members: npt.NDArray[np.uint32]


class Cut(NamedTuple):
    """How values become digits: 2**-exponent, the centre int64[max(1, D)], ``Scale.layout``."""

    unit: float
    centre: npt.NDArray[np.int64]
    layout: Layout


@njit(inline="always")
def _move(summaries, rows, start, stop, cut, touched, digits, scratch, sign):
    for i in range(start, stop):
        cut_one(rows.values[i], cut.unit, cut.layout, digits)
        atom = rows.atom[i]
        for k in range(touched.starts[atom], touched.starts[atom + 1]):
            accumulate(summaries, touched.members[k], digits, cut.centre, scratch, cut.layout, sign)


@njit(inline="always")
def _take(summaries, merged, item, layout, taken, e):
    """Copy an item's summary; where several make it up, merge them before evaluating."""
    first = merged.starts[item]
    stop = merged.starts[item + 1]
    if stop == first + 1:
        for w in range(1 + len(layout[0]) + 2 * len(layout[1]) + len(layout[2]) * len(layout[3])):
            taken[item, w, e] = summaries[merged.members[first], w]
        return
    for w in range(1 + len(layout[0])):
        word = np.int64(0)
        for k in range(first, stop):
            word += summaries[merged.members[k], w]
        taken[item, w, e] = word
    start = 1 + len(layout[0])
    for _ in range(len(layout[1])):
        _merge_words(summaries, merged.members, first, stop, start, 2, taken, item, e)
        start += 2
    for _ in range(len(layout[2])):
        _merge_words(summaries, merged.members, first, stop, start, len(layout[3]), taken, item, e)
        start += len(layout[3])


@njit
def _merge_words(summaries, members, first, stop, start, count, taken, item, e):
    """One multi-word sum over several summaries: each word's carries go into the next."""
    carry = np.uint64(0)
    for w in range(start, start + count):
        whole = carry
        carry = np.uint64(0)
        for k in range(first, stop):
            word = np.uint64(summaries[members[k], w])
            whole += word
            if whole < word:
                carry += np.uint64(1)
        taken[item, w, e] = np.int64(whole)


@compiled()
def replay(summaries, pointers, rows, cut, bounds, touched, merged, taken):
    """Advance over a block of emits; ``summaries`` and ``pointers`` go on to the next block.

    summaries  int64[s, words]     the live window's exact sums; changed in place
    pointers   uint64[2]           rows arrived, rows expired so far; changed in place
    touched    Lists               the summaries that a row of each atom belongs to
    merged     Lists               the summaries that make up each item
    taken      int64[i, words, e]  out: the sums of each item at each emit

    O(rows · touched + emits · merged), allocates a few words. Twin: ``tests/oracles/recount.py``.
    """
    digits = np.zeros_like(cut.centre)
    scratch = np.zeros_like(cut.centre)
    came = pointers[0]
    went = pointers[1]
    for e in range(np.uint64(len(bounds.arrived))):
        if bounds.expired[e] >= came:
            # nothing of the last window is left: start over instead of walking through the gap
            summaries[:] = 0
            came = bounds.expired[e]
            went = came
        _move(summaries, rows, came, bounds.arrived[e], cut, touched, digits, scratch, 1)
        _move(summaries, rows, went, bounds.expired[e], cut, touched, digits, scratch, -1)
        came = bounds.arrived[e]
        went = bounds.expired[e]
        for item in range(np.uint64(len(merged.starts) - 1)):
            _take(summaries, merged, item, cut.layout, taken, e)
    pointers[0] = came
    pointers[1] = went
