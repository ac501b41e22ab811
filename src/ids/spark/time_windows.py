"""Time windows on Spark: rows to panes, panes to windows, windows to answers.

Over a batch DataFrame a slide adds the pane that comes and takes back the one that goes: sums run
on, signed, and are exact, so the cost per pane does not depend on the window's length.

Over a streaming DataFrame two aggregations in a chain are kept by Spark itself:

    rows ─▶ window(event time, slide), key, cell ─▶ window(panes, duration, slide), key ─▶ answers

What comes out is a streaming DataFrame for any sink in append mode: an instant is answered when
the watermark has passed it. Spark's windows are [start, end) and ours (t - d, t], so event times
are moved back by a microsecond. They are also moved ahead: by 2000 years under a watermark of ours,
as Spark starts it in 1970 and drops what lies before; by a millisecond under one of the user's own,
which cannot be moved along, as an instant that it has only reached is not passed yet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from ids.errors import ScriptError
from ids.exact import Parts
from ids.model import ItemKind, render
from ids.plan import SelectPlan
from ids.query import with_moments
from ids.spark.cell_columns import cells_of, groupable_columns
from ids.spark.frame import DELAY, Frame, lateness_of
from ids.spark.panes import COUNT, INSTANT, PANE, Layout, atoms, item_sums, panes, slide_and_width
from ids.spark.preflight import refuse_beyond_panes
from ids.spark.spark_approximate import estimated_windows
from ids.spark.spark_evaluate import evaluate, named_output, nameless, sql_answers
from ids.spark.spark_prepare import FAULT, TIME, Faults, Ready, Survey, measure, ready, survey
from ids.spark.typed_column import spell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VALUE_RANGE = (1e-9, 1e12)  # the magnitudes a stream takes without being told

_SAMPLED = 10_000
_FEW_VALUES = 1_000
# µs that event times of a stream are moved ahead
_YEARS = 730_485 * 86_400_000_000  # 2000 of them: the calendar repeats itself every 400
_MILLISECOND = 1_000

_EVENT = "ids_event"
_PANE = "ids_pane"
_WINDOW = "ids_window"
_BEFORE = "ids_before_"


def time_windows(plan: SelectPlan, frame: Frame, on_faults: Faults) -> DataFrame:
    """Every emit of a query with a time window.

    One job surveys the rows at once, for the magnitudes of their values and for bad rows, which
    ``on_faults`` refuses or keeps; all else happens when the result is asked for.
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
    answers = _since_before(inner, answers, keys)
    if plan.final:  # each key's last
        last = F.max(INSTANT).over(Window.partitionBy(*keys))
        answers = answers.withColumn("ids_last", last).filter(F.col(INSTANT) == F.col("ids_last"))
    answers = answers.orderBy(INSTANT, *(F.col(name).asc_nulls_first() for name in keys))
    instant = f"timestamp_micros({INSTANT} * {slide}L)"
    return named_output(plan, answers, rows.keys, instant)


def fit_parts(plan: SelectPlan, rows: Ready, known: Survey) -> list[Parts]:
    """Parts that hold every bit of every value."""
    found: list[Parts] = []
    for degree, typed, known_range in zip(plan.degrees, rows.measures, known.ranges, strict=True):
        largest, smallest = known_range or (0.0, 0.0)
        if typed is None or known_range is None:
            found.append(Parts(0, 0, 0))
        elif typed.whole:
            found.append(Parts.for_integers(int(largest).bit_length() + 1, degree))
        else:
            found.append(Parts.fit(largest, smallest, degree).trimmed(smallest))
    return found


def _few_valued(frame: Frame, names: list[str]) -> list[str]:
    """Which columns hold few values, as far as a few rows tell; only speed depends on it."""
    if not names:
        return []
    texts = [frame.columns[name].text for name in names]
    some = frame.data.selectExpr(*texts).limit(_SAMPLED)
    row = some.agg(*(F.countDistinct(F.expr(text)) for text in texts)).first()
    assert row is not None
    return [name for name, values in zip(names, row, strict=True) if values <= _FEW_VALUES]


