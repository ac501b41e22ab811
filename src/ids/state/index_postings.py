"""Postings: the rows of one column in the order of its values, in blocks that never change.

    rows     │   65,536   │   65,536   │ 8,192 │ 8,192 │1,024│1,024│ tail │
             block 0      block 1      …                               not indexed yet

A block ends at a multiple of its size. It takes the place of eight smaller ones only once an
eighth of its rows stand behind it, so that rows which come a little late never undo a large one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ids.kernels import COMMON, build_block, emit_slices, find_slices, keep_within, mark_slices
from ids.model import Kind
from ids.state.retained_rows import Array, Retained

SIZES = (1024, 8192, 65536)

_FIRST, _ROWS, _ENTRY, _LAST = 0, 1, 3, 4

Places = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]


class Slices(NamedTuple):
    """Ascending intervals of keys, both ends inside; and whether NULL belongs to them."""

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    nulls: bool


class _Live(NamedTuple):
    """A column's rows inside, as kernels read them: doubles by their bits, Booleans as bytes.

    first  the number of the oldest row inside, counted from the first row ever
    """

    values: npt.NDArray[Any]
    valid: npt.NDArray[np.bool_]
    double: bool
    first: int

    @classmethod
    def of(cls, values: Array, valid: Array, first: int) -> _Live:
        """The kernels know three types of values."""
        double = values.dtype == np.float64
        if double:
            values = values.view(np.int64)
        elif values.dtype == np.bool_:
            values = values.view(np.uint8)
        return cls(values, valid.view(np.bool_), double, first)


class Found(NamedTuple):
    """Where the keys asked for stand in each block: a ``RowSet`` of one column.

    rows    how many rows the slices hold (rows of the first block that have expired included)
    behind  how many rows stand behind the last block, not indexed yet
    """

    postings: Postings
    live: _Live
    slices: Slices
    bounds: npt.NDArray[np.int32]
    rows: int
    behind: int

    @property
    def candidates(self) -> int:
        """How many rows it looks at: those it holds, and those not indexed yet."""
        return min(self.rows + self.behind, len(self.live.values))

    def places(self) -> Places:
        """The places of these rows, ascending. O(rows + unindexed rows)."""
        post, live, (low, high, nulls) = self.postings, self.live, self.slices
        out = np.empty(self.rows + self.behind, np.int64)
        count = emit_slices(
            post.blocks, post.order, self.bounds, live.values, live.valid, live.double,
            low, high, nulls, live.first, out,
        )  # fmt: skip
        return out[:count]

    def mark(self, bits: Bits) -> None:
        """Set the bits of these rows."""
        post, live, (low, high, nulls) = self.postings, self.live, self.slices
        mark_slices(
            post.blocks, post.order, self.bounds, live.values, live.valid, live.double,
            low, high, nulls, live.first, bits,
        )  # fmt: skip

    def within(self, places: Places) -> Places:
        """Those of the places on which a key asked for stands. O(places)."""
        live, (low, high, nulls) = self.live, self.slices
        kept = np.empty_like(places)
        count = keep_within(
            live.values, live.valid, live.double, low, high, nulls, places, kept
        )  # fmt: skip
        return kept[:count]


class Postings:
    """Blocks of one column, as flat arrays that a kernel sees whole.

    ``source`` is what the keys of the blocks stand for: the scalar type of the values, or the codes
    of the words. Where the retained window has turned whole numbers into doubles, or given words
    new codes, the blocks begin anew.

    Cost: a row is sorted once for each size, a few ns for each byte in which keys differ; two
    bytes a row, and a directory of at most 12 bytes for every 16 rows.
    """

    def __init__(self, name: str, kind: Kind, sizes: tuple[int, ...] = SIZES) -> None:
        self.name = name
        self.sizes = sizes
        self.source: Any = None
        self._text = kind is Kind.TEXT
        self._begin()

    def _begin(self) -> None:
        """No block yet."""
        self.blocks: npt.NDArray[np.int64] = np.zeros((0, 6), np.int64)
        self.order: npt.NDArray[np.uint16] = np.zeros(0, np.uint16)
        self.keys: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self.starts: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._order = np.zeros(0, np.uint16)
        self._origin = 0
        self._ends: list[int] = []

    @property
    def nbytes(self) -> int:
        """Bytes held, room to spare included."""
        return sum(a.nbytes for a in (self.blocks, self._order, self.keys, self.starts))

    def _end(self, live: _Live) -> int:
        return self._ends[-1] if self._ends else live.first

    def idle(self, first: int, last: int) -> bool:
        """Whether rows ``first`` to ``last`` are inside and no block has to come or go. O(1)."""
        size = self.sizes[0]
        if not self._ends:
            return last < (first // size + 1) * size
        return first < self._ends[0] and last < self._ends[-1] + size

    def truncate(self, row: int) -> None:
        """Give up every block that holds this row or a later one."""
        if self._ends and row < self._ends[-1]:
            self._take(0, sum(end <= row for end in self._ends))

    def follow(self, retained: Retained) -> _Live:
        """Bring the blocks up to date with the rows inside, and see these. Amortised O(1) a row."""
        values, valid = retained.values(self.name)
        source = retained.codes(self.name) if self._text else values.dtype.type
        # by its identity: a type that NumPy knows by one object, or the very dictionary
        if source is not self.source:
            self.source = source
            self._begin()
        live = _Live.of(values, valid, retained.first)
        if not self.idle(live.first, live.first + len(values)):
            self._update(live)
        return live

    def _update(self, live: _Live) -> None:
        """Drop blocks that have expired, build those that rows now fill."""
        last = live.first + len(live.values)
        gone = next((b for b, end in enumerate(self._ends) if end > live.first), len(self._ends))
        kept = self._ends[gone:]
        whole = next((b for b, end in enumerate(kept) if end % self.sizes[-1]), len(kept))
        wanted = list(self._layout(kept[whole - 1] if whole else live.first, last))
        both = zip(kept[whole:], wanted, strict=False)
        same = sum(1 for _ in takewhile(lambda ends: ends[0] == ends[1], both))
        self._take(gone, gone + whole + same)
        if same < len(wanted):
            self._build(live, wanted[same:])

    def find(self, live: _Live, slices: Slices) -> Found:
        """Where the keys asked for stand. O(blocks · slices · log rows)."""
        low, high, nulls = slices
        bounds = np.empty((len(self.blocks), len(low) + 1, 2), np.int32)
        rows = find_slices(
            self.blocks, self.order, self.keys, self.starts, live.values, live.double,
            low, high, nulls, live.first, bounds,
        )  # fmt: skip
        behind = len(live.values) + live.first - self._end(live)
        return Found(self, live, slices, bounds, rows, behind)

    def _layout(self, first: int, last: int) -> Iterator[int]:
        """Where blocks end: the largest that fit, each with an eighth of itself behind it."""
        at, size, smaller = first, len(self.sizes) - 1, (0, *self.sizes)
        while size >= 0:
            end = (at // self.sizes[size] + 1) * self.sizes[size]
            if end + smaller[size] > last:
                size -= 1
            else:
                yield end
                at = end

    def _take(self, begin: int, end: int) -> None:
        """Of the blocks, these and no others."""
        self.blocks, self._ends = self.blocks[begin:end], self._ends[begin:end]
        self._show()

    def _show(self) -> None:
        """The order as kernels see it: from the first block on."""
        if self._ends:
            self.order = self._order[int(self.blocks[0, _FIRST]) - self._origin :]

    def _build(self, live: _Live, ends: list[int]) -> None:
        begin = self._end(live)
        self._reserve_order(begin, ends[-1])
        fresh: list[tuple[int, ...]] = []
        entry = int(self.blocks[-1, _LAST]) if len(self.blocks) else 0
        for end in ends:
            self._reserve_entries(entry, (end - begin) // COMMON + 1)
            known, entries, own = build_block(
                live.values, live.valid, live.double, begin - live.first, end - begin,
                self._order, begin - self._origin, self.keys, self.starts, entry,
            )  # fmt: skip
            fresh.append((begin, end - begin, known, entry, entry + entries, own))
            begin, entry = end, entry + entries
        self.blocks = np.concatenate([self.blocks, np.array(fresh, np.int64)])
        self._ends += ends
        self._show()
        self._compact()

    def _reserve_order(self, begin: int, end: int) -> None:
        """Room for the order of rows up to ``end``; those before ``begin`` are kept."""
        origin = int(self.blocks[0, _FIRST]) if len(self.blocks) else begin
        if end - self._origin > len(self._order) or origin < self._origin:
            size = _roomy(end - origin, len(self._order))
            self._order = _moved(self._order, origin - self._origin, begin - origin, size)
            self._origin = origin

    def _reserve_entries(self, entry: int, count: int) -> None:
        """Room for a directory of at most ``count`` entries from ``entry`` on."""
        if entry + count > len(self.keys):
            size = entry + count + entry // 4
            self.keys, self.starts = (_moved(a, 0, entry, size) for a in (self.keys, self.starts))

    def _compact(self) -> None:
        """Let go of directories that have expired, once they are half of all."""
        entry, last = int(self.blocks[0, _ENTRY]), int(self.blocks[-1, _LAST])
        if entry > last - entry:
            size = (last - entry) * 5 // 4
            self.keys = _moved(self.keys, entry, last - entry, size)
            self.starts = _moved(self.starts, entry, last - entry, size)
            self.blocks[:, _ENTRY : _LAST + 1] -= entry


def _roomy(needed: int, size: int) -> int:
    """A size with a quarter to spare; the present one where that still fits."""
    return needed + needed // 4 if needed * 5 // 4 > size or needed * 2 < size else size


def _moved(array: npt.NDArray[Any], start: int, count: int, size: int) -> npt.NDArray[Any]:
    """The elements from ``start`` at the front of a fresh array."""
    fresh = np.empty(size, array.dtype)
    fresh[:count] = array[start : start + count]
    return fresh
