"""Samples of a sliding window, drawn at each of its emits.

Three lists of rows, each by its own key in descending order, hold whatever a later emit may need:

    by priority   the sample, and as many rows more as may be taken whole
    by rank       the largest values
    by -rank      the smallest values

A list holds the rows among the ``limit`` highest of themselves and all newer rows, and, until the
next sweep, some others.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ids.kernels.compiling import compiled
from ids.kernels.sampling import survivors

__all__ = ["Keys", "Taken", "draw"]

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
def _lightened(rows, state, oldest, skipped):
    """Take rows that have left out of a list when they are in the way."""
    if skipped > max(64, state[0] // 16):
        state[0] = _inside(rows, state[0], oldest)


@njit
def _first(rows, state, oldest, limit, out):
    """The first rows of a list that are inside; gives how many."""
    found = i = 0
    while i < state[0] and found < limit:
        if rows[i] >= oldest:
            out[found] = rows[i]
            found += 1
        i += 1
    _lightened(rows, state, oldest, i - found)
    return found


@njit
def _extremes(rank, lists, states, oldest, whole, scratch):
    """Both ends of the window: how many rows are whole, and the last of either end."""
    high = _first(lists[1], states[1], oldest, len(scratch), scratch)
    if high == 0:
        return 0, -1, -1
    edge = scratch[high - 1]
    held = high if len(whole) else 0
    for i in range(held):
        whole[i] = scratch[i]
    low = _first(lists[2], states[2], oldest, len(scratch), scratch)
    for i in range(low if len(whole) else 0):
        if rank[scratch[i]] < rank[edge]:  # else it is among the largest already
            whole[held] = scratch[i]
            held += 1
    return held, scratch[low - 1], edge


@njit
def _sampled(rank, rows, state, oldest, extremes, out):
    """The first rows by priority that are inside and not taken whole."""
    held, low, high = extremes
    found = i = skipped = 0
    while i < state[0] and found < len(out):
        row = rows[i]
        i += 1
        if row < oldest:
            skipped += 1
            continue
        if held > 0 and rank[row] >= 0 and (rank[row] >= rank[high] or rank[row] <= rank[low]):
            continue
        out[found] = row
        found += 1
    _lightened(rows, state, oldest, skipped)


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
    slide by few rows. Twin: sorting every window, in ``tests/engine/test_sql_approximate.py``.
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
        _sampled(rank, by_priority, states[0], oldest, extremes, taken.sample[e])
    return by_priority, highs, lows
