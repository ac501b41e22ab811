"""Panes on the driver: a small table of exact sums, sorted by key and pane."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

__all__ = ["Panes", "changes"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Panes:
    """Sums by key and pane.

    keys  one array a PARTITION BY column, of p values
    pane  int64[p]
    sums  int64[s, p]
    """

    keys: list[pa.Array]
    pane: Integers
    sums: Integers

    @classmethod
    def empty(cls, keys: Sequence[pa.DataType], sums: int) -> Panes:
        """No panes."""
        none = np.zeros(0, np.int64)
        return cls([pa.array([], type_) for type_ in keys], none, np.zeros((sums, 0), np.int64))

    @classmethod
    def of(cls, table: pa.Table, keys: int) -> Panes:
        """A table of key columns, the pane, then the sums."""
        columns = [column.combine_chunks() for column in table.columns]
        sums = [column.to_numpy(zero_copy_only=False) for column in columns[keys + 1 :]]
        pane = columns[keys].to_numpy(zero_copy_only=False)
        return cls(columns[:keys], pane, np.stack(sums))

    def __len__(self) -> int:
        return len(self.pane)

    def arrays(self) -> list[pa.Array]:
        """The columns, as ``of`` takes them."""
        return [*self.keys, pa.array(self.pane), *(pa.array(row) for row in self.sums)]

    def take(self, chosen: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Panes:
        """Some of the panes."""
        rows = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        keys = [column.take(pa.array(rows)) for column in self.keys]
        return Panes(keys, self.pane[rows], self.sums[:, rows])

    def merged(self, other: Panes) -> Panes:
        """Both, the sums of a pane in both added up; sorted by key (NULL first), then pane."""
        keys = [pa.concat_arrays(pair) for pair in zip(self.keys, other.keys, strict=True)]
        pane = np.concatenate([self.pane, other.pane])
        rows = zip(self.sums, other.sums, strict=True)
        return Panes.added(keys, pane, (np.concatenate(pair) for pair in rows))

    @classmethod
    def added(cls, keys: list[pa.Array], pane: Integers, sums: Iterable[Integers]) -> Panes:
        """Rows of the same key and pane added up; one of ``sums`` is held at a time."""
        ranks = [_rank(column) for column in keys]
        order = np.lexsort((pane, *reversed(ranks)))
        starts = changes([column[order] for column in (*ranks, pane)])
        first = pa.array(order[starts])
        # reduceat knows no empty input
        rows = [np.add.reduceat(r[order], starts) if len(starts) else r for r in sums]
        return cls([column.take(first) for column in keys], pane[order[starts]], np.stack(rows))

    def key_numbers(self) -> Integers:
        """Which key each pane is of, counted from 0 in order."""
        fresh = np.zeros(len(self), np.int64)
        fresh[changes([_rank(column) for column in self.keys], len(self))] = 1
        return np.cumsum(fresh) - 1


def changes(columns: Sequence[Integers], rows: int | None = None) -> Integers:
    """Where a row differs from the one before it; the first one always does."""
    count = len(columns[0]) if rows is None else rows
    fresh = np.zeros(count, np.bool_)
    fresh[:1] = True
    for column in columns:
        fresh[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(fresh)


def _rank(column: pa.Array) -> Integers:
    """Numbers that stand in the order of the values, NULL first."""
    coded = pc.dictionary_encode(column, null_encoding="encode")
    values = pa.table({"value": _sortable(coded.dictionary)})
    order = pc.sort_indices(values, sort_keys=[("value", "ascending", "at_start")])
    rank = np.empty(len(order), np.int64)
    rank[order.to_numpy()] = np.arange(len(order))
    found: Integers = rank[coded.indices.to_numpy()]
    return found


def _sortable(values: pa.Array) -> pa.Array:
    """Doubles by their bits, which have NaN last as Spark has it; Arrow puts it beside NULL."""
    if not types.is_floating(values.type):
        return values
    bits = values.fill_null(0.0).to_numpy(zero_copy_only=False).view(np.int64)
    bits = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return pa.array(bits, mask=values.is_null().to_numpy(zero_copy_only=False))
