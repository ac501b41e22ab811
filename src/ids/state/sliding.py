"""Columns that slide: rows are appended at the tail and dropped at the head, O(1) amortised.

    head            tail
░░░░░│██ live rows ██│······ room
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Sliding"]

Array = npt.NDArray[np.generic]


class Sliding:
    """A struct of arrays over the live rows; any first axis, one length for all.

    The live rows move to the front when the tail meets the end; there is a quarter of room to
    spare, so a row is moved four times in its life at the most.

    ``first`` is the number of the oldest live row, as rows at the head are counted from the
    beginning: expiry moves it, and nothing else does. ``expected`` is how many rows will be live,
    where that is known: from half of them on there is room for all, and none is allocated twice.

    A view holds until rows are appended: they may move then, within the same memory.
    """

    def __init__(self) -> None:
        self.first = 0
        self.expected = 0
        self._arrays: dict[str, Array] = {}
        self._head = 0
        self._tail = 0

    def __len__(self) -> int:
        return self._tail - self._head

    def __getitem__(self, name: str) -> Array:
        """A view of one column's live rows."""
        return self._arrays[name][self._head : self._tail]

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self._arrays)

    @property
    def nbytes(self) -> int:
        """Bytes held, room to spare included."""
        return sum(array.nbytes for array in self._arrays.values())

    def append(self, block: Mapping[str, Array]) -> None:
        """Add rows at the tail; the first rows of an empty window fix the columns' types."""
        count = len(next(iter(block.values())))
        if not len(self):
            # types and widths may have changed while nothing was inside
            self.replace({name: values[:0] for name, values in block.items()})
        self._reserve(count)
        for name, values in block.items():
            self._arrays[name][self._tail : self._tail + count] = values
        self._tail += count

    def merge(self, block: Mapping[str, Array], order: str) -> None:
        """Add rows where they belong by the column ``order``; equal ones go behind."""
        if len(self) and len(block[order]):
            first = np.searchsorted(self[order], block[order].min(), side="right")
            tail = {name: self[name][first:].copy() for name in self._arrays}
            self._tail = self._head + int(first)
            block = {name: np.concatenate([tail[name], block[name]]) for name in block}
        rank = np.argsort(block[order], kind="stable")
        self.append({name: values[rank] for name, values in block.items()})

    def drop_front(self, count: int) -> None:
        """Expire the oldest rows."""
        self._head += count
        self.first += count

    def keep(self, mask: npt.NDArray[np.bool_]) -> None:
        """Keep only the marked live rows."""
        self.replace({name: self[name][mask] for name in self._arrays})

    def remove(self, places: npt.NDArray[np.int64]) -> None:
        """Drop the rows at these places; rows from the tail move there, so order is lost.

        O(places).
        """
        last = len(self) - len(places)
        stays = np.ones(len(places), np.bool_)
        stays[places[places >= last] - last] = False
        holes, moved = places[places < last], last + np.flatnonzero(stays)
        for name in self._arrays:
            self[name][holes] = self[name][moved]
        self._tail -= len(places)

    def put(self, name: str, values: Array) -> None:
        """One column's live rows anew; its type and width may change."""
        held = self._arrays.get(name)
        if held is not None and (held.dtype, held.shape[1:]) == (values.dtype, values.shape[1:]):
            held[self._head : self._tail] = values
            return
        self.replace({**{n: self[n] for n in self._arrays}, name: values})

    def replace(self, block: Mapping[str, Array]) -> None:
        """These rows instead of the live ones; columns may come, go or change type."""
        self._arrays = {name: np.array(values) for name, values in block.items()}
        self._head = 0
        self._tail = len(next(iter(block.values()))) if block else 0

    def _reserve(self, count: int) -> None:
        capacity = len(next(iter(self._arrays.values())))
        if self._tail + count <= capacity:
            return
        live = len(self)
        needed = live + count
        if needed * 5 // 4 > capacity or needed * 2 < capacity:
            # a batch that is large beside the window tells nothing of those that will follow
            near = 2 * needed >= self.expected >= 8 * count
            self._reallocate(max(needed, self.expected + count if near else 0))
        else:
            for array in self._arrays.values():
                _move_to_front(array, self._head, live)
        self._head, self._tail = 0, live

    def _reallocate(self, rows: int) -> None:
        """Room for so many rows and a quarter more."""
        live = len(self)
        for name, array in self._arrays.items():
            fresh = np.empty((rows + rows // 4, *array.shape[1:]), array.dtype)
            fresh[:live] = array[self._head : self._tail]
            self._arrays[name] = fresh


def _move_to_front(array: Array, head: int, live: int) -> None:
    """The rows from ``head`` on, in pieces that do not overlap where they go: nothing is copied."""
    for start in range(0, live, head):
        stop = min(start + head, live)
        array[start:stop] = array[head + start : head + stop]
