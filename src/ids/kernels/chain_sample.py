"""Chain-sample: one row of the last N, many times over and independently (Babcock et al. 2002).

A chain's head is its sample. Every row of it has a successor, uniform among the N rows behind it,
which becomes the head when the row leaves. An arrival becomes the head at odds of 1 in N, but not
the arrival at which the head leaves: the successor is uniform as it is, and the rule as usually
told, which lets that arrival try as well, draws the newest row too often by about 1 in N.

Every draw is worked out from the chain and the arrival it is about, so a chain is three numbers,
its rows are found again by walking it, and it costs nothing until its next moment comes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ids.kernels.compile import compiled
from ids.kernels.priority_sample import finalised, mixed

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


# Columns of ``chains`` (int64[r, 3]): the next arrival that becomes the head, the successor of the
# last row of the chain, and the head (which may have left since).
_ADOPTS, _FOLLOWS, _HEAD = 0, 1, 2


@njit
def _unit(seed, c, which, arrival):
    """One of a chain's draws about an arrival, in (0, 1]."""
    return 1.0 - mixed(finalised(seed) + np.uint64(4 * c + which), arrival)


@njit
def _successor(seed, c, arrival, window):
    ahead = np.int64((1.0 - _unit(seed, c, 0, arrival)) * window)
    return arrival + 1 + min(ahead, window - 1)


@njit
def _adoption(seed, c, arrival, begun, window):
    """The next arrival that becomes the head, if the head does not leave at that moment.

    The m-th row does at odds of 1 in min(m, window): none up to m <= window at odds of now / m.
    """
    now = arrival - begun
    if now < window:
        reached = np.floor(now / _unit(seed, c, 1, arrival)) + 1.0
        if reached <= window:
            return begun + np.int64(reached)
        arrival = begun + window
    tries = np.log(_unit(seed, c, 2, arrival)) / np.log1p(-1.0 / window)
    return arrival + 1 + np.int64(np.floor(tries))


@njit
def _walk(seed, c, head, oldest, window):
    """The first row of a chain that is not older than ``oldest``."""
    while head < oldest:
        head = _successor(seed, c, head, window)
    return head


@njit
def _moment(chains, c):
    return min(chains[c, _ADOPTS], chains[c, _FOLLOWS])


@njit
def _sink(chains, heap):
    """Restore the heap of chains below its top: the chain whose moment comes first is above."""
    c = heap[0]
    moment = _moment(chains, c)
    place = 0
    child = 1
    while child < len(heap):
        if child + 1 < len(heap):
            child += _moment(chains, heap[child + 1]) < _moment(chains, heap[child])
        if _moment(chains, heap[child]) >= moment:
            break
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = c


@compiled()
def begin_chains(chains, heap, begun):
    """Chains that wait for the next row, which becomes the head of all.

    chains  int64[r, 3]  written
    heap    int64[r]     written
    begun   arrivals so far, none of which is inside
    """
    for c in range(len(chains)):
        chains[c, :] = begun + 1
        heap[c] = c


@compiled()
def run_chains(seed, chains, heap, begun, window, first, keep):
    """Let rows arrive, numbered from ``first`` on, and mark those that some chain takes.

    chains  int64[r, 3]  changed in place
    heap    int64[r]     changed in place
    begun   arrivals before the first row that counts
    keep    bool[n]      written

    O(n + moments · log r); a chain has two or three moments in N arrivals.
    """
    keep[:] = False
    last = first + len(keep) - 1
    while _moment(chains, heap[0]) <= last:
        c = heap[0]
        arrival = _moment(chains, c)
        follows = chains[c, _FOLLOWS] == arrival
        if chains[c, _ADOPTS] == arrival:
            head = _walk(seed, c, chains[c, _HEAD], arrival - window, window)
            if head + window != arrival:
                head = arrival
                follows = True
            chains[c, _HEAD] = head
            chains[c, _ADOPTS] = _adoption(seed, c, arrival, begun, window)
        if follows:
            chains[c, _FOLLOWS] = _successor(seed, c, arrival, window)
            keep[arrival - first] = True
        _sink(chains, heap)


@compiled()
def head_arrivals(seed, chains, window, arrived, heads):
    """Each chain's sample of the last ``window`` rows: heads int64[r], written."""
    for c in range(len(chains)):
        heads[c] = _walk(seed, c, chains[c, _HEAD], arrived - window + 1, window)


@compiled()
def mark_links(seed, chains, window, arrived, arrivals, keep):
    """Mark the rows inside that are in some chain.

    arrivals  int64[n]  ascending
    keep      bool[n]   written

    O(n + rows in chains · log n): about e rows a chain.
    """
    keep[:] = False
    for c in range(len(chains)):
        link = _walk(seed, c, chains[c, _HEAD], arrived - window + 1, window)
        while link <= arrived:
            place = np.searchsorted(arrivals, link)
            if place < len(keep) and arrivals[place] == link:
                keep[place] = True
            link = _successor(seed, c, link, window)