def windows(
    width: int, table: DataFrame, keys: list[str], sums: list[str], final: int
) -> DataFrame:
    """Sums of the window at every instant (in slides) whose window is not empty, up to ``final``.

    ``table`` is a pane table, a window ``width`` panes; INSTANT takes the place of PANE.
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
    # a window without a pane that comes or goes is that of the instant before
    until = F.least(F.col("ids_next") - 1, F.lit(final))
    emitted = totals.filter(F.col(PANE) <= until)
    return emitted.select(*keys, F.explode(F.sequence(F.col(PANE), until)).alias(INSTANT), *sums)


def _since_before(plan: SelectPlan, answers: DataFrame, keys: list[str]) -> DataFrame:
    """SHAPLEY_DELTA: less the attribution one slide before, if there was a window."""
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
    """The emits of a query over a streaming DataFrame, as a streaming DataFrame.

    lateness     µs that a row may be late; None: as a watermark of the table's own says
    value_range  the smallest (but 0) and the largest magnitude of any measure; a value outside,
                 a bad row, or a pane of too many rows ends the stream with an error
    """
    slide, width = slide_and_width(plan)
    if plan.final:
        raise ScriptError(
            "EMIT FINAL has no end to wait for on a stream",
            hint="write EMIT CHANGES, or run over the files as a batch",
        )
    refuse_beyond_panes(plan)
    rows = ready(plan, frame)
    layout = Layout.of(plan, _declared_parts(plan, rows, value_range))
    span = lateness_of(plan, frame, lateness)
    ahead = _MILLISECOND if frame.watermarks else _YEARS
    first = -max(slide, ahead) if frame.watermarks else None
    guarded = rows.data.withColumn(
        TIME, F.expr(_guard(plan, rows, value_range, first)).cast("bigint")
    )
    moved = _moved(guarded, ahead, span, own=bool(frame.watermarks))
    # selected, since withColumn over Spark Connect forgets that a column is a window
    step, start = f"{slide} microseconds", f"{ahead % slide} microseconds"
    rows = replace(rows, data=moved.select("*", F.window(_EVENT, step, step, start).alias(_PANE)))
    cells = cells_of(plan.predicates, frame.columns)
    table = atoms(plan, rows, cells, layout, _PANE)
    asks_before = any(item.kind is ItemKind.DELTA for item in plan.items)
    panes_asked = width + asks_before
    over = F.window(F.window_time(_PANE), f"{panes_asked * slide} microseconds", step, start)
    spread = table.select("*", over.alias(_WINDOW))
    sums = item_sums(cells, layout)
    if asks_before:
        sums = item_sums(cells, layout, f"({_PANE}.start > {_WINDOW}.start)")
        sums += item_sums(cells, layout, f"({_PANE}.end < {_WINDOW}.end)", _BEFORE)
    summed = spread.groupBy(_WINDOW, *rows.keys).agg(*sums).filter(F.col(COUNT) > 0)
    kept = [_WINDOW, *rows.keys, COUNT]
    answers = sql_answers(nameless(plan), layout, summed, kept, _BEFORE if asks_before else None)
    emit_at = f"timestamp_micros(unix_micros({_WINDOW}.end) - {ahead}L)"
    return named_output(plan, answers, rows.keys, emit_at)


def _moved(data: DataFrame, ahead: int, lateness: int, *, own: bool) -> DataFrame:
    """Rows with the event time that Spark sees, under our watermark or the user's own."""
    event = F.expr(f"timestamp_micros({TIME} + {ahead - 1}L)")
    if own:
        # Spark compares whatever column says so with the one watermark of the stream
        return data.select("*", event.alias(_EVENT, metadata={DELAY: lateness // 1_000}))
    return data.withColumn(_EVENT, event).withWatermark(_EVENT, f"{lateness} microseconds")


def _declared_parts(plan: SelectPlan, rows: Ready, value_range: tuple[float, float]) -> list[Parts]:
    """Parts that hold every bit of whole numbers, and of others within ``value_range``."""
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
            hint="give a narrower value_range",
        )
    return found


def _guard(
    plan: SelectPlan, rows: Ready, value_range: tuple[float, float], first: int | None
) -> str:
    """The event time; a bad row, or a value out of range, ends the stream with a clear error.

    So does one at or before ``first``, µs, which Spark would drop.
    """
    said = spell(f" in {plan.table}; leave such rows out with WHERE")
    tests = [f"WHEN {FAULT} IS NOT NULL THEN raise_error(concat({FAULT}, {said}))"]
    if first is not None:
        text = f"an event time {plan.order_by[0]!r} of {plan.table} lies before 1970, where "
        text += "Spark's watermark starts; give a lateness in place of withWatermark"
        tests.append(f"WHEN {TIME} <= {first}L THEN raise_error({spell(text)})")
    smallest, largest = value_range
    for number, typed in enumerate(rows.measures):
        expression = plan.measures[number]
        if typed is None or expression is None or typed.whole or plan.degrees[number] == 0:
            continue
        size = f"abs({measure(number)})"
        outside = f"{size} >= {largest!r}D OR ({size} > 0D AND {size} < {smallest!r}D)"
        text = f"a value of {render(expression)!r} is not between {smallest:g} and {largest:g} in "
        text += "magnitude; give a wider value_range"
        tests.append(f"WHEN {outside} THEN raise_error({spell(text)})")
    return f"CASE {' '.join(tests)} ELSE {TIME} END"
