"""Signed rows into a delta, and a delta into the state."""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np
from numba import njit

from ids.kernels.compiling import compiled
from ids.kernels.digits import accumulate
from ids.kernels.wide import add_words

__all__ = [
    "add_delta",
    "add_rows",
    "add_summary",
    "apply_signed",
    "merge_summaries",
    "slide",
    "touched_rows",
]


@compiled()
def apply_signed(summaries, atom, digits, players, centre, layout, sign):
    """Add ``sign`` times each row to its atom's summary.

    summaries  int64[a, words]     changed in place
    atom       uint32[n]           row i's atom
    digits     int64[n, max(1,D)]  row i's digits
    players    bool[n or 0]        whether row i takes part (empty: every row does)
    centre     int64[max(1, D)]

    O(n), allocates a few words. Twin: ``tests/oracles/recount.py``.
    """
    scratch = np.zeros_like(centre)
    everyone = len(players) == 0
    for i in range(np.uint64(len(atom))):
        if everyone or players[i]:
            accumulate(summaries, atom[i], digits[i], centre, scratch, layout, sign)


@compiled()
def slide(summaries, atom, digits, window, centre, layout):
    """A count window sliding one row at a time over a whole stream: |Δ| = 1 at every step.

    O(n) whatever the window. This is the loop that the evaluation measures.
    """
    scratch = np.zeros_like(centre)
    filled = np.uint64(min(window, len(atom)))
    for i in range(filled):
        accumulate(summaries, atom[i], digits[i], centre, scratch, layout, 1)
    for i in range(filled, np.uint64(len(atom))):
        gone = i - filled
        accumulate(summaries, atom[gone], digits[gone], centre, scratch, layout, -1)
        accumulate(summaries, atom[i], digits[i], centre, scratch, layout, 1)


@njit
def add_summary(total, summary, layout):
    """``total += summary``, both int64[words]."""
    plain = 1 + len(layout[0])
    for w in range(plain):
        total[w] += summary[w]
    for p in range(len(layout[1])):
        add_words(total, summary, plain + 2 * p, 2)
    start = plain + 2 * len(layout[1])
    for p in range(len(layout[2])):
        add_words(total, summary, start + p * len(layout[3]), len(layout[3]))


@compiled()
def merge_summaries(summaries, chosen, layout, total):
    """Merge before evaluating: add the chosen summaries into ``total`` (int64[words])."""
    for k in range(len(chosen)):
        add_summary(total, summaries[chosen[k]], layout)


@compiled()
def add_delta(delta, atoms, holds, layout, summaries, marginals, window):
    """Add a delta to the atoms, to the marginals its atoms belong to, and to the window.

    delta      int64[t, words]  one row for each touched atom
    atoms      int64[t]         which atoms these are
    holds      bool[t, k]       whether predicate k holds on each of them
    summaries  int64[a, words], marginals int64[k, words], window int64[words]  changed in place

    O(touched atoms · K), whatever the number of rows in the delta.
    """
    for t in range(len(atoms)):
        atom = atoms[t]
        add_summary(summaries[atom], delta[t], layout)
        add_summary(window, delta[t], layout)
        for k in range(holds.shape[1]):
            if holds[t, k]:
                add_summary(marginals[k], delta[t], layout)


@compiled()
def add_rows(total, delta, layout):
    """``total += delta`` row by row, both int64[t, words]."""
    for t in range(len(delta)):
        add_summary(total[t], delta[t], layout)


@compiled()
def touched_rows(delta):
    """The rows of a delta, int64[a, words], that are not all zero, as int64[t], ascending."""
    found = np.empty(len(delta), np.int64)
    count = 0
    for row in range(len(delta)):
        for word in range(delta.shape[1]):
            if delta[row, word] != 0:
                found[count] = row
                count += 1
                break
    return found[:count].copy()
