"""A task that finds the tail of each key: the last rows, which windows to come reach back to.

Runs in Spark's Python workers, a whole task at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.spark.contents import CONTENT
from ids.spark.replaying import BATCH, RANK, Bounds, standing_of

__all__ = ["Tailing"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tailing:
    """Rows of a task, in window order, to the last ones of each key, with their RANK.

    keys     the key columns
    columns  of a row, RANK among them
    tasks    as in ``Replay``
    reach    how many rows of a key windows to come may look back at
    sampled  whether equal rows are counted, to be told apart
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    tasks: tuple[Bounds | None, ...]
    reach: int
    sampled: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [batch for batch in batches if batch.num_rows]
        if held:
            rows = self._tail(pa.Table.from_batches(held).combine_chunks())
            yield from rows.select(self.columns).to_batches(max_chunksize=BATCH)

    def _tail(self, rows: pa.Table) -> pa.Table:
        starts, base, _ = standing_of(rows, self.keys, self.tasks)
        sizes = np.diff(starts)
        place = np.arange(rows.num_rows) - np.repeat(starts[:-1], sizes)
        rank = pa.array(place + np.repeat(base, sizes))
        ranked = rows.set_column(rows.column_names.index(RANK), RANK, rank)
        first = np.maximum(sizes - self.reach, 0)
        if self.sampled:
            first = _whole_alike(np.array(rows.column(CONTENT)), starts, first)
        return ranked.filter(pa.array(place >= np.repeat(first, sizes)))


def _whole_alike(content: Rows, starts: Rows, first: Rows) -> Rows:
    """Where the tail of each key begins, for none of its rows to come without earlier equal ones.

    Equal rows are told apart by counting them. They stand at one instant, so it is not far back.
    """
    sizes = np.diff(starts)
    _, earliest, which = np.unique(content, return_index=True, return_inverse=True)
    place = np.arange(len(content)) - np.repeat(starts[:-1], sizes)
    since = np.maximum(earliest[which] - np.repeat(starts[:-1], sizes), 0)
    inside = place >= np.repeat(first, sizes)
    found: Rows = np.minimum.reduceat(np.where(inside, since, len(content)), starts[:-1])
    return found
