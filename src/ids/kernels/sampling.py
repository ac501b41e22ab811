"""A sample of a sliding window: one random priority a row, and the rows that can still matter.

A row matters while it is among the ``size`` highest of itself and all newer rows: those newer
outlive it, so once ``size`` of them are higher it will never again be drawn. The same sweep keeps a
uniform sample (random priorities), the largest values (priority y) and the smallest (-y).
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np
from numba import njit

from ids.kernels.compiling import compiled

__all__ = [
    "RANGES",
    "add_to_heap",
    "end_of",
    "finalised",
    "likely_survivors",
    "mix",
    "mixed",
    "range_of",
    "replace_least",
    "slide_sample",
    "survivors",
    "survivors_by_stratum",
]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53

# 32 ranges of 1 - priority to a power of two: at most 3 % more rows are kept than must be.
_DROPPED = np.int64(47)
_LOWEST = np.int64((1023 - 53) << 5)
RANGES = 53 * 32 + 1


@njit
def finalised(z):
    """SplitMix64's last step: every bit of the result depends on every bit of ``z`` (uint64)."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@njit
def mixed(seed, number):
    """Uniform in [0, 1), a multiple of 2**-53: one draw for a seed (uint64) and a number.

    SplitMix64, jumped to: the seed is finalised first, so that seeds 0, 1, 2 … share no stretch.
    """
    state = finalised(seed + _GOLDEN) + (np.uint64(number) + np.uint64(1)) * _GOLDEN
    return np.float64(finalised(state) >> np.uint64(11)) * _TO_UNIT


@compiled()
def mix(seed, sequence, out):
    """The priorities of rows, by the numbers under which they arrived.

    seed      uint64
    sequence  int64[n]
    out       float64[n]  written: uniform in [0, 1), multiples of 2**-53

    O(n), allocates nothing. Twin: SplitMix64 in Python's whole numbers, in the test.
    """
    for i in range(np.uint64(len(sequence))):
        out[i] = mixed(seed, sequence[i])


@njit
def replace_least(heap, start, length, value):
    """Put ``value`` in the place of the least of ``heap[start : start + length]``, a min-heap."""
    place = 0
    child = 1
    while child < length:
        if child + 1 < length and heap[start + child + 1] < heap[start + child]:
            child += 1
        if heap[start + child] >= value:
            break
        heap[start + place] = heap[start + child]
        place = child
        child = 2 * place + 1
    heap[start + place] = value


@njit
def add_to_heap(heap, start, place, value):
    """Add ``value`` at ``place``, the first free one of a min-heap that is not full yet."""
    while place > 0:
        above = (place - 1) >> 1
        if heap[start + above] <= value:
            break
        heap[start + place] = heap[start + above]
        place = above
    heap[start + place] = value


@compiled()
def survivors(priority, size, keep):
    """Mark the rows that are among the ``size`` highest of themselves and all newer rows.

    priority  float64[n] or int64[n]  oldest row first; of equal ones the newer is the higher
    size      int, at least 0
    keep      bool[n]                 written

    Gives how many are kept. O(n log size) at worst, one comparison for most rows; allocates
    ``size`` words. Twin: the quadratic count in ``tests/kernels/test_sampling.py``.
    """
    n = len(priority)
    room = min(size, n)
    heap = np.empty(max(room, 1), priority.dtype)
    kept = 0
    for i in range(n - 1, n - room - 1, -1):
        add_to_heap(heap, 0, kept, priority[i])
        keep[i] = True
        kept += 1
    for i in range(n - room - 1, -1, -1):
        high = room > 0 and priority[i] > heap[0]
        keep[i] = high
        if high:
            replace_least(heap, 0, room, priority[i])
            kept += 1
    return kept


@compiled()
def survivors_by_stratum(priority, stratum, strata, size, keep):
    """``survivors`` in each stratum by itself, in one sweep.

    priority  float64[n] or int64[n]  oldest row first
    stratum   int32[n]                in 0..strata-1
    size      int                     rows to keep of each
    keep      bool[n]                 written

    Gives how many are kept. A heap has room for the rows of its stratum that are there, so many
    small strata cost no more than one large one: O(n + strata) words.
    """
    n = len(priority)
    room = np.zeros(strata, np.int64)
    for i in range(np.uint64(n)):
        room[stratum[i]] += 1
    start = np.zeros(strata, np.int64)
    total = 0
    for s in range(strata):
        room[s] = min(room[s], size)
        start[s] = total
        total += room[s]
    heap = np.empty(max(total, 1), priority.dtype)
    filled = np.zeros(strata, np.int64)
    kept = 0
    for i in range(n - 1, -1, -1):
        s = stratum[i]
        high = True
        if filled[s] < room[s]:
            add_to_heap(heap, start[s], filled[s], priority[i])
            filled[s] += 1
        elif room[s] > 0 and priority[i] > heap[start[s]]:
            replace_least(heap, start[s], room[s], priority[i])
        else:
            high = False
        keep[i] = high
        kept += high
    return kept


@njit
def range_of(distance):
    """The range a priority falls in, by its distance from 1; 0 is that of the highest."""
    return (np.float64(distance).view(np.int64) >> _DROPPED) - _LOWEST


@njit
def end_of(place):
    """The distance from 1 at which a range ends."""
    return np.int64((place + _LOWEST + 1) << _DROPPED).view(np.float64)


@compiled()
def likely_survivors(priority, size, keep):
    """``survivors`` of random priorities, and a few rows more, at a cost that is flat in ``size``.

    priority  float64[n]  as ``mix`` draws them, oldest row first
    size      int, at least 1
    keep      bool[n]     written; true wherever ``survivors`` says so

    Gives how many are kept. In the place of a heap stands a count of the rows seen in each narrow
    range of priorities: a row below the range of the ``size``-th highest is dominated. O(n).
    """
    seen = np.zeros(RANGES, np.int64)
    last = RANGES - 1  # the range of the size-th highest so far
    end = np.inf
    high = 0  # rows seen in ranges up to that one
    kept = 0
    for i in range(len(priority) - 1, -1, -1):
        distance = 1.0 - priority[i]  # exact
        near = distance < end
        keep[i] = near
        # branchless but for what is rare: which rows are near is hard to guess
        kept += near
        high += near
        seen[range_of(distance)] += near
        if high - seen[last] >= size:
            while high - seen[last] >= size:
                high -= seen[last]
                last -= 1
            end = end_of(last)
    return kept


@compiled()
def slide_sample(seed, rows, window, size, sequence, priority):
    """A sample of a count window sliding one row at a time over a whole stream: |Δ| = 1.

    rows      how many arrive, numbered from 0
    sequence  int64[room], priority  float64[room]  written: the candidates, oldest row first

    Gives how many candidates there are. They are swept whenever the room is full, so it should be
    some times ``size + size * log(window / size)``. O(rows), whatever the size. This is the loop
    that ``evaluation/rq4/samplers.py`` measures.
    """
    keep = np.empty(len(priority), np.bool_)
    held = 0
    for i in range(rows):
        if held == len(priority):
            likely_survivors(priority, size, keep)
            held = 0
            for k in range(np.uint64(len(priority))):  # branchless: who stays is hard to guess
                sequence[held], priority[held] = sequence[k], priority[k]
                held += keep[k] & (sequence[k] >= i - window)
        sequence[held] = i
        priority[held] = mixed(seed, i)
        held += 1
    return held
