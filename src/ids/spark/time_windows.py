"""Compute time windows on Spark, over a batch or streaming DataFrame.

    rows ─▶ (key, pane, cell) sums ─▶ (key, pane) sums of the window and of every predicate ─▶ emits

A pane contains the sums over the rows of one slide. Rows in the same cell satisfy the same
predicates (``ids.spark.cell_columns``). Only the first step reads rows. All sums are integers
(``ids.exact``), so they do not depend on the order of rows, partitions or micro-batches.

Over a batch DataFrame, each slide adds the sums of the new pane and subtracts those of the expired
one, so the cost per pane does not depend on the window's length.

Over a streaming DataFrame, Spark keeps the state of two chained aggregations:

    rows ─▶ window(event time, slide), key, cell ─▶ window(panes, duration, slide), key ─▶ answers

The result is a streaming DataFrame for any sink in append mode. An emit is written when the
watermark has passed its instant.

Event times are shifted for Spark. Spark's windows are [start, end) and ours are (t - d, t], so
event times are moved back by a microsecond. They are also moved forward:

- by 2000 years if IDS sets the watermark, because Spark's watermark starts in 1970 and earlier rows
  would be dropped;
- by a millisecond if the user has set the watermark, because it must pass an instant, not just
  reach it, and cannot itself be moved.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from ids.errors import ScriptError
from ids.exact import Parts, Program, split, split_integer
from ids.model import ItemKind, render
from ids.plan import SelectPlan
from ids.query import with_moments
from ids.spark.cell_columns import Cells, cells_of, groupable_columns
from ids.spark.expression_sql import spell
from ids.spark.frame import DELAY, Frame, applied, lateness_of
from ids.spark.preflight import refuse_beyond_panes, refuse_final
from ids.spark.spark_approximate import estimated_windows
from ids.spark.spark_evaluate import Item, Layout, evaluate, named_output, nameless, sql_answers
from ids.spark.spark_prepare import (
    COUNT,
    FAULT,
    INSTANT,
    PANE,
    TIME,
    Faults,
    Ready,
    Survey,
    measure,
    pane_of,
    ready,
    slide_and_width,
    survey,
)

VALUE_RANGE = (1e-9, 1e12)  # the default magnitudes of a stream's values

_FEW_SUMS = 4  # up to this many predicates (over all measures), sums are computed row by row
_SAMPLED = 10_000
_FEW_VALUES = 1_000
# how far the event times of a stream are moved forward, in µs
_YEARS = 730_485 * 86_400_000_000  # 2000 years: the calendar repeats every 400
_MILLISECOND = 1_000

_EVENT = "ids_event"
_PANE = "ids_pane"
_WINDOW = "ids_window"
_BEFORE = "ids_before_"


def time_windows(plan: SelectPlan, frame: Frame, on_faults: Faults) -> DataFrame:
    """Return every emit of a query with a time window.

    One job runs immediately. It determines the magnitudes of the values and finds bad rows, which
    are passed to ``on_faults``. Everything else runs lazily, when the result is used.
    """
    slide, width = slide_and_width(plan)
    refuse_beyond_panes(plan)
    rows = ready(plan, frame)
    known = survey(plan, rows)
    if known.faults:
        on_faults(rows, known.faults)
        rows = rows.sound()
    rows = replace(rows, present=known.present)
    layout = Layout.of(plan, fit_parts(plan, rows, known))
    raw = _few_valued(frame, groupable_columns(plan.predicates, frame.columns))
    table = panes(plan, rows, cells_of(plan.predicates, frame.columns, raw), layout)
    final = -(-(known.last or 0) // slide)
    keys = list(rows.keys)
    emits = windows(width, table, keys, layout.sums, final)
    inner = nameless(plan)
    answers = evaluate(with_moments(inner), layout, emits, [*keys, INSTANT, COUNT])
    if plan.sampled:
        answers = estimated_windows(inner, rows, answers)
    answers = _deltas(inner, answers, keys)
    if plan.final:  # the last emit of each key
        last = F.max(INSTANT).over(Window.partitionBy(*keys))
        answers = answers.withColumn("ids_last", last).filter(F.col(INSTANT) == F.col("ids_last"))
    answers = answers.orderBy(INSTANT, *(F.col(name).asc_nulls_first() for name in keys))
    instant = f"timestamp_micros({INSTANT} * {slide}L)"
    return named_output(plan, answers, rows.keys, instant)


def fit_parts(plan: SelectPlan, rows: Ready, known: Survey) -> list[Parts]:
    """Return parts in which every bit of every value is represented."""
    found: list[Parts] = []
    for degree, typed, value_range in zip(plan.degrees, rows.measures, known.ranges, strict=True):
        if typed is None or value_range is None:
            found.append(Parts(0, 0, 0))
            continue
        largest, smallest = value_range
        if typed.whole:
            found.append(Parts.for_integers(int(largest).bit_length() + 1, degree))
        else:
            found.append(Parts.fit(largest, smallest, degree).trimmed(smallest))
    return found


def _few_valued(frame: Frame, names: list[str]) -> list[str]:
    """Return the columns that have few distinct values in a sample of rows.

    The choice of columns affects only the speed, not the result.
    """
    if not names:
        return []
    texts = [frame.columns[name].text for name in names]
    some = frame.data.selectExpr(*texts).limit(_SAMPLED)
    row = some.agg(*(F.countDistinct(F.expr(text)) for text in texts)).first()
    assert row is not None
    return [name for name, values in zip(names, row, strict=True) if values <= _FEW_VALUES]


def panes(plan: SelectPlan, rows: Ready, cells: Cells, layout: Layout) -> DataFrame:
    """Sum the valid rows by key and pane."""
    if sum(map(len, layout.predicates)) > _FEW_SUMS:
        table = _atoms(plan, rows, cells, layout)
        return table.groupBy(*rows.keys, PANE).agg(*_item_sums(cells, layout))
    # a few sums are computed in one step, with a single shuffle of fewer groups
    data, window = _summands(plan, rows, cells, layout, None)
    sums = {COUNT: window[COUNT]}
    for name, whole, predicate in layout.columns():
        only = "" if predicate is None else f" FILTER (WHERE {cells.predicates[predicate]})"
        sums[name] = window[whole] + only
    return data.groupBy(*rows.keys, PANE).agg(*_aggregates(sums))


def _atoms(
    plan: SelectPlan, rows: Ready, cells: Cells, layout: Layout, pane: str | None = None
) -> DataFrame:
    """Sum the valid rows by key, pane and cell.

    ``pane`` is the pane column; if it is None, the pane number is computed.
    """
    data, sums = _summands(plan, rows, cells, layout, pane)
    groups = [name for name, _ in cells.groups]
    return data.groupBy(*rows.keys, pane or PANE, *groups).agg(*_aggregates(sums))


def _summands(
    plan: SelectPlan, rows: Ready, cells: Cells, layout: Layout, pane: str | None
) -> tuple[DataFrame, dict[str, str]]:
    """Return rows with key, pane, cell and value parts, and the SQL of the sums over these."""
    program = Program("ids_v")
    sums = {COUNT: "count(1)"}
    for number, parts in enumerate(layout.parts):
        sums |= _window_sums(program, rows, number, parts)
    data = rows.data
    if pane is None:
        slide, _ = slide_and_width(plan)
        data, pane = data.withColumn(PANE, F.expr(pane_of(slide))), PANE
    measures = [
        _present(number, rows) for number, typed in enumerate(rows.measures) if typed is not None
    ]
    named = [f"{text} AS {name}" for name, text in cells.groups]
    slim = cells.prepared(data).selectExpr(*rows.keys, pane, *measures, *named)
    return applied(slim, program), sums


def _present(number: int, rows: Ready) -> str:
    """Return the SQL of a measure column, so that Spark skips NULL checks if it has no NULLs."""
    name, typed = measure(number), rows.measures[number]
    if number not in rows.present or typed is None:
        return name
    return f"coalesce({name}, {'0L' if typed.whole else '0.0D'}) AS {name}"


def _window_sums(program: Program, rows: Ready, number: int, parts: Parts) -> dict[str, str]:
    """Return the SQL of one measure's sums over a group, ignoring rows where it is NULL."""
    typed = rows.measures[number]
    whole = Item(number, None)
    if typed is None:
        return {whole.count: "count(1)"}
    value = program.column(measure(number))
    cut = split_integer if typed.whole else split
    first, second = cut(value, parts) if parts.levels else ([], [])
    # without NULLs this is the same aggregate as COUNT, which Spark computes once
    sums = {whole.count: f"count({1 if number in rows.present else measure(number)})"}
    sums |= {whole.first(level): f"sum({part.text})" for level, part in enumerate(first)}
    sums |= {whole.second(level): f"sum({part.text})" for level, part in enumerate(second)}
    return sums


