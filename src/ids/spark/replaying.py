"""A task of a count window: its rows as Arrow columns through the in-process kernels.

Runs in Spark's Python workers, a whole task at a time. Nothing here looks at a single row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ids.engine.contents import priorities
from ids.engine.rows import Measure
from ids.engine.stretch import (
    Stretch,
    answer,
    last_of_each_key,
    output_columns,
    refuse_wide_windows,
)
from ids.model.scale import Scale
from ids.model.window import CountWindow
from ids.plan import SelectPlan
from ids.spark.contents import CONTENT
from ids.spark.panes import COUNT
from ids.spark.words import atoms_of
from ids.window import CountEmits, EmitPlan, Emits

__all__ = [
    "BATCH",
    "OLD",
    "RANK",
    "TASK",
    "Bounds",
    "Replay",
    "Standing",
    "key_starts",
    "measure_of",
    "standing_of",
]

TASK = "ids_task"
RANK = "ids_rank"  # of a row that is remembered: how many rows of its key came before it
OLD = "ids_old"  # whether a row has had its emit
BATCH = 2**16  # rows of an Arrow batch

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a task's rows stand in their key: rows before the first, rows only looked back at."""

    base: int
    halo: int


class Standing(NamedTuple):
    """Where the rows of several keys stand, key by key.

    starts  int64[k + 1]  where each key's rows begin
    base    int64[k]      rows of the key before these
    halo    int64[k]      rows at the beginning that are only looked back at
    """

    starts: Rows
    base: Rows
    halo: Rows


@dataclass(frozen=True, slots=True)
class Replay:
    """Rows of a task, in window order, to its emits; called by Spark with Arrow batches.

    keys      the key columns
    carried   columns of the newest row that go along with an emit, keys among them
    measures  the column of each measure; None for COUNT(*)
    tasks     the bounds of each task; None for one of whole keys
    """

    plan: SelectPlan
    keys: tuple[str, ...]
    carried: tuple[str, ...]
    measures: tuple[str | None, ...]
    scales: tuple[Scale | None, ...]
    tasks: tuple[Bounds | None, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [batch for batch in batches if batch.num_rows]
        if held:
            rows = pa.Table.from_batches(held).combine_chunks()
            emits = self.emitted(rows, standing_of(rows, self.keys, self.tasks))
            yield from emits.to_batches(max_chunksize=BATCH)

    def emitted(self, rows: pa.Table, standing: Standing) -> pa.Table:
        """The emits of some rows, key by key, each with what goes along of its newest row."""
        assert isinstance(self.plan.window, CountWindow)
        emits = _emits(self.plan.window, standing)
        if self.plan.final:
            emits = last_of_each_key(emits)
        refuse_wide_windows(emits)
        atoms, held = atoms_of(rows, len(self.plan.predicates))
        measures = [
            None if name is None else measure_of(rows.column(name)) for name in self.measures
        ]
        priority = None
        if self.plan.sampled:
            # rows of equal contents stand in one task, in the order of the stream
            priority = priorities(np.array(rows.column(CONTENT)))
        stretch = Stretch(atoms, held, measures, self.scales, emits, priority)
        answers = output_columns(self.plan, emits, answer(self.plan, stretch))
        every_row = len(emits) == rows.num_rows
        carried = rows.select(self.carried)
        newest = carried if every_row else carried.take(pa.array(emits.arrived.view(np.int64) - 1))
        _, *items = answers
        names = [*newest.column_names, COUNT, *items]
        table = pa.table([*newest.columns, *answers.values()], names)
        return _own(table, emits, standing, final=self.plan.final)


def standing_of(rows: pa.Table, keys: Sequence[str], tasks: Sequence[Bounds | None]) -> Standing:
    """Where the rows of a task stand: by its bounds, or as those of whole keys tell.

    A remembered row has a RANK, and stands before those that have none.
    """
    starts = key_starts([rows.column(name) for name in keys], rows.num_rows)
    bounds = tasks[rows.column(TASK)[0].as_py()]
    if bounds is None and RANK in rows.column_names:
        base = rows.column(RANK).fill_null(0).to_numpy()[starts[:-1]]
        old = rows.column(OLD).to_numpy().astype(np.int64)
        return Standing(starts, base, np.add.reduceat(old, starts[:-1]))
    known = bounds or Bounds(0, 0)
    base, halo = (np.full(len(starts) - 1, n) for n in (known.base, known.halo))
    return Standing(starts, base, halo)


def key_starts(keys: Sequence[pa.ChunkedArray], rows: int) -> Rows:
    """Where each key's rows begin, and the end of all; rows of a key stand together."""
    fresh = np.zeros(max(rows - 1, 0), np.bool_)
    for column in keys:
        valid = column.is_valid().to_numpy()
        if pa.types.is_string(column.type):
            values = column.combine_chunks().dictionary_encode().indices.fill_null(-1).to_numpy()
        else:
            zero = pa.scalar(0).cast(column.type)
            values = column.fill_null(zero).to_numpy()
        nan = values != values
        differs = (values[1:] != values[:-1]) & ~(nan[1:] & nan[:-1])
        fresh |= differs | (valid[1:] != valid[:-1])
    return np.concatenate([[0], np.flatnonzero(fresh) + 1, [rows]]).astype(np.int64)


def measure_of(column: pa.ChunkedArray) -> Measure:
    """The values of a measure; NULL is no player."""
    players = column.is_valid().to_numpy() if column.null_count else None
    values = np.ascontiguousarray(pc.fill_null(column, 0.0).to_numpy())
    return Measure(values, players, 0.0)


def _emits(window: CountWindow, standing: Standing) -> EmitPlan:
    """When the window speaks; emits of a halo's rows are dropped once they are answered."""
    starts, base, halo = standing
    slide = window.slide
    mostly_halo = 2 * halo.sum() > starts[-1]
    if not mostly_halo and (slide == 1 or not base.any()):
        return CountEmits(window, starts)
    first = slide - base % slide  # rows of the key until it speaks
    # the one emit before its own is what a delta looks back at
    skipped = np.maximum(-(-(halo - slide + 1 - first) // slide), 0)
    spoken = np.maximum((np.diff(starts) - first) // slide + 1 - skipped, 0)
    key = np.repeat(np.arange(len(spoken)), spoken)
    nth = np.arange(len(key)) - np.repeat(np.cumsum(spoken) - spoken, spoken)
    within = first[key] + (skipped[key] + nth) * slide
    return Emits(
        arrived=(starts[key] + within).astype(np.uint64),
        expired=(starts[key] + np.maximum(within - window.size, 0)).astype(np.uint64),
        instant=None,
        key=key,
        continues=base[key] + within > slide,
    )


def _own(table: pa.Table, emits: EmitPlan, standing: Standing, *, final: bool) -> pa.Table:
    """Without the emits of halos; of EMIT FINAL, each key's last."""
    if final:
        return table.take(pa.array(np.flatnonzero(np.diff(emits.key, append=-1))))
    if not standing.halo.any():
        return table
    arrived = emits.arrived.view(np.int64)
    own = np.flatnonzero(arrived > (standing.starts[:-1] + standing.halo)[emits.key])
    if len(own) and own[-1] - own[0] == len(own) - 1:
        return table.slice(int(own[0]), len(own))
    return table.take(pa.array(own))
