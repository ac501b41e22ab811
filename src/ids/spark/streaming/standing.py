"""Windows over panes on the driver: the twin of ``ids.spark.windows``, in NumPy.

panes     | 1 |   | 3 |              width 3
changes   +1      +3  -1      -3
windows     ──────  ──  ──────       a stretch of instants shares one window's sums
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.errors import StateError
from ids.model.scale import MAX_ROWS
from ids.spark.streaming.pane_table import Panes, changes

__all__ = ["Instants", "Standing", "instants", "standing"]

Integers = npt.NDArray[np.int64]


class Standing(NamedTuple):
    """Windows that are not empty, each with the instants (in slides) at which it stands.

    key     int64[w]      which key's window
    row     int64[w]      a pane of that key
    first   int64[w]      the first instant
    last    int64[w]      the last one
    before  int64[w]      the window one slide before the first instant; -1 where none stood
    sums    int64[s, w]
    """

    key: Integers
    row: Integers
    first: Integers
    last: Integers
    before: Integers
    sums: Integers


class Instants(NamedTuple):
    """Emits, in order.

    window   int64[e]  the window that stands then
    instant  int64[e]  in slides
    opens    bool[e]   whether it is the window's first instant
    """

    window: Integers
    instant: Integers
    opens: npt.NDArray[np.bool_]


def standing(panes: Panes, width: int, first: int, last: int) -> Standing:
    """The windows of ``width`` panes that stand at any instant from ``first`` to ``last``."""
    numbers, rows = panes.key_numbers(), np.arange(len(panes))
    key, at = np.tile(numbers, 2), np.concatenate([panes.pane, panes.pane + width])
    order = np.lexsort((at, key))
    key, at, row = key[order], at[order], np.tile(rows, 2)[order]
    starts = changes([key, at])
    signed = np.concatenate([panes.sums, -panes.sums], axis=1)[:, order]
    if len(starts):
        signed = np.add.reduceat(signed, starts, axis=1)
    # every pane that comes also goes, so a key leaves nothing to the next one
    sums = np.cumsum(signed, axis=1)
    key, at, row = key[starts], at[starts], row[starts]
    until = np.append(at[1:] - 1, 0)
    chosen = np.flatnonzero((sums[0] > 0) & (until >= first) & (at <= last))
    _refuse_wide(sums[0, chosen])
    before = np.full(len(chosen), -1)
    follows = np.flatnonzero((np.diff(chosen) == 1) & (np.diff(key[chosen]) == 0)) + 1
    before[follows] = follows - 1
    return Standing(key[chosen], row[chosen], at[chosen], until[chosen], before, sums[:, chosen])


def instants(windows: Standing, first: int, last: int) -> Instants:
    """Every instant from ``first`` to ``last`` of these windows, by instant, then key."""
    low, high = np.maximum(windows.first, first), np.minimum(windows.last, last)
    many = np.maximum(high - low + 1, 0)
    window = np.repeat(np.arange(len(many)), many)
    ends = np.cumsum(many)
    instant = low[window] + np.arange(len(window)) - (ends - many)[window]
    order = np.lexsort((windows.key[window], instant))
    window, instant = window[order], instant[order]
    return Instants(window, instant, instant == windows.first[window])


def _refuse_wide(counts: Integers) -> None:
    widest = int(counts.max(initial=0))
    if widest > MAX_ROWS:
        raise StateError(
            f"a window of {widest:,} rows is more than the {MAX_ROWS:,} that are summed exactly; "
            "choose a shorter window"
        )
