"""Priority-sample of a sliding window: a random priority a row, and the rows that still matter.

A row matters while it is among the ``size`` highest of itself and all newer rows: those newer
outlive it, so once ``size`` of them are higher it will never again be drawn. The same sweep keeps a
uniform sample (random priorities), the largest values (priority y) and the smallest (-y).

With replacement, many samples of one row are kept, each by priorities of its own: copy c of the
sample is the row with the highest of c's priorities, and a row is worth keeping while it is, for
some copy, higher than all newer rows (Babcock, Datar and Motwani 2002).

``draw`` samples a window at each of its emits. Three lists of rows, each by its own key in
descending order, hold whatever a later emit may need:

    by priority   the sample, and as many rows more as may be taken whole
    by rank       the largest values
    by -rank      the smallest values

A list holds the rows among the ``limit`` highest of themselves and all newer rows, and, until the
next sweep, some others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ids.kernels.compile import compiled

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53

# 32 ranges of 1 - priority to a power of two: at most 3 % more rows are kept than must be.
_DROPPED = np.int64(47)
_LOWEST = np.int64((1023 - 53) << 5)
_RANGES = 53 * 32 + 1


@njit
def finalised(z):
    """SplitMix64's last step: every bit of the result depends on every bit of ``z`` (uint64)."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@njit
