"""The rows of highest priority among those at hand: what a drawing takes."""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np

from ids.kernels.compiling import compiled
from ids.kernels.sampling import RANGES, add_to_heap, end_of, range_of, replace_least

__all__ = ["highest", "highest_by_stratum", "likely_highest"]


@compiled()
def highest(priority, size, keep):
    """Mark the ``size`` rows of highest priority; of equal ones the newer is the higher.

    priority  float64[n] or int64[n]  oldest row first
    keep      bool[n]                 written

    O(n log size) at worst; allocates ``size`` words. Twin: sorting, in the test.
    """
    n = len(priority)
    room = min(size, n)
    if room == 0:
        keep[:] = False
        return
    heap = np.empty(room, priority.dtype)
    for i in range(room):
        add_to_heap(heap, 0, i, priority[i])
    for i in range(room, n):
        if priority[i] > heap[0]:
            replace_least(heap, 0, room, priority[i])
    edge = heap[0]
    equal = 0
    for k in range(room):
        equal += heap[k] == edge
    for i in range(n - 1, -1, -1):
        keep[i] = priority[i] > edge
        if equal > 0 and priority[i] == edge:
            keep[i] = True
            equal -= 1


@compiled()
def highest_by_stratum(priority, stratum, size, room, keep):
    """``highest`` in each stratum by itself, of random priorities (no two are equal).

    stratum  int32[n]
    room     int64[strata]  at least the rows of each stratum
    keep     bool[n]        written

    O(n log size), allocates at most n words.
    """
    start = np.zeros(len(room) + 1, np.int64)
    for s in range(len(room)):
        start[s + 1] = start[s] + min(size, room[s])
    heap = np.empty(max(start[-1], 1), priority.dtype)
    filled = np.zeros(len(room), np.int64)
    for i in range(len(priority)):
        s = stratum[i]
        own = start[s + 1] - start[s]
        if filled[s] < own:
            add_to_heap(heap, start[s], filled[s], priority[i])
            filled[s] += 1
        elif own > 0 and priority[i] > heap[start[s]]:
            replace_least(heap, start[s], own, priority[i])
    for i in range(len(priority)):
        s = stratum[i]
        keep[i] = filled[s] > 0 and priority[i] >= heap[start[s]]


@compiled()
def likely_highest(priority, size, keep):
    """Mark the ``size`` highest of random priorities, and a few rows more. O(n).

    priority  float64[n]  as ``mix`` draws them
    keep      bool[n]     written
    """
    seen = np.zeros(RANGES, np.int64)
    for i in range(np.uint64(len(priority))):
        seen[range_of(1.0 - priority[i])] += 1
    total = 0
    end = np.inf
    for place in range(RANGES):
        total += seen[place]
        if total >= size:
            end = end_of(place)
            break
    for i in range(np.uint64(len(priority))):
        keep[i] = 1.0 - priority[i] < end
