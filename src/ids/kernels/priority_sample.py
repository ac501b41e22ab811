"""Priority-sample of a sliding window: each row has a random priority, and few rows are kept.

A row is kept while it is among the ``size`` highest of itself and all newer rows. Newer rows expire
later, so once ``size`` of them are higher, the row can never be drawn again. The same sweep keeps a
uniform sample (random priorities), the largest values (priority y) and the smallest (-y).

With replacement, there are many copies of a sample of one row, each with separate priorities: copy
c samples the row with the highest of its priorities. A row is kept while it is higher than all
newer rows for some copy (Babcock, Datar and Motwani 2002).

``draw`` samples a window at each of its emits. It maintains three lists of rows, each sorted by its
key in descending order, which contain all rows that a later emit may need:

    by priority   the sample, plus the number of rows that may be taken as extremes
    by rank       the largest values
    by -rank      the smallest values

A list contains the rows that are among the ``limit`` highest of themselves and all newer rows, and,
until the next sweep, some others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ids.kernels.compiler import compiled

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_TO_UNIT = 2.0**-53

# 32 ranges of 1 - priority per power of two: at most 3 % more rows are kept than necessary.
_DROPPED = np.int64(47)
_LOWEST = np.int64((1023 - 53) << 5)
_RANGES = 53 * 32 + 1


@njit
def finalised(z):
    """Apply the last step of SplitMix64: each bit of ``z`` (uint64) affects all result bits."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@njit
def mixed(seed, number):
    """Return one draw for a seed (uint64) and a number: uniform in [0, 1), a multiple of 2**-53.

    Computes output ``number`` of SplitMix64 without the ones before it. The seed is finalised
    first, so that the streams of seeds 0, 1, 2 … do not overlap.
    """
    state = finalised(seed + _GOLDEN) + (np.uint64(number) + np.uint64(1)) * _GOLDEN
    return np.float64(finalised(state) >> np.uint64(11)) * _TO_UNIT


@compiled()
def mix(seed, sequence, out):
    """Write the priorities of rows, given their arrival numbers.

    seed      uint64
    sequence  int64[n]
    out       float64[n]  written: uniform in [0, 1), multiples of 2**-53

    O(n), allocates nothing. Reference: SplitMix64 in Python integers, in the test.
    """
    for i in range(np.uint64(len(sequence))):
        out[i] = mixed(seed, sequence[i])


@njit
def _replace_least(heap, start, length, value):
    """Replace the least value of the min-heap ``heap[start : start + length]`` by ``value``."""
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
    """Add ``value`` to a min-heap that is not full; ``place`` is its first free index."""
    while place > 0:
        above = (place - 1) >> 1
        if heap[start + above] <= value:
            break
        heap[start + place] = heap[start + above]
        place = above
    heap[start + place] = value


@njit
def _offer(heap, start, filled, capacity, value):
    """Offer a value to the min-heap at ``start`` of the ``capacity`` highest values.

    ``filled`` is the number of values in the heap. Returns whether the value was added, and the
    new number of values. Of equal values the first stays.
    """
    if filled < capacity:
        _add_to_heap(heap, start, filled, value)
        return True, filled + 1
    high = capacity > 0 and value > heap[start]
    if high:
        _replace_least(heap, start, capacity, value)
    return high, filled


@compiled()
def survivors(priority, size, keep):
    """Mark the rows that are among the ``size`` highest of themselves and all newer rows.

    priority  float64[n] or int64[n]  oldest row first; of equal ones the newer is the higher
    size      int, at least 0
    keep      bool[n]                 written

    Returns the number of rows kept. O(n log size) at worst, one comparison for most rows; allocates
    ``size`` words. Reference: the quadratic count in ``tests/kernels/test_sampling.py``.
    """
    capacity = min(size, len(priority))
    heap = np.empty(max(capacity, 1), priority.dtype)
    filled = kept = 0
    for i in range(len(priority) - 1, -1, -1):
        keep[i], filled = _offer(heap, 0, filled, capacity, priority[i])
        kept += keep[i]
    return kept