def _item_sums(
    cells: Cells, layout: Layout, condition: str = "true", prefix: str = ""
) -> list[Column]:
    """Return the sums of the window and of every predicate, over cells that meet ``condition``."""

    def added(column: str, test: str) -> str:
        return f"sum({column})" if test == "true" else f"sum(if({test}, {column}, 0L))"

    sums = {COUNT: added(COUNT, condition)}
    for name, whole, predicate in layout.columns():
        test = condition
        if predicate is not None:
            test = f"({condition} AND {cells.predicates[predicate]})"
        sums[name] = added(whole, test)
    return [F.expr(text).alias(prefix + name) for name, text in sums.items()]


def _aggregates(sums: dict[str, str]) -> list[Column]:
    return [F.expr(f"coalesce({text}, 0L)").alias(name) for name, text in sums.items()]


def windows(
    width: int, table: DataFrame, keys: list[str], sums: list[str], final: int
) -> DataFrame:
    """Sum panes to windows: one row per instant up to ``final`` whose window is not empty.

    ``table`` contains the sums of each pane, and a window is ``width`` panes long. The result has
    INSTANT in place of PANE.
    """
    if width == 1:
        return table.withColumnRenamed(PANE, INSTANT)
    leaving = table.selectExpr(
        *keys, f"{PANE} + {width}L AS {PANE}", *(f"(- {s}) AS {s}" for s in sums)
    )
    deltas = (
        table.select(*keys, PANE, *sums)
        .unionAll(leaving)
        .groupBy(*keys, PANE)
        .agg(*(F.sum(s).alias(s) for s in sums))
    )
    partition = f"PARTITION BY {', '.join(keys)} " if keys else ""
    ordered = f"{partition}ORDER BY {PANE}"
    so_far = f"{ordered} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    totals = deltas.selectExpr(
        *keys,
        PANE,
        *(f"sum({s}) OVER ({so_far}) AS {s}" for s in sums),
        f"lead({PANE}) OVER ({ordered}) AS ids_next",
    ).filter(F.col(COUNT) > 0)
    # the window does not change at instants where no pane is added or expires
    until = F.least(F.col("ids_next") - 1, F.lit(final))
    emitted = totals.filter(F.col(PANE) <= until)
    return emitted.select(*keys, F.explode(F.sequence(F.col(PANE), until)).alias(INSTANT), *sums)


