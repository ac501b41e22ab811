"""Candidates: the rows that some drawing may yet need, columnar, in window order.

Rows are added at no other cost than their copy; once there are several times as many as the last
sweep left, the caller sweeps again. So a row is looked at a few times in its life.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ids.model.table import Kind, Table
from ids.state.retained import TAG, TIME, Retained
from ids.state.sliding import Array, Sliding

__all__ = ["PRIORITY", "SEQUENCE", "Candidates", "plays_of", "value_of"]

PRIORITY = "priority"
SEQUENCE = "sequence"
_FEW = 4096
_SLACK = 3

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]


def value_of(measure: int) -> str:
    """The column of a measure's y."""
    return f"y {measure}"


def plays_of(measure: int) -> str:
    """The column of a measure's players."""
    return f"plays {measure}"


class Candidates(Retained):
    """Retained rows with their priority, arrival number, stratum (the tag), y and players."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        super().__init__(kinds)
        self.rows: _Roomy = _Roomy(2 * _FEW)
        self.limit = _FEW

    @property
    def crowded(self) -> bool:
        """Whether a sweep pays."""
        return len(self) > self.limit

    @property
    def sequence(self) -> Places:
        """The rows' arrival numbers."""
        return self.rows[SEQUENCE].view(np.int64)

    @property
    def stratum(self) -> npt.NDArray[np.int32]:
        """The rows' strata."""
        if not len(self):
            return np.zeros(0, np.int32)
        return self.rows[TAG].view(np.int32)

    def add(self, table: Table, times: Places | None, columns: Mapping[str, Array]) -> None:
        """Rows in window order; those older than rows inside are merged among them."""
        block = {**self.block(table, columns[TAG], (), (), times), **columns}
        if times is not None and len(self) and times[0] < self.rows[TIME].view(np.int64)[-1]:
            self.rows.merge(block, TIME)
        else:
            self.rows.append(block)

    def sweep(self, keep: Mask) -> None:
        """Keep only the marked rows."""
        places = np.flatnonzero(keep)
        self.rows.pick(places)
        self.limit = max(_FEW, _SLACK * len(places))
        self.rows.room = self.limit + max(_FEW, self.limit // 4)
        self.forget()

    def cut(self, time: int, sequence: int) -> None:
        """Let go of the rows before (time, sequence) in window order."""
        if not len(self):
            return
        first, last = 0, len(self)
        if TIME in self.rows:
            times = self.rows[TIME]
            first, last = (int(np.searchsorted(times, time, side)) for side in ("left", "right"))
        first += int(np.searchsorted(self.sequence[first:last], sequence))
        self.rows.drop_front(first)

    def empty(self) -> None:
        """Let go of every row."""
        self.rows.drop_front(len(self))
        self.forget()

    def measure(self, measure: int) -> tuple[npt.NDArray[np.float64], Mask]:
        """The rows' y and whether they play."""
        values = self.rows[value_of(measure)].view(np.float64)
        return values, self.rows[plays_of(measure)].view(np.bool_)


class _Roomy(Sliding):
    """Sliding columns with room for all rows until the next sweep, which moves them in place."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def pick(self, places: Places) -> None:
        """Keep only the rows at these places, ascending."""
        for name, array in self._arrays.items():
            array[: len(places)] = self[name][places]
        self._head, self._tail = 0, len(places)

    def _reserve(self, count: int) -> None:
        capacity = len(next(iter(self._arrays.values())))
        if self._tail + count <= capacity:
            return
        live = len(self)
        fits = live + count <= capacity <= 4 * max(self.room, live + count)
        capacity = capacity if fits else max(self.room, live + count)
        for name, array in self._arrays.items():
            room = array if fits else np.empty((capacity, *array.shape[1:]), array.dtype)
            room[:live] = self[name].copy() if fits else self[name]
            self._arrays[name] = room
        self._head, self._tail = 0, live