@njit
def _starts(capacities, size):
    """Return the start of each stratum's heap; a heap has at most ``size`` values.

    Many small strata therefore need no more memory than one large one.
    """
    start = np.zeros(len(capacities) + 1, np.int64)
    for s in range(len(capacities)):
        start[s + 1] = start[s] + min(size, capacities[s])
    return start


@compiled()
def survivors_by_stratum(priority, stratum, strata, size, keep):
    """Apply ``survivors`` to each stratum separately, in one sweep.

    priority  float64[n] or int64[n]  oldest row first
    stratum   int32[n]                in 0..strata-1
    size      int                     rows to keep per stratum
    keep      bool[n]                 written

    Returns the number of rows kept. Allocates O(n + strata) words.
    """
    capacities = np.zeros(strata, np.int64)
    for i in range(np.uint64(len(priority))):
        capacities[stratum[i]] += 1
    start = _starts(capacities, size)
    heap = np.empty(max(start[-1], 1), priority.dtype)
    filled = np.zeros(strata, np.int64)
    kept = 0
    for i in range(len(priority) - 1, -1, -1):
        s = stratum[i]
        capacity = start[s + 1] - start[s]
        keep[i], filled[s] = _offer(heap, start[s], filled[s], capacity, priority[i])
        kept += keep[i]
    return kept


@njit
def _range_of(distance):
    """Return the range of a priority, given its distance from 1; range 0 is the highest."""
    return (np.float64(distance).view(np.int64) >> _DROPPED) - _LOWEST


@njit
def _end_of(place):
    """Return the distance from 1 at which a range ends."""
    return np.int64((place + _LOWEST + 1) << _DROPPED).view(np.float64)


@compiled()
def likely_survivors(priority, size, keep):
    """Mark the ``survivors`` of random priorities and a few more rows.

    priority  float64[n]  as drawn by ``mix``, oldest row first
    size      int, at least 1
    keep      bool[n]     written; true for every row that ``survivors`` keeps

    Returns the number of rows kept. Instead of a heap, it counts the rows seen in each narrow range
    of priorities: a row below the range of the ``size``-th highest is dominated. O(n) for any
    ``size``.
    """
    seen = np.zeros(_RANGES, np.int64)
    last = _RANGES - 1  # the range of the size-th highest row so far
    end = np.inf
    high = 0  # rows seen in ranges up to that one
    kept = 0
    for i in range(len(priority) - 1, -1, -1):
        distance = 1.0 - priority[i]  # exact
        near = distance < end
        keep[i] = near
        # without branches, except for a rare one: whether a row is near is hard to predict
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
    sequence  int64[n]  arrival numbers, oldest row first
    keep      bool[n]   written

    O(n · copies): each row draws a priority per copy, which is the cost of r independent rows.
    Allocates three words per copy. Reference: ``tests/kernels/test_sampling.py``.
    """
    keep[:] = False
    _sweep_copies(seed, copies, sequence, keep, np.empty(copies, np.int64))


@compiled()
def highest_of_copies(seed, copies, sequence, places):
    """Write the row that each copy ranks highest.

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

    O(n log size) at worst; allocates ``size`` words. Reference: sorting, in the test.
    """
    capacity = min(size, len(priority))
    if capacity == 0:
        keep[:] = False
        return
    heap = np.empty(capacity, priority.dtype)
    filled = 0
    for i in range(len(priority)):
        _, filled = _offer(heap, 0, filled, capacity, priority[i])
    edge = heap[0]
    equal = 0
    for k in range(capacity):
        equal += heap[k] == edge
    for i in range(len(priority) - 1, -1, -1):
        keep[i] = priority[i] > edge
        if equal > 0 and priority[i] == edge:
            keep[i] = True
            equal -= 1


@compiled()
def highest_by_stratum(priority, stratum, size, capacities, keep):
    """Apply ``highest`` to each stratum separately, for random priorities (no two are equal).

    stratum     int32[n]
    capacities  int64[strata]  at least the number of rows in each stratum
    keep        bool[n]        written

    O(n log size), allocates at most n words.
    """
    start = _starts(capacities, size)
    heap = np.empty(max(start[-1], 1), priority.dtype)
    filled = np.zeros(len(capacities), np.int64)
    for i in range(len(priority)):
        s = stratum[i]
        capacity = start[s + 1] - start[s]
        _, filled[s] = _offer(heap, start[s], filled[s], capacity, priority[i])
    for i in range(len(priority)):
        s = stratum[i]
        keep[i] = filled[s] > 0 and priority[i] >= heap[start[s]]


@compiled()
def likely_highest(priority, size, keep):
    """Mark the ``size`` highest of random priorities, and a few more rows. O(n).

    priority  float64[n]  as drawn by ``mix``
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