def _deltas(plan: SelectPlan, answers: DataFrame, keys: list[str]) -> DataFrame:
    """Subtract the attribution one slide earlier (0 for an empty window) in each SHAPLEY_DELTA."""
    exact = [item for item in plan.items if item.approximate is None]
    order = Window.partitionBy(*keys).orderBy(INSTANT)
    adjoining = F.lag(INSTANT).over(order) == F.col(INSTANT) - 1
    changed = {}
    for name in (item.name for item in exact if item.kind is ItemKind.DELTA):
        before = F.when(adjoining, F.lag(name).over(order)).otherwise(F.lit(0.0))
        changed[name] = F.col(name) - before
    return answers.withColumns(changed) if changed else answers


def streamed_windows(
    plan: SelectPlan, frame: Frame, lateness: int | None, value_range: tuple[float, float]
) -> DataFrame:
    """Return the emits of a query over a streaming DataFrame, as a streaming DataFrame.

    lateness     how late a row may be, µs; None: the delay of the table's own watermark
    value_range  the smallest nonzero and the largest magnitude of any measure; a value outside this
                 range, a bad row, or a pane with too many rows stops the stream with an error
    """
    slide, width = slide_and_width(plan)
    refuse_final(plan)
    refuse_beyond_panes(plan)
    rows = ready(plan, frame)
    layout = Layout.of(plan, _declared_parts(plan, rows, value_range))
    span = lateness_of(plan, frame, lateness)
    ahead = _MILLISECOND if frame.watermarks else _YEARS
    first = -max(slide, ahead) if frame.watermarks else None
    guard = _guard(plan, rows, value_range, first)
    guarded = rows.data.withColumn(TIME, F.expr(guard).cast("bigint"))
    moved = _moved(guarded, ahead, span, own=bool(frame.watermarks))
    # over Spark Connect, withColumn would lose the metadata that marks the column as a window
    step, start = f"{slide} microseconds", f"{ahead % slide} microseconds"
    rows = replace(rows, data=moved.select("*", F.window(_EVENT, step, step, start).alias(_PANE)))
    cells = cells_of(plan.predicates, frame.columns)
    table = _atoms(plan, rows, cells, layout, _PANE)
    asks_before = any(item.kind is ItemKind.DELTA for item in plan.items)
    panes_asked = width + asks_before
    over = F.window(F.window_time(_PANE), f"{panes_asked * slide} microseconds", step, start)
    spread = table.select("*", over.alias(_WINDOW))
    sums = _item_sums(cells, layout)
    if asks_before:
        sums = _item_sums(cells, layout, f"({_PANE}.start > {_WINDOW}.start)")
        sums += _item_sums(cells, layout, f"({_PANE}.end < {_WINDOW}.end)", _BEFORE)
    summed = spread.groupBy(_WINDOW, *rows.keys).agg(*sums).filter(F.col(COUNT) > 0)
    kept = [_WINDOW, *rows.keys, COUNT]
    answers = sql_answers(nameless(plan), layout, summed, kept, _BEFORE if asks_before else None)
    emit_at = f"timestamp_micros(unix_micros({_WINDOW}.end) - {ahead}L)"
    return named_output(plan, answers, rows.keys, emit_at)


