"""Eager domination: a sample's candidates, each deleted once ``size`` newer rows are above it."""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator"
from __future__ import annotations

import numpy as np
from numba import njit

from ids.kernels.sampling import mixed


@njit(cache=True)
def slide(seed, rows, window, size, sequence, priority, passed):
    """``ids.kernels.sampling.slide_sample`` by eager domination. O(rows · candidates).

    sequence, priority, passed  int64[room], float64[room], int32[room]  written: the candidates
    """
    held = 0
    for i in range(rows):
        new = mixed(seed, i)
        full = 0
        for k in range(np.uint64(held)):  # branchless: this loop is vectorised
            passed[k] += priority[k] < new
            full += (passed[k] >= size) | (sequence[k] <= i - window)
        k = held - 1
        while full > 0:
            if passed[k] >= size or sequence[k] <= i - window:
                full -= 1
                held -= 1
                sequence[k], priority[k] = sequence[held], priority[held]
                passed[k] = passed[held]
            k -= 1
        sequence[held] = i
        priority[held] = new
        passed[held] = 0
        held += 1
    return held