_FEW = 16  # up to this number, rows are inserted one by one
_SHORTEST = 4_096  # shorter lists are not swept: the sweep would not pay off


class Keys(NamedTuple):
    """The keys by which rows are drawn.

    priority  int64[n]
    rank      int64[n or 0]  rank among all players by value; -1: NULL; empty: no extremes are drawn
    """

    priority: npt.NDArray[np.int64]
    rank: npt.NDArray[np.int64]


class Taken(NamedTuple):
    """The rows drawn at each of e emits.

    sample  int64[e, r]    by descending priority
    whole   int64[e, 2·k]  the largest values, descending, then the smallest, ascending
    held    int64[e]       the number of rows in ``whole``
    low     int64[e]       the row of the k-th (at least the first) smallest value; -1: no player
    high    int64[e]       the same for the largest values
    """

    sample: npt.NDArray[np.int64]
    whole: npt.NDArray[np.int64]
    held: npt.NDArray[np.int64]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]


@njit
def _inside(rows, count, oldest):
    """Remove the expired rows from a list; return its new length."""
    kept = 0
    for i in range(count):
        if rows[i] >= oldest:
            rows[kept] = rows[i]
            kept += 1
    return kept


@njit
def _swept(key, sign, rows, count, oldest, limit):
    """Remove expired rows and rows that no later emit can need; return the new length."""
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
    """Insert one row into a sorted list."""
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
    """Merge rows in descending order into a list, from its end backwards."""
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
    """Return the rows from ``first`` to ``stop`` that belong in a list, in descending order."""
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
    """Add the rows from ``first`` to ``stop`` to a list; return it, as it may have been copied.

    If ``players`` is true, rows with a key below 0 are skipped.
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
        state[1] = 2 * count  # if values only rise or only fall, a sweep removes nothing
    state[0] = count
    return rows


@njit
def _first(rank, rows, state, oldest, extremes, out):
    """Write the first rows of a list that are in the window and no extremes; return how many.

    Expired rows are removed from the list if there are many.
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
    """Find the extremes of a window: their number, and the last row at the low and the high end."""
    high = _first(rank, lists[1], states[1], oldest, (0, -1, -1), scratch)
    if high == 0:
        return 0, -1, -1
    edge = scratch[high - 1]
    held = high if len(whole) else 0
    for i in range(held):
        whole[i] = scratch[i]
    low = _first(rank, lists[2], states[2], oldest, (0, -1, -1), scratch)
    for i in range(low if len(whole) else 0):
        if rank[scratch[i]] < rank[edge]:  # otherwise it is already among the largest
            whole[held] = scratch[i]
            held += 1
    return held, scratch[low - 1], edge


@compiled()
def draw(keys, arrived, expired, whole, lists, states, taken):
    """Draw a sample at each emit of a block; the returned lists are passed to the next block.

    keys              Keys
    arrived, expired  int64[e]  row bounds of each emit's window, both non-decreasing
    whole             int       k: the rows of the k largest and the k smallest values are all taken
    lists             three int64[m], by priority, by rank, by -rank
    states            int64[3, 3]  for each list its length, the length at which it is swept next,
                                   and the end of the rows it has seen; changed in place
    taken             Taken     written; a window must have more than r + 2·k rows

    Returns the lists, which may have grown. O(log) per row and O(r) per emit, amortised, if windows
    slide by few rows. Reference: sorting every window, in ``tests/query/test_approximate.py``.
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
