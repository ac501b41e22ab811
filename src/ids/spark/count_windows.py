"""Compute count windows over a batch DataFrame.

    rows ─▶ survey ─▶ histogram of the order ─▶ parts with halos ─▶ one task each ─▶ emits

The rows of a key are divided into parts, one task per part. A task gets the part's own rows and
its halo, the earlier rows that its first windows also contain. No task has to sort the whole input,
because a histogram determines the exact number of the key's rows before each part. Keys with few
rows share tasks. The survey (one pass that collects statistics) and the histogram run immediately.
The tasks run when the result is used, in Spark's Python workers. Each task reads its rows as Arrow
columns, and all tasks use the same scales.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.model import DIGIT_BITS, CountWindow, Kind, Scale, bits_of, lowest_bit
from ids.plan import SelectPlan
from ids.predicates import Measure
from ids.query import (
    CountEmits,
    EmitPlan,
    Emits,
    Segment,
    evaluate_segment,
    last_of_each_key,
    output_columns,
    refuse_wide_windows,
)
from ids.spark.cell_columns import atoms_of, truth_columns
from ids.spark.frame import ORIGIN, Frame, mapped, whole_partition
from ids.spark.rank import (
    BUCKET,
    HEAVY,
    OLD,
    RANK,
    TASK,
    Bounds,
    Ranked,
    divide,
    order,
    stream_order,
    survey_order,
)
from ids.spark.spark_evaluate import named_output, nameless, output_fields
from ids.spark.spark_prepare import CONTENT, COUNT, Faults, Ready, content_of, measure, ready
from ids.state import priorities

ValueRange = tuple[float, float]
Rows = npt.NDArray[np.int64]

_LOWEST = "ids_lowest"
_LAST = "ids_last"


def count_windows(
    plan: SelectPlan, frame: Frame, on_faults: Faults, target: int | None = None
) -> DataFrame:
    """Return every emit of a query with a count window.

    Bad rows are passed to ``on_faults``. ``target`` is the desired number of own rows per task; it
    affects only the speed.
    """
    rows = ready(plan, frame)
    known, buckets = survey_order(plan, rows)
    if known.faults:
        on_faults(rows, known.faults)
        rows = rows.sound()
    scales = tuple(f.scale for f in fit_scales(plan, rows.data, known.ranges))
    value = rows.columns[plan.order_by[0]].text
    counted = rows.data.selectExpr(*rows.keys, f"{value} AS {order(0)}")
    total = known.rows - known.faults
    ranked = divide(plan, counted, tuple(rows.keys), buckets, total, target=target).emits()
    placed = ready(plan, frame.placed())
    if known.faults:
        placed = placed.sound()
    emits = answered_tasks(nameless(plan), placed, given_rows(plan, placed), ranked, scales)
    if rows.keys:
        emits = emits.orderBy(*stream_order(plan, emits))
    return emit_output(plan, placed, emits)


def given_rows(plan: SelectPlan, rows: Ready) -> DataFrame:
    """Select the columns that tasks need: keys, order, origin, measures and predicate bits."""
    named = {
        order(n): f"cast({rows.columns[name].text} as {rows.columns[name].type})"
        for n, name in enumerate(plan.order_by)
    }
    named[ORIGIN] = ORIGIN
    named |= {name: f"cast({name} as double)" for name in rows.measured}
    if plan.sampled:
        named[CONTENT] = content_of(plan, rows.columns)
    return rows.packed(plan, named)


def answered_tasks(
    plan: SelectPlan,
    rows: Ready,
    given: DataFrame,
    ranked: Ranked,
    scales: tuple[Scale | None, ...],
    *,
    near: bool = False,
) -> DataFrame:
    """Return the emits of ``given`` (the ``given_rows`` of ``rows``), with one partition per task.

    The columns are the keys, the ORDER BY columns and (if there are keys) the origin of the newest
    row, followed by COUNT and the items.
    """
    carried = [*rows.keys, *map(order, range(len(plan.order_by))), *([ORIGIN] if rows.keys else [])]
    measures = tuple(None if typed is None else measure(n) for n, typed in enumerate(rows.measures))
    known = [name for name in (CONTENT, RANK, OLD) if name in given.columns]
    needed = [TASK, *carried, *rows.measured, *known, *truth_columns(len(plan.predicates))]
    ordered = tasked_rows(plan, given, list(rows.keys), ranked, near=near).select(*needed)
    replay = Replay(plan, tuple(rows.keys), tuple(carried), measures, scales, ranked.bounds)
    answers = [T.StructField(COUNT, T.LongType()), *output_fields(plan)]
    fields = [given.schema[name] for name in carried]
    return mapped(ordered, replay, T.StructType([*fields, *answers]))


def tasked_rows(
    plan: SelectPlan, given: DataFrame, keys: Sequence[str], ranked: Ranked, *, near: bool = False
) -> DataFrame:
    """Assign rows to their tasks: each task is a partition, sorted by key and window order.

    Pass ``near`` if a single task can read the rows quickly; in that case a single task needs no
    shuffle.
    """
    placed = given.withColumns({HEAVY: F.expr(ranked.heavy), BUCKET: F.expr(ranked.bucket)})
    if ranked.first == ranked.last:
        placed = placed.withColumn(TASK, F.expr(ranked.first)).filter(F.col(TASK).isNotNull())
        tasked = placed.select(*given.columns, TASK)
    else:  # a row in a halo goes to several tasks
        placed = placed.withColumns({TASK: F.expr(ranked.first), _LAST: F.expr(ranked.last)})
        every = F.explode(F.expr(f"sequence({TASK}, {_LAST})")).alias(TASK)
        tasked = placed.select(*given.columns, every)
    tasks = len(ranked.bounds)
    alone = near and tasks == 1
    tasked = tasked.coalesce(1) if alone else tasked.repartitionById(tasks, F.col(TASK))
    by = [F.col(name).asc_nulls_first() for name in keys]
    return tasked.sortWithinPartitions(*by, *stream_order(plan, tasked))


def emit_output(plan: SelectPlan, rows: Ready, emits: DataFrame) -> DataFrame:
    """Select the output columns of the emits."""
    time = rows.columns[plan.order_by[0]].kind in (Kind.TIME, None)
    emit_at = f"timestamp_micros(cast({order(0)} as bigint))" if time else order(0)
    return named_output(plan, emits, rows.keys, emit_at)


class Fitted(NamedTuple):
    """The scale of a measure.

    scale   None if the values are too far apart for one scale
    lowest  a lower bound on the exponent of the last bit of every value
    """

    scale: Scale | None
    lowest: int | None


def fit_scales(
    plan: SelectPlan,
    rows: DataFrame,
    ranges: Sequence[ValueRange | None],
    known: Sequence[int | None] | None = None,
) -> list[Fitted]:
    """Choose a scale for each measure.

    rows     valid rows with their measures
    ranges  (largest, smallest nonzero) magnitude of each measure; None if all values are 0
    known    ``Fitted.lowest`` of earlier rows
    """
    before = known or [None] * len(ranges)
    return [_fitted(plan, rows, n, ranges[n], before[n]) for n in range(len(ranges))]


def _fitted(
    plan: SelectPlan, rows: DataFrame, number: int, values: ValueRange | None, known: int | None
) -> Fitted:
    degree = plan.degrees[number]
    if plan.measures[number] is None or degree == 0:
        return Fitted(Scale(0, 0, 0), None)
    largest, smallest = values or (0.0, 0.0)
    exponent, lowest = bits_of(largest, smallest)
    if exponent - lowest > 2 * DIGIT_BITS:
        # round numbers may need fewer digits
        found = _lowest(rows, number)
        lowest = found if known is None else min(found, known)
    if not Scale.can_span(exponent, lowest, degree):
        return Fitted(None, lowest)
    return Fitted(Scale.fit(np.zeros(0), largest, degree, lowest=lowest), lowest)


def _lowest(rows: DataFrame, number: int) -> int:
    """Run a job that returns the exponent of the last bit set in any value."""
    values = rows.selectExpr(f"cast({measure(number)} as double) AS x")
    found = mapped(values, _lowest_bits, f"{_LOWEST} int").agg(F.min(_LOWEST)).first()
    assert found is not None
    return found[0] or 0


def _lowest_bits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        values = batch.column(0).drop_null().to_numpy(zero_copy_only=False)
        if values.any():
            lowest = pa.array([lowest_bit(values)], pa.int32())
            yield pa.RecordBatch.from_arrays([lowest], [_LOWEST])


class Positions(NamedTuple):
    """The positions of the rows of k keys.

    starts  int64[k + 1]  where each key's rows begin
    base    int64[k]      how many rows of the key come before these
    halo    int64[k]      how many of the first rows have no emits of their own
    """

    starts: Rows
    base: Rows
    halo: Rows


@dataclass(frozen=True, slots=True)
class Replay:
    """Computes a task's emits from its rows in window order; Spark calls it with Arrow batches.

    keys      the key columns
    carried   columns of the newest row to copy to an emit, including the keys
    measures  the column of each measure; None for COUNT(*)
    tasks     the bounds of each task; None for a task of whole keys
    """

    plan: SelectPlan
    keys: tuple[str, ...]
    carried: tuple[str, ...]
    measures: tuple[str | None, ...]
    scales: tuple[Scale | None, ...]
    tasks: tuple[Bounds | None, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return whole_partition(
            batches, lambda rows: self.emitted(rows, positions_of(rows, self.keys, self.tasks))
        )

    def emitted(self, rows: pa.Table, at: Positions) -> pa.Table:
        """Return the emits for the rows, key by key, with the ``carried`` columns."""
        assert isinstance(self.plan.window, CountWindow)
        emits = _emits(self.plan.window, at)
        if self.plan.final:
            emits = last_of_each_key(emits)
        refuse_wide_windows(emits)
        atoms, held = atoms_of(rows, len(self.plan.predicates))
        measures = [
            None if name is None else measure_of(rows.column(name)) for name in self.measures
        ]
        priority = np.zeros(0, np.int64)
        if self.plan.sampled:
            # rows with equal contents are in the same task, in stream order
            priority = priorities(np.array(rows.column(CONTENT)))
        segment = Segment(atoms, held, measures, self.scales, emits, priority)
        answers = output_columns(self.plan, emits, evaluate_segment(self.plan, segment))
        newest = rows.select(self.carried)
        if len(emits) != rows.num_rows:
            newest = newest.take(pa.array(emits.arrived.view(np.int64) - 1))
        _, *items = answers
        names = [*newest.column_names, COUNT, *items]
        table = pa.table([*newest.columns, *answers.values()], names)
        return _own(table, emits, at, final=self.plan.final)


def positions_of(rows: pa.Table, keys: Sequence[str], tasks: Sequence[Bounds | None]) -> Positions:
    """Return the positions of a task's rows, from its bounds or from the rows of whole keys.

    Rows that come from stored state have a RANK, and they come before the new rows.
    """
    starts = key_starts([rows.column(name) for name in keys], rows.num_rows)
    bounds = tasks[rows.column(TASK)[0].as_py()]
    if bounds is None and RANK in rows.column_names:
        base = rows.column(RANK).fill_null(0).to_numpy()[starts[:-1]]
        old = rows.column(OLD).to_numpy().astype(np.int64)
        return Positions(starts, base, np.add.reduceat(old, starts[:-1]))
    known = bounds or Bounds(0, 0)
    base, halo = (np.full(len(starts) - 1, n) for n in (known.base, known.halo))
    return Positions(starts, base, halo)


def key_starts(keys: Sequence[pa.ChunkedArray], rows: int) -> Rows:
    """Return where each key's rows begin, and the end; a key's rows must be adjacent."""
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
    """Convert a column to a measure that ignores the rows with NULL."""
    players = column.is_valid().to_numpy() if column.null_count else None
    values = np.ascontiguousarray(pc.fill_null(column, 0.0).to_numpy())
    return Measure(values, players, 0.0)


def _emits(window: CountWindow, at: Positions) -> EmitPlan:
    """Plan the emits, including some that belong to the halo; ``_own`` drops them later."""
    starts, base, halo = at
    slide = window.slide
    mostly_halo = 2 * halo.sum() > starts[-1]
    if not mostly_halo and (slide == 1 or not base.any()):
        return CountEmits(window, starts)
    first = slide - base % slide  # number of the key's rows until its next emit
    # SHAPLEY_DELTA needs the emit before the first own one
    skipped = np.maximum(-(-(halo - slide + 1 - first) // slide), 0)
    emitted = np.maximum((np.diff(starts) - first) // slide + 1 - skipped, 0)
    key = np.repeat(np.arange(len(emitted)), emitted)
    nth = np.arange(len(key)) - np.repeat(np.cumsum(emitted) - emitted, emitted)
    within = first[key] + (skipped[key] + nth) * slide
    return Emits(
        arrived=(starts[key] + within).astype(np.uint64),
        expired=(starts[key] + np.maximum(within - window.size, 0)).astype(np.uint64),
        instant=None,
        key=key,
        continues=base[key] + within > slide,
    )


def _own(table: pa.Table, emits: EmitPlan, at: Positions, *, final: bool) -> pa.Table:
    """Drop the emits that belong to the halo; for EMIT FINAL, keep only each key's last emit."""
    if final:
        return table.take(pa.array(np.flatnonzero(np.diff(emits.key, append=-1))))
    if not at.halo.any():
        return table
    arrived = emits.arrived.view(np.int64)
    own = np.flatnonzero(arrived > (at.starts[:-1] + at.halo)[emits.key])
    if len(own) and own[-1] - own[0] == len(own) - 1:
        return table.slice(int(own[0]), len(own))
    return table.take(pa.array(own))
