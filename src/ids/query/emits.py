"""When a window emits, and which rows it then holds.

rows    ─●──●─●───●────●●──●─▶ time          (t - d, t] at whole multiples t of the slide
panes  |  1  |  2  |  3  |  4  |             a row of pane p is inside at instants p … p+w-1

The rows in window order: key by key, and within a key by the ORDER BY columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ids.errors import StateError
from ids.kernels import ascending
from ids.model import ColumnData, CountWindow, TimeWindow

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ordering:
    """How the input's rows stand in window order.

    rows    int64[n] input row of each place, or None when the input is in order already
    starts  int64[k + 1] where each key's rows begin (one key without PARTITION BY)
    stream  int64[n] place of each row in the order of the whole stream, or None when it is
            the place itself (one key)
    """

    rows: Rows | None
    starts: Rows
    stream: Rows | None


def arrange(order: list[ColumnData], keys: list[ColumnData], rows: int) -> Ordering:
    """Sort stably by the order columns, then by key; cost O(n) when already in order."""
    by_time = _sort_order(order, rows)
    if not keys:
        return Ordering(by_time, np.array([0, rows], dtype=np.int64), None)
    codes, distinct = key_codes(keys)
    if by_time is not None:
        codes = codes[by_time]
    by_key = np.argsort(codes, kind="stable").astype(np.int64)
    starts = np.searchsorted(codes[by_key], np.arange(distinct + 1)).astype(np.int64)
    chosen = by_key if by_time is None else by_time[by_key]
    return Ordering(chosen, starts, by_key)


def key_codes(keys: list[ColumnData]) -> tuple[Rows, int]:
    """A dense number for each row's key, ascending by the key's values, NULL first."""
    codes = np.zeros(len(keys[0]), dtype=np.int64)
    for column in keys:
        _, rank = np.unique(_comparable(column), return_inverse=True)
        own = rank.astype(np.int64) + 1
        if column.valid is not None:
            own = np.where(column.valid, own, 0)
        _, joint = np.unique(codes * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
        codes = joint.astype(np.int64)
    return codes, int(codes.max(initial=-1)) + 1


def _comparable(column: ColumnData) -> npt.NDArray[np.generic]:
    """Numbers that order as the column does (text: the rank of its dictionary value)."""
    if column.dictionary is None:
        return column.values
    # as objects: fixed-width text would drop trailing NULs and cost the longest word each time
    _, rank = np.unique(column.dictionary, return_inverse=True)
    ranks: Rows = rank.astype(np.int64)
    return ranks[column.values] if len(ranks) else np.zeros(len(column), np.int64)


def _sort_order(columns: list[ColumnData], rows: int) -> Rows | None:
    """The stable sort order, NULL first, or None where the rows are in order."""
    if rows < 2 or not columns:
        return None
    keys: list[npt.NDArray[np.generic]] = []
    for column in columns:
        if column.valid is not None:
            keys.append(column.valid)
        values = _comparable(column)
        keys.append(values if column.valid is None else np.where(column.valid, values, 0))
    if len(keys) == 1:
        if ascending(keys[0]):
            return None
        return np.argsort(keys[0], kind="stable").astype(np.int64)
    order = np.lexsort(tuple(reversed(keys))).astype(np.int64)
    return None if bool(np.all(order == np.arange(rows))) else order


Bounds = npt.NDArray[np.uint64]

_MOST_EMITS = 2**31


class EmitPlan(Protocol):
    """The emits of a query, key by key.

    arrived, expired  uint64[e]  row bounds of each emit's window, in window order
    instant           int64[e]   µs of each emit, or None: the newest row's event time
    key               int64[e]   the key
    continues         bool[e]    whether the emit before stands exactly one slide before
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
    """Emits written out (see ``EmitPlan``)."""

    arrived: Bounds
    expired: Bounds
    instant: Rows | None
    key: Rows
    continues: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.arrived)


def chosen(emits: EmitPlan, which: npt.NDArray[np.generic]) -> Emits:
    """Some of the emits, by their numbers or by a mask."""
    return Emits(
        emits.arrived[which],
        emits.expired[which],
        None if emits.instant is None else emits.instant[which],
        emits.key[which],
        emits.continues[which],
    )


class CountEmits:
    """The emits of a count window: every ``slide`` rows of each key, from the first row on.

    A last partial slide emits nothing. Worked out when asked for: a query that emits at every row
    needs none of these arrays.
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


def plan_time(window: TimeWindow, times: Rows, starts: Rows, last: int | None = None) -> Emits:
    """Every instant whose window is not empty, up to the first at or after the last event.

    ``times`` are µs in window order; ``last`` is the last event of any key (default: of these).
    """
    assert window.slide is not None
    width = window.duration // window.slide
    panes = -(-times // window.slide)
    if not len(panes):
        return _no_emits()
    final = -(-(int(times.max()) if last is None else last) // window.slide)
    key_of_row = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    fresh = np.ones(len(panes), dtype=np.bool_)
    fresh[1:] = (panes[1:] != panes[:-1]) | (key_of_row[1:] != key_of_row[:-1])
    pane, key = panes[fresh], key_of_row[fresh]
    until = np.full(len(pane), np.int64(final + 1))
    same = key[1:] == key[:-1]
    until[:-1][same] = np.minimum(pane[1:][same], final + 1)
    reach = np.minimum(until - pane, width)
    _refuse_too_many(int(reach.sum()))
    which = np.repeat(np.arange(len(pane)), reach)
    instant = pane[which] + _within(reach)
    key = key[which]
    arrived = _rows_up_to(panes, starts, key, instant)
    expired = _rows_up_to(panes, starts, key, instant - width)
    continues = np.zeros(len(instant), dtype=np.bool_)
    continues[1:] = (key[1:] == key[:-1]) & (instant[1:] == instant[:-1] + 1)
    return Emits(arrived, expired, instant * window.slide, key, continues)


def _rows_up_to(panes: Rows, starts: Rows, key: Rows, instant: Rows) -> npt.NDArray[np.uint64]:
    """For each emit, the end of its key's rows whose pane is at or before ``instant``."""
    if len(starts) == 2:
        return np.searchsorted(panes, instant, side="right").astype(np.uint64)
    # one search for all keys: give each key its own part of the number line
    low = min(int(panes.min()), int(instant.min()))
    span = max(int(panes.max()), int(instant.max())) - low + 1
    if span > 2**62 // len(starts):  # too long a part: count only the panes that hold a row
        known = np.unique(panes)
        panes, instant = (np.searchsorted(known, each, side="right") for each in (panes, instant))
        low, span = 0, len(known) + 1
    keyed = (panes - low) + np.repeat(np.arange(len(starts) - 1), np.diff(starts)) * span
    return np.searchsorted(keyed, (instant - low) + key * span, side="right").astype(np.uint64)


def _within(sizes: Rows) -> Rows:
    """0, 1, … within each group of the given sizes."""
    ends = np.cumsum(sizes)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def _no_emits() -> Emits:
    empty = np.zeros(0, dtype=np.int64)
    bounds = empty.astype(np.uint64)
    return Emits(bounds, bounds, empty, empty, np.zeros(0, dtype=np.bool_))


def _refuse_too_many(emits: int) -> None:
    if emits > _MOST_EMITS:
        raise StateError(
            f"this query would emit {emits:,} rows; choose a longer slide or a shorter window"
        )
