"""Priority-sample with replacement: many samples of one row, each by priorities of its own.

Copy c of the sample is the row with the highest of c's priorities; a row is worth keeping while it
is, for some copy, higher than all newer rows (Babcock, Datar and Motwani 2002).
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np

from ids.kernels.compiling import compiled
from ids.kernels.sampling import finalised

__all__ = ["highest_of_copies", "survivors_of_copies"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@compiled()
def survivors_of_copies(seed, copies, sequence, keep):
    """Mark the rows that some copy ranks higher than every newer row.

    seed      uint64
    sequence  int64[n]  the numbers under which rows arrived, oldest row first
    keep      bool[n]   written

    O(n · copies): a row draws a priority for each copy, which is what a sample of r independent
    rows costs. Allocates two words a copy. Twin: in ``tests/kernels/test_sampling.py``.
    """
    best = np.zeros(copies, np.uint64)
    state = _states(seed, copies)
    for i in range(len(sequence) - 1, -1, -1):
        number = (np.uint64(sequence[i]) + np.uint64(1)) * _GOLDEN
        high = False
        for c in range(np.uint64(copies)):
            drawn = finalised(state[c] + number)
            if drawn > best[c]:
                best[c] = drawn
                high = True
        keep[i] = high


@compiled()
def highest_of_copies(seed, copies, sequence, places):
    """The row each copy ranks highest.

    sequence  int64[n]       oldest row first, n at least 1
    places    int64[copies]  written

    O(n · copies).
    """
    best = np.zeros(copies, np.uint64)
    state = _states(seed, copies)
    places[:] = len(sequence) - 1
    for i in range(len(sequence) - 1, -1, -1):
        number = (np.uint64(sequence[i]) + np.uint64(1)) * _GOLDEN
        for c in range(np.uint64(copies)):
            drawn = finalised(state[c] + number)
            if drawn > best[c]:
                best[c] = drawn
                places[c] = i


@compiled()
def _states(seed, copies):
    """Where each copy's stream of priorities starts."""
    state = np.empty(copies, np.uint64)
    for c in range(copies):
        state[c] = finalised(finalised(seed + _GOLDEN) + np.uint64(c))
    return state
