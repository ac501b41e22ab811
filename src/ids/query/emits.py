"""Determines when a query emits, and which rows are in the window at each emit.

rows    ─●──●─●───●────●●──●─▶ time          (t - d, t] at whole multiples t of the slide
panes  |  1  |  2  |  3  |  4  |             a row in pane p is in windows p … p+w-1

Rows are in window order (``ids.query.row_order``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ids.errors import StateError
from ids.model import CountWindow, TimeWindow

Rows = npt.NDArray[np.int64]


Bounds = npt.NDArray[np.uint64]

_MOST_EMITS = 2**31


class EmitPlan(Protocol):
    """The emits of a query, grouped by key.

    arrived, expired  uint64[e]  the end and start of each emit's window, in window order
    instant           int64[e]   time of each emit in µs; None if it is the newest row's event time
    key               int64[e]   the key of each emit
    continues         bool[e]    whether the previous emit is exactly one slide earlier
    """

    @property
    def arrived(self) -> Bounds: ...
    @property
    def expired(self) -> Bounds: ...
    @property
    def instant(self) -> Rows | None: ...
    @property
    def key(self) -> Rows: ...
    @property
    def continues(self) -> npt.NDArray[np.bool_]: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Emits:
    """Emits as arrays (see ``EmitPlan``)."""

    arrived: Bounds
    expired: Bounds
    instant: Rows | None
    key: Rows
    continues: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.arrived)


def chosen(emits: EmitPlan, which: npt.NDArray[np.generic]) -> Emits:
    """Select emits by number or by mask."""
    return Emits(
        emits.arrived[which],
        emits.expired[which],
        None if emits.instant is None else emits.instant[which],
        emits.key[which],
        emits.continues[which],
    )


class CountEmits:
    """The emits of a count window, which occur after every ``slide`` rows of each key.

    There is no emit for an incomplete last slide. The arrays are computed lazily, because a query
    that emits at every row does not need them.
    """

    instant = None

    def __init__(self, window: CountWindow, starts: Rows) -> None:
        self.window = window
        self.starts = starts
        self._per_key = np.diff(starts) // window.slide
        _refuse_too_many(len(self))

    def __len__(self) -> int:
        return int(self._per_key.sum())

    @cached_property
    def key(self) -> Rows:
        return np.repeat(np.arange(len(self._per_key)), self._per_key)

    @cached_property
    def _nth(self) -> Rows:
        return _within(self._per_key)

    @cached_property
    def arrived(self) -> Bounds:
        ends = self.starts[self.key] + (self._nth + 1) * self.window.slide
        return ends.astype(np.uint64)

    @cached_property
    def expired(self) -> Bounds:
        ends = self.arrived.view(np.int64)
        return np.maximum(ends - self.window.size, self.starts[self.key]).astype(np.uint64)

    @cached_property
    def continues(self) -> npt.NDArray[np.bool_]:
        return self._nth > 0


def plan_time(window: TimeWindow, times: Rows, starts: Rows) -> Emits:
    """Plan the emits of a time window, one per slide boundary with a non-empty window.

    The last emit is at the first boundary at or after the last event. ``times`` are event times in
    µs, in window order.
    """
    assert window.slide is not None
    width = window.duration // window.slide
    panes = -(-times // window.slide)
    if not len(panes):
        none = np.zeros(0, np.int64)
        return Emits(none.view(np.uint64), none.view(np.uint64), none, none, none.view(np.bool_))
    key_of_row = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    fresh = np.ones(len(panes), dtype=np.bool_)
    fresh[1:] = (panes[1:] != panes[:-1]) | (key_of_row[1:] != key_of_row[:-1])
    pane, key = panes[fresh], key_of_row[fresh]
    until = np.full(len(pane), panes.max() + 1)
    same = key[1:] == key[:-1]
    until[:-1][same] = pane[1:][same]
    emits_of_pane = np.minimum(until - pane, width)
    _refuse_too_many(int(emits_of_pane.sum()))
    which = np.repeat(np.arange(len(pane)), emits_of_pane)
    instant = pane[which] + _within(emits_of_pane)
    key = key[which]
    arrived = _rows_up_to(panes, starts, key, instant)
    expired = _rows_up_to(panes, starts, key, instant - width)
    continues = np.zeros(len(instant), dtype=np.bool_)
    continues[1:] = (key[1:] == key[:-1]) & (instant[1:] == instant[:-1] + 1)
    return Emits(arrived, expired, instant * window.slide, key, continues)


def _rows_up_to(panes: Rows, starts: Rows, key: Rows, instant: Rows) -> npt.NDArray[np.uint64]:
    """For each emit, return the end of its key's rows in panes up to ``instant``."""
    if len(starts) == 2:
        return np.searchsorted(panes, instant, side="right").astype(np.uint64)
    # each key gets its own range of numbers, so that one search is enough for all keys
    low = min(int(panes.min()), int(instant.min()))
    span = max(int(panes.max()), int(instant.max())) - low + 1
    if span > 2**62 // len(starts):  # the ranges would overflow, so number only non-empty panes
        known = np.unique(panes)
        panes, instant = (np.searchsorted(known, each, side="right") for each in (panes, instant))
        low, span = 0, len(known) + 1
    keyed = (panes - low) + np.repeat(np.arange(len(starts) - 1), np.diff(starts)) * span
    return np.searchsorted(keyed, (instant - low) + key * span, side="right").astype(np.uint64)


def _within(sizes: Rows) -> Rows:
    """Number the elements 0, 1, … within groups of the given sizes."""
    ends = np.cumsum(sizes)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def _refuse_too_many(emits: int) -> None:
    if emits > _MOST_EMITS:
        raise StateError(
            f"this query would emit {emits:,} rows; choose a longer slide or a shorter window"
        )