def _moved(data: DataFrame, ahead: int, lateness: int, *, own: bool) -> DataFrame:
    """Add the shifted event time, with a watermark of ours unless the user set an ``own`` one."""
    event = F.expr(f"timestamp_micros({TIME} + {ahead - 1}L)")
    if own:
        # with this metadata, Spark compares the new column with the user's watermark
        return data.select("*", event.alias(_EVENT, metadata={DELAY: lateness // 1_000}))
    return data.withColumn(_EVENT, event).withWatermark(_EVENT, f"{lateness} microseconds")


def _declared_parts(plan: SelectPlan, rows: Ready, value_range: tuple[float, float]) -> list[Parts]:
    """Return parts that represent all integers, and every double within ``value_range``."""
    smallest, largest = value_range
    found = [
        Parts(0, 0, 0)
        if typed is None
        else Parts.for_integers(63, degree)
        if typed.whole
        else Parts.fit(largest, smallest, degree)
        for typed, degree in zip(rows.measures, plan.degrees, strict=True)
    ]
    if any(parts.wide for parts in found):
        raise ScriptError(
            f"magnitudes from {smallest:g} to {largest:g} are too far apart to be summed exactly",
            hint="set a narrower value_range",
        )
    return found


def _guard(
    plan: SelectPlan, rows: Ready, value_range: tuple[float, float], first: int | None
) -> str:
    """Return the SQL of the event time, which raises an error for rows that cannot be summed.

    These are bad rows, rows with a value outside ``value_range``, and rows at or before ``first``
    (µs), which Spark would drop.
    """
    remedy = spell(f" in {plan.table}; leave such rows out with WHERE")
    tests = [f"WHEN {FAULT} IS NOT NULL THEN raise_error(concat({FAULT}, {remedy}))"]
    if first is not None:
        text = f"an event time {plan.order_by[0]!r} of {plan.table} is before 1970, where "
        text += "Spark's watermark starts; set lateness instead of withWatermark"
        tests.append(f"WHEN {TIME} <= {first}L THEN raise_error({spell(text)})")
    smallest, largest = value_range
    for number, typed in enumerate(rows.measures):
        expression = plan.measures[number]
        if typed is None or expression is None or typed.whole or plan.degrees[number] == 0:
            continue
        size = f"abs({measure(number)})"
        outside = f"{size} >= {largest!r}D OR ({size} > 0D AND {size} < {smallest!r}D)"
        text = f"a value of {render(expression)!r} is not between {smallest:g} and {largest:g} in "
        text += "magnitude; set a wider value_range"
        tests.append(f"WHEN {outside} THEN raise_error({spell(text)})")
    return f"CASE {' '.join(tests)} ELSE {TIME} END"
