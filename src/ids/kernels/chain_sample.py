"""Chain-sample: many independent samples of one row from the last N (Babcock et al. 2002).

The head of a chain is its sample. Every row of a chain has a successor, drawn uniformly from the N
rows after it, which becomes the head when the row expires. An arriving row becomes the head with
probability 1/N, except at the arrival at which the head expires: the successor is uniform already.
The rule as usually stated lets that arrival compete as well, which draws the newest row too often,
by about 1 in N.

Every random draw is a function of the chain and the arrival number. A chain is therefore three
numbers, its rows can be recomputed by walking it, and it costs nothing until its next event.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ids.kernels.compiler import compiled
from ids.kernels.priority_sample import finalised, mixed

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


# Columns of ``chains`` (int64[r, 3]): the next arrival that becomes the head, the successor of the
# last row of the chain, and the head (which may have expired since).
_ADOPTS, _FOLLOWS, _HEAD = 0, 1, 2


@njit
def _unit(seed, c, which, arrival):
    """Return one of a chain's draws for an arrival, in (0, 1]."""
    return 1.0 - mixed(finalised(seed) + np.uint64(4 * c + which), arrival)


@njit
def _successor(seed, c, arrival, window):
    ahead = np.int64((1.0 - _unit(seed, c, 0, arrival)) * window)
    return arrival + 1 + min(ahead, window - 1)


@njit
def _adoption(seed, c, arrival, begun, window):
    """Return the next arrival that becomes the head, unless the head expires at that arrival.

    Row m becomes the head with probability 1 / min(m, window). The probability that none of the
    rows up to m does, for m <= window, is now / m.
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
    """Return the first row of a chain that is not older than ``oldest``."""
    while head < oldest:
        head = _successor(seed, c, head, window)
    return head


@njit
def _moment(chains, c):
    return min(chains[c, _ADOPTS], chains[c, _FOLLOWS])


@njit
def _sink(chains, heap):
    """Restore the heap of chains after its top changed; the chain with the next event is on top."""
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
    """Initialise chains; the next row becomes the head of each.

    chains  int64[r, 3]  written
    heap    int64[r]     written
    begun   number of arrivals so far, all of them outside the window
    """
    for c in range(len(chains)):
        chains[c, :] = begun + 1
        heap[c] = c


@compiled()
def run_chains(seed, chains, heap, begun, window, first, keep):
    """Process arriving rows, numbered from ``first``, and mark the rows that some chain takes.

    chains  int64[r, 3]  changed in place
    heap    int64[r]     changed in place
    begun   number of arrivals before the first row that counts
    keep    bool[n]      written

    O(n + events · log r); a chain has two or three events per N arrivals.
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
    """Write each chain's sample of the last ``window`` rows to ``heads``, int64[r]."""
    for c in range(len(chains)):
        heads[c] = _walk(seed, c, chains[c, _HEAD], arrived - window + 1, window)


@compiled()
def mark_links(seed, chains, window, arrived, arrivals, keep):
    """Mark the rows in the window that are in some chain.

    arrivals  int64[n]  ascending
    keep      bool[n]   written

    O(n + rows in chains · log n); a chain has about e (2.7) rows.
    """
    keep[:] = False
    for c in range(len(chains)):
        link = _walk(seed, c, chains[c, _HEAD], arrived - window + 1, window)
        while link <= arrived:
            place = np.searchsorted(arrivals, link)
            if place < len(keep) and arrivals[place] == link:
                keep[place] = True
            link = _successor(seed, c, link, window)