def mixed(seed, number):
    """Uniform in [0, 1), a multiple of 2**-53: one draw for a seed (uint64) and a number.

    SplitMix64, jumped to: the seed is finalised first, so that the streams of seeds 0, 1, 2 … do
    not overlap.
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
def _replace_least(heap, start, length, value):
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
def _add_to_heap(heap, start, place, value):
    """Add ``value`` at ``place``, the first free one of a min-heap that is not full yet."""
    while place > 0:
        above = (place - 1) >> 1
        if heap[start + above] <= value:
            break
        heap[start + place] = heap[start + above]
        place = above
    heap[start + place] = value


@njit
def _offer(heap, start, filled, room, value):
    """Offer a value to a min-heap of the ``room`` highest so far, ``filled`` of them, at ``start``.

    Returns whether it is now one of them, and how many there are; of equal ones the first stays.
    """
    if filled < room:
        _add_to_heap(heap, start, filled, value)
        return True, filled + 1
    high = room > 0 and value > heap[start]
    if high:
        _replace_least(heap, start, room, value)
    return high, filled


@compiled()
def survivors(priority, size, keep):
    """Mark the rows that are among the ``size`` highest of themselves and all newer rows.

    priority  float64[n] or int64[n]  oldest row first; of equal ones the newer is the higher
    size      int, at least 0
    keep      bool[n]                 written

    Gives how many are kept. O(n log size) at worst, one comparison for most rows; allocates
    ``size`` words. Twin: the quadratic count in ``tests/kernels/test_sampling.py``.
    """
    room = min(size, len(priority))
    heap = np.empty(max(room, 1), priority.dtype)
    filled = kept = 0
    for i in range(len(priority) - 1, -1, -1):
        keep[i], filled = _offer(heap, 0, filled, room, priority[i])
        kept += keep[i]
    return kept


@njit
def _starts(rooms, size):
    """Where each of several heaps begins: each has room for its stratum's rows, but for ``size``.

    So many small strata cost no more than one large one.
    """
    start = np.zeros(len(rooms) + 1, np.int64)
    for s in range(len(rooms)):
        start[s + 1] = start[s] + min(size, rooms[s])
    return start


@compiled()
def survivors_by_stratum(priority, stratum, strata, size, keep):
    """``survivors`` in each stratum by itself, in one sweep.

    priority  float64[n] or int64[n]  oldest row first
    stratum   int32[n]                in 0..strata-1
    size      int                     rows to keep of each
    keep      bool[n]                 written

    Gives how many are kept. Allocates O(n + strata) words.
    """
    rooms = np.zeros(strata, np.int64)
    for i in range(np.uint64(len(priority))):
        rooms[stratum[i]] += 1
    start = _starts(rooms, size)
    heap = np.empty(max(start[-1], 1), priority.dtype)
    filled = np.zeros(strata, np.int64)
    kept = 0
    for i in range(len(priority) - 1, -1, -1):
        s = stratum[i]
        room = start[s + 1] - start[s]
        keep[i], filled[s] = _offer(heap, start[s], filled[s], room, priority[i])
        kept += keep[i]
    return kept


@njit
def _range_of(distance):
    """The range a priority falls in, by its distance from 1; 0 is that of the highest."""
    return (np.float64(distance).view(np.int64) >> _DROPPED) - _LOWEST


@njit
def _end_of(place):
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
    seen = np.zeros(_RANGES, np.int64)
    last = _RANGES - 1  # the range of the size-th highest so far
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
        seen[_range_of(distance)] += near
        if high - seen[last] >= size:
            while high - seen[last] >= size:
                high -= seen[last]
                last -= 1
            end = _end_of(last)
    return kept


@compiled()
def survivors_of_copies(seed, copies, sequence, keep):
    """Mark the rows that some copy ranks higher than every newer row.

    seed      uint64
    sequence  int64[n]  the numbers under which rows arrived, oldest row first
    keep      bool[n]   written

    O(n · copies): a row draws a priority for each copy, which is what a sample of r independent
    rows costs. Allocates three words a copy. Twin: in ``tests/kernels/test_sampling.py``.
    """
    keep[:] = False
    _sweep_copies(seed, copies, sequence, keep, np.empty(copies, np.int64))


@compiled()
def highest_of_copies(seed, copies, sequence, places):
    """The row each copy ranks highest.

    sequence  int64[n]       oldest row first, n at least 1
    places    int64[copies]  written

    O(n · copies).
    """
    places[:] = len(sequence) - 1
    _sweep_copies(seed, copies, sequence, np.empty(len(sequence), np.bool_), places)


@njit
def _sweep_copies(seed, copies, sequence, keep, places):
    best = np.zeros(copies, np.uint64)
    state = np.empty(copies, np.uint64)  # where each copy's stream of priorities starts
    for c in range(copies):
        state[c] = finalised(finalised(seed + _GOLDEN) + np.uint64(c))
    for i in range(len(sequence) - 1, -1, -1):
        number = (np.uint64(sequence[i]) + np.uint64(1)) * _GOLDEN
        for c in range(np.uint64(copies)):
            drawn = finalised(state[c] + number)
            if drawn > best[c]:
                best[c] = drawn
                places[c] = i
                keep[i] = True


@compiled()
def highest(priority, size, keep):
    """Mark the ``size`` rows of highest priority; of equal ones the newer is the higher.

    priority  float64[n] or int64[n]  oldest row first
    keep      bool[n]                 written

    O(n log size) at worst; allocates ``size`` words. Twin: sorting, in the test.
    """
    room = min(size, len(priority))
    if room == 0:
        keep[:] = False
        return
    heap = np.empty(room, priority.dtype)
    filled = 0
    for i in range(len(priority)):
        _, filled = _offer(heap, 0, filled, room, priority[i])
    edge = heap[0]
    equal = 0
    for k in range(room):
        equal += heap[k] == edge
    for i in range(len(priority) - 1, -1, -1):
        keep[i] = priority[i] > edge
        if equal > 0 and priority[i] == edge:
            keep[i] = True
            equal -= 1


@compiled()
def highest_by_stratum(priority, stratum, size, rooms, keep):
    """``highest`` in each stratum by itself, of random priorities (no two are equal).

    stratum  int32[n]
    rooms    int64[strata]  at least the rows of each stratum
    keep     bool[n]        written

    O(n log size), allocates at most n words.
    """
    start = _starts(rooms, size)
    heap = np.empty(max(start[-1], 1), priority.dtype)
    filled = np.zeros(len(rooms), np.int64)
    for i in range(len(priority)):
        s = stratum[i]
        room = start[s + 1] - start[s]
        _, filled[s] = _offer(heap, start[s], filled[s], room, priority[i])
    for i in range(len(priority)):
        s = stratum[i]
        keep[i] = filled[s] > 0 and priority[i] >= heap[start[s]]


@compiled()
def likely_highest(priority, size, keep):
    """Mark the ``size`` highest of random priorities, and a few rows more. O(n).

    priority  float64[n]  as ``mix`` draws them
    keep      bool[n]     written
    """
    seen = np.zeros(_RANGES, np.int64)
    for i in range(np.uint64(len(priority))):
        seen[_range_of(1.0 - priority[i])] += 1
    total = 0
    end = np.inf
    for place in range(_RANGES):
        total += seen[place]
        if total >= size:
            end = _end_of(place)
            break
    for i in range(np.uint64(len(priority))):
        keep[i] = 1.0 - priority[i] < end


_FEW = 16  # rows that are put into a list one by one
_SHORTEST = 4_096  # no list is swept below this length: the sweep must pay


class Keys(NamedTuple):
    """What rows are drawn by.

    priority  int64[n]
    rank      int64[n or 0]  place among all players by value; -1: no player; none: no extremes
    """

    priority: npt.NDArray[np.int64]
    rank: npt.NDArray[np.int64]


class Taken(NamedTuple):
    """What was drawn at each of e emits, as rows.

    sample  int64[e, r]    by descending priority
    whole   int64[e, 2·k]  the largest values downwards, then the smallest upwards
    held    int64[e]       how many were taken whole
    low     int64[e]       the row of the k-th (but at least first) smallest value; -1: no player
    high    int64[e]       of the largest
    """

    sample: npt.NDArray[np.int64]
    whole: npt.NDArray[np.int64]
    held: npt.NDArray[np.int64]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]


@njit
def _inside(rows, count, oldest):
    """Take the rows that have left out of a list."""
    kept = 0
    for i in range(count):
        if rows[i] >= oldest:
            rows[kept] = rows[i]
            kept += 1
    return kept


@njit
def _swept(key, sign, rows, count, oldest, limit):
    """Without the rows that have left, and without those that no emit can need any more."""
    kept = _inside(rows, count, oldest)
    by_age = np.argsort(rows[:kept])
    ordered = np.empty(kept, np.int64)
    for i in range(kept):
        ordered[i] = sign * key[rows[by_age[i]]]
    keep = np.empty(kept, np.bool_)
    survivors(ordered, limit, keep)
    stays = np.empty(kept, np.bool_)
    for i in range(kept):
        stays[by_age[i]] = keep[i]
    count = 0
    for i in range(kept):
        if stays[i]:
            rows[count] = rows[i]
            count += 1
    return count


@njit
def _put(key, sign, rows, count, row):
    """One row to its place in a list."""
    own = sign * key[row]
    first, last = 0, count
    while first < last:
        middle = (first + last) // 2
        if sign * key[rows[middle]] > own:
            first = middle + 1
        else:
            last = middle
    for i in range(count, first, -1):
        rows[i] = rows[i - 1]
    rows[first] = row


@njit
def _merged(key, sign, rows, count, fresh):
    """Rows in descending order into a list, from its end backwards."""
    place = count + len(fresh) - 1
    old, new = count - 1, len(fresh) - 1
    while new >= 0:
        if old >= 0 and sign * key[rows[old]] < sign * key[fresh[new]]:
            rows[place] = rows[old]
            old -= 1
        else:
            rows[place] = fresh[new]
            new -= 1
        place -= 1


@njit
def _fresh(key, sign, players, first, stop, limit):
    """The rows from ``first`` to ``stop`` that belong in a list, in descending order."""
    found = np.empty(stop - first, np.int64)
    count = 0
    for row in range(first, stop):
        if not players or key[row] >= 0:
            found[count] = row
            count += 1
    found = found[:count]
    keys = sign * key[found]
    if count > 2 * limit:
        keep = np.empty(count, np.bool_)
        survivors(keys, limit, keep)
        found, keys = found[keep], keys[keep]
    return found[np.argsort(keys)[::-1]]


@njit
def _advanced(key, sign, players, rows, state, first, stop, oldest, limit):
    """A list with the rows from ``first`` to ``stop`` in it; gives it, for it may have grown.

    ``players`` says that rows with a key below 0 stay out.
    """
    count = state[0]
    if stop - first <= _FEW:
        if count + _FEW > len(rows):
            rows = np.concatenate((rows, np.empty(len(rows) + _FEW, np.int64)))
        for row in range(first, stop):
            if not players or key[row] >= 0:
                _put(key, sign, rows, count, row)
                count += 1
    else:
        fresh = _fresh(key, sign, players, first, stop, limit)
        if count + len(fresh) > len(rows):
            rows = np.concatenate((rows, np.empty(count + 2 * len(fresh), np.int64)))
        _merged(key, sign, rows, count, fresh)
        count += len(fresh)
    inside = max(stop - oldest, limit)
    expected = limit * (1.0 + np.log(inside / limit))
    if count > max(_SHORTEST, 2.0 * expected, state[1]):
        count = _swept(key, sign, rows, count, oldest, limit)
        state[1] = 2 * count  # values that rise or fall all the time leave nothing to sweep
    state[0] = count
    return rows


@njit
def _first(rank, rows, state, oldest, extremes, out):
    """The first rows of a list that are inside and not taken whole; gives how many.

    Rows that have left are taken out of the list when they are in the way.
    """
    held, low, high = extremes
    found = i = gone = 0
    while i < state[0] and found < len(out):
        row = rows[i]
        i += 1
        if row < oldest:
            gone += 1
            continue
        if held > 0 and rank[row] >= 0 and (rank[row] >= rank[high] or rank[row] <= rank[low]):
            continue
        out[found] = row
        found += 1
    if gone > max(64, state[0] // 16):
        state[0] = _inside(rows, state[0], oldest)
    return found


@njit
def _extremes(rank, lists, states, oldest, whole, scratch):
    """Both ends of the window: how many rows are whole, and the last of either end."""
    high = _first(rank, lists[1], states[1], oldest, (0, -1, -1), scratch)
    if high == 0:
        return 0, -1, -1
    edge = scratch[high - 1]
    held = high if len(whole) else 0
    for i in range(held):
        whole[i] = scratch[i]
    low = _first(rank, lists[2], states[2], oldest, (0, -1, -1), scratch)
    for i in range(low if len(whole) else 0):
        if rank[scratch[i]] < rank[edge]:  # else it is among the largest already
            whole[held] = scratch[i]
            held += 1
    return held, scratch[low - 1], edge


@compiled()
def draw(keys, arrived, expired, whole, lists, states, taken):
    """Draw at each emit of a block; the lists go on into the next block.

    keys              Keys
    arrived, expired  int64[e]  row bounds of each emit's window, neither ever falling
    whole             int       k: rows of the largest values, and of the smallest, taken whole
    lists             three int64[m], by priority, by rank, by -rank
    states            int64[3, 3]  of each list its length, the length at which it is swept next,
                                   and the row up to which it has seen; changed in place
    taken             Taken     written; a window must have more than r + 2·k rows

    Gives the lists, which may have grown. O(log) a row and O(r) an emit, amortised, while windows
    slide by few rows. Twin: sorting every window, in ``tests/query/test_approximate.py``.
    """
    by_priority, highs, lows = lists
    rank = keys.rank
    edge = max(whole, 1)
    limit = taken.sample.shape[1] + 2 * whole
    scratch = np.empty(edge, np.int64)
    for e in range(len(arrived)):
        oldest, stop = expired[e], arrived[e]
        first = max(states[0, 2], oldest)
        by_priority = _advanced(
            keys.priority, 1, False, by_priority, states[0], first, stop, oldest, limit
        )
        extremes = (0, -1, -1)
        if len(rank) > 0:
            highs = _advanced(rank, 1, True, highs, states[1], first, stop, oldest, edge)
            lows = _advanced(rank, -1, True, lows, states[2], first, stop, oldest, edge)
            ends = (by_priority, highs, lows)
            extremes = _extremes(rank, ends, states, oldest, taken.whole[e], scratch)
        states[:, 2] = stop
        taken.held[e], taken.low[e], taken.high[e] = extremes
        _first(rank, by_priority, states[0], oldest, extremes, taken.sample[e])
    return by_priority, highs, lows
