"""Count windows over a batch DataFrame: rows to tasks by rank, tasks to emits by the kernels.

    rows ─▶ survey ─▶ histogram of the order ─▶ stretches with halos ─▶ one task each ─▶ emits

No task sorts the whole input: the histogram says exactly how many rows of a key precede a stretch,
and each task gets, besides its own rows, those its first windows reach back to. Keys with few rows
share tasks. The first passes run at once, the tasks when the result is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.model.scale import Scale
from ids.model.table import Kind
from ids.plan import SelectPlan
from ids.spark.batch import Faults, named_output
from ids.spark.cells import cells_of
from ids.spark.contents import CONTENT, content_of
from ids.spark.evaluating import nameless, output_fields
from ids.spark.fitting import fit_scales
from ids.spark.frames import Frame, Typed
from ids.spark.mapping import mapped
from ids.spark.panes import COUNT
from ids.spark.ranking import BUCKET, HEAVY, Ranked, divide, look, order
from ids.spark.replaying import OLD, RANK, TASK, Replay
from ids.spark.rows import Ready, measure, ready
from ids.spark.sources import ORIGIN
from ids.spark.words import truth_words, words

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "answered_tasks",
    "count_windows",
    "emit_output",
    "given_rows",
    "stream_order",
    "tasked_rows",
]

_LAST = "ids_last"


def count_windows(
    plan: SelectPlan, frame: Frame, on_faults: Faults, target: int | None = None
) -> DataFrame:
    """Every emit of a query with a count window.

    ``target`` is how many rows a task should have of its own; only speed depends on it.
    """
    rows = ready(plan, frame)
    known, ruler = look(plan, rows)
    if known.faults:
        on_faults(rows, known.faults)
        rows = rows.sound()
    scales = tuple(f.scale for f in fit_scales(plan, rows.data, known.reaches))
    value = rows.columns[plan.order_by[0]].text
    counted = rows.data.selectExpr(*rows.keys, f"{value} AS {order(0)}")
    total = known.rows - known.faults
    ranked = divide(plan, counted, tuple(rows.keys), ruler, total, target=target).emits()
    placed = ready(plan, frame.placed())
    if known.faults:
        placed = placed.sound()
    emits = answered_tasks(nameless(plan), placed, given_rows(plan, placed), ranked, scales)
    if rows.keys:
        emits = emits.orderBy(*stream_order(plan, emits))
    return emit_output(plan, placed, emits)


def answered_tasks(
    plan: SelectPlan,
    rows: Ready,
    given: DataFrame,
    ranked: Ranked,
    scales: tuple[Scale | None, ...],
    *,
    near: bool = False,
) -> DataFrame:
    """The emits of ``given_rows`` of ``rows``: one partition a task, key by key.

    Columns: the keys, the ORDER BY columns and, where there are keys, the origin of the newest
    row; COUNT; the items.
    """
    carried = [*rows.keys, *_orders_of(plan, rows), *([ORIGIN] if rows.keys else [])]
    measures = _measure_columns(rows)
    known = [name for name in (CONTENT, RANK, OLD) if name in given.columns]
    needed = [TASK, *carried, *(name for name in measures if name is not None), *known]
    needed += words(len(plan.predicates))
    ordered = tasked_rows(plan, given, list(rows.keys), ranked, near=near).select(*needed)
    replay = Replay(plan, tuple(rows.keys), tuple(carried), measures, scales, ranked.bounds)
    answers = [T.StructField(COUNT, T.LongType()), *output_fields(plan)]
    fields = [given.schema[name] for name in carried]
    return mapped(ordered, replay, T.StructType([*fields, *answers]))


def tasked_rows(
    plan: SelectPlan, given: DataFrame, keys: Sequence[str], ranked: Ranked, *, near: bool = False
) -> DataFrame:
    """Rows with their TASK, one partition a task, key by key in window order.

    Rows that are ``near``, quickly read by a single task, need no shuffle if there is but one.
    """
    tasked, tasks = _tasked(given, ranked), len(ranked.bounds)
    alone = near and tasks == 1
    tasked = tasked.coalesce(1) if alone else tasked.repartitionById(tasks, F.col(TASK))
    by = [F.col(name).asc_nulls_first() for name in keys]
    return tasked.sortWithinPartitions(*by, *stream_order(plan, tasked))


def stream_order(plan: SelectPlan, data: DataFrame) -> list[Column]:
    """What puts rows, or the emits of these, into the order of the whole stream."""
    orders = [data[order(n)].asc_nulls_first() for n in range(len(plan.order_by))]
    return [*orders, data[ORIGIN].asc()]


def emit_output(plan: SelectPlan, rows: Ready, emits: DataFrame) -> DataFrame:
    """The emits as users see them."""
    time = rows.columns[plan.order_by[0]].kind in (Kind.TIME, None)
    emit_at = f"timestamp_micros(cast({order(0)} as bigint))" if time else order(0)
    return named_output(plan, emits, rows.keys, emit_at)


def _measure_columns(rows: Ready) -> tuple[str | None, ...]:
    """The column of each measure; None for COUNT(*)."""
    return tuple(None if typed is None else measure(n) for n, typed in enumerate(rows.measures))


def _orders_of(plan: SelectPlan, rows: Ready) -> dict[str, Typed]:
    """The ORDER BY columns under their fixed names."""
    return {order(n): rows.columns[name] for n, name in enumerate(plan.order_by)}


def given_rows(plan: SelectPlan, rows: Ready) -> DataFrame:
    """What tasks are made of: keys, order, origin, measures, and the truths of predicates."""
    orders = _orders_of(plan, rows)
    cells = cells_of(plan.predicates, rows.columns)
    data = rows.data
    if cells.subjects:
        data = data.withColumns({name: F.expr(text) for name, text in cells.subjects})
    measures = [
        F.expr(f"cast({measure(n)} as double)").alias(measure(n))
        for n, typed in enumerate(rows.measures)
        if typed is not None
    ]
    content = [F.expr(content_of(plan, rows.columns)).alias(CONTENT)] if plan.sampled else []
    data = data.select(
        *rows.keys,
        *(F.expr(typed.text).cast(typed.type).alias(name) for name, typed in orders.items()),
        ORIGIN,
        *measures,
        *content,
        *(F.expr(text).alias(name) for name, text in cells.groups),
    )
    kept = [*rows.keys, *orders, ORIGIN, *(name for name in _measure_columns(rows) if name)]
    kept += [CONTENT] if plan.sampled else []
    return data.selectExpr(*kept, *truth_words(cells.predicates))


def _tasked(data: DataFrame, ranked: Ranked) -> DataFrame:
    """Rows under the number of their task; a row of a halo under several."""
    placed = data.withColumns({HEAVY: F.expr(ranked.heavy), BUCKET: F.expr(ranked.bucket)})
    if ranked.first == ranked.last:
        placed = placed.withColumn(TASK, F.expr(ranked.first)).filter(F.col(TASK).isNotNull())
        return placed.select(*data.columns, TASK)
    placed = placed.withColumns({TASK: F.expr(ranked.first), _LAST: F.expr(ranked.last)})
    every = F.explode(F.expr(f"sequence({TASK}, {_LAST})")).alias(TASK)
    return placed.select(*data.columns, every)
