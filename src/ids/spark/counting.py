"""Count windows over a batch DataFrame: rows to tasks by rank, tasks to emits by the kernels.

    rows ─▶ survey ─▶ histogram of the order ─▶ stretches with halos ─▶ one task each ─▶ emits

No task sorts the whole input: the histogram says exactly how many rows of a key precede a stretch,
and each task gets, besides its own rows, those its first windows reach back to. Keys with few rows
share tasks. The first passes run at once, the tasks when the result is asked for.
"""

from __future__ import annotations

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
from ids.spark.ranking import BUCKET, HEAVY, Ranked, look, order, rank
from ids.spark.replaying import TASK, Replay
from ids.spark.rows import Ready, measure, ready
from ids.spark.sources import ORIGIN
from ids.spark.words import truth_words, words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "answer_fields",
    "answered_tasks",
    "count_windows",
    "given_rows",
    "measure_columns",
    "orders_of",
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
    ranked = rank(plan, rows, known.rows - known.faults, ruler, target)
    placed = ready(plan, frame.placed())
    if known.faults:
        placed = placed.sound()
    emits = answered_tasks(nameless(plan), placed, ranked, scales)
    return _in_stream_order(plan, placed, emits)


def answered_tasks(
    plan: SelectPlan, rows: Ready, ranked: Ranked, scales: tuple[Scale | None, ...]
) -> DataFrame:
    """The emits of sound rows that carry their origin: one partition a task, key by key.

    Columns: the keys, the ORDER BY columns and, where there are keys, the origin of the newest
    row; COUNT; the items.
    """
    orders = orders_of(plan, rows)
    carried = [*rows.keys, *orders, *([ORIGIN] if rows.keys else [])]
    measures = measure_columns(rows)
    given = given_rows(plan, rows)
    tasked = _tasked(given, ranked).repartitionById(len(ranked.bounds), F.col(TASK))
    by = [F.col(name).asc_nulls_first() for name in (*rows.keys, *orders)]
    content = [CONTENT] if plan.sampled else []
    needed = [TASK, *carried, *(name for name in measures if name is not None), *content]
    needed += words(len(plan.predicates))
    ordered = tasked.sortWithinPartitions(*by, ORIGIN).select(*needed)
    replay = Replay(plan, tuple(rows.keys), tuple(carried), measures, scales, ranked.bounds)
    fields = [given.schema[name] for name in carried]
    return mapped(ordered, replay, T.StructType([*fields, *answer_fields(plan)]))


def answer_fields(plan: SelectPlan) -> list[T.StructField]:
    """COUNT and the items."""
    return [T.StructField(COUNT, T.LongType()), *output_fields(plan)]


def _in_stream_order(plan: SelectPlan, rows: Ready, emits: DataFrame) -> DataFrame:
    """The output as users see it, in the order of the newest rows in the whole stream."""
    if rows.keys:
        names = [order(n) for n in range(len(plan.order_by))]
        emits = emits.orderBy(*(F.col(name).asc_nulls_first() for name in names), ORIGIN)
    time = rows.columns[plan.order_by[0]].kind in (Kind.TIME, None)
    emit_at = f"timestamp_micros(cast({order(0)} as bigint))" if time else order(0)
    return named_output(plan, emits, rows.keys, emit_at)


def measure_columns(rows: Ready) -> tuple[str | None, ...]:
    """The column of each measure; None for COUNT(*)."""
    return tuple(None if typed is None else measure(n) for n, typed in enumerate(rows.measures))


def orders_of(plan: SelectPlan, rows: Ready) -> dict[str, Typed]:
    """The ORDER BY columns under their fixed names."""
    return {order(n): rows.columns[name] for n, name in enumerate(plan.order_by)}


def given_rows(plan: SelectPlan, rows: Ready) -> DataFrame:
    """What tasks are made of: keys, order, origin, measures, and the truths of predicates."""
    orders = orders_of(plan, rows)
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
    kept = [*rows.keys, *orders, ORIGIN, *(name for name in measure_columns(rows) if name)]
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
