"""A task of a count window on a stream: new rows after the tail of those before, to emits and tail.

    tail of the key ─┐
                     ├─▶ emits of the new rows
    settled rows ────┴─▶ the new tail: as many of the last rows as windows to come reach back to

Runs in Spark's Python workers, a whole task at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.spark.contents import CONTENT
from ids.spark.replaying import BATCH, Replay, Standing, key_starts

__all__ = ["EMIT", "HELD", "KIND", "RANK", "TAIL", "Tailing"]

KIND = "ids_kind"
EMIT, TAIL, HELD = 0, 1, 2
RANK = "ids_rank"

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tailing:
    """Rows of a task, in window order, to emits and the tail, told apart by KIND.

    A row of the tail has its RANK, how many rows of its key came before it; a new row has none.

    replay  answers the new rows
    reach   how many rows of a key windows to come may look back at
    schema  KIND, the columns of a row, RANK, then those of an answer
    """

    replay: Replay
    reach: int
    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [batch for batch in batches if batch.num_rows]
        if held:
            rows = pa.Table.from_batches(held).combine_chunks()
            keys = [rows.column(name) for name in self.replay.keys]
            standing = _standing(rows, key_starts(keys, rows.num_rows))
            for kind, part in (
                (EMIT, self.replay.emitted(rows, standing)),
                (TAIL, self._tail(rows, standing)),
            ):
                yield from self._told(part, kind).to_batches(max_chunksize=BATCH)

    def _tail(self, rows: pa.Table, standing: Standing) -> pa.Table:
        starts, base, _ = standing
        sizes = np.diff(starts)
        place = np.arange(rows.num_rows) - np.repeat(starts[:-1], sizes)
        rank = pa.array(place + np.repeat(base, sizes))
        ranked = rows.set_column(rows.column_names.index(RANK), RANK, rank)
        first = np.maximum(sizes - self.reach, 0)
        if self.replay.plan.sampled:
            first = _whole_alike(np.array(rows.column(CONTENT)), starts, first)
        return ranked.filter(pa.array(place >= np.repeat(first, sizes)))

    def _told(self, part: pa.Table, kind: int) -> pa.Table:
        """Under the common schema: what a kind does not have is NULL."""
        columns = []
        for field in self.schema:
            if field.name == KIND:
                columns.append(pa.array(np.full(part.num_rows, kind, np.int32)))
            elif field.name in part.column_names:
                columns.append(part.column(field.name).cast(field.type))
            else:
                columns.append(pa.nulls(part.num_rows, field.type))
        return pa.table(columns, schema=self.schema)


def _standing(rows: pa.Table, starts: np.ndarray) -> Standing:
    """The tail of a key stands before its new rows, and knows its rank."""
    rank = rows.column(RANK)
    known = rank.is_valid().to_numpy().astype(np.int64)
    ranks = rank.fill_null(0).to_numpy()
    return Standing(starts, ranks[starts[:-1]], np.add.reduceat(known, starts[:-1]))


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
