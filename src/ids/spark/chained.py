"""Time windows on a streaming DataFrame: two aggregations in a chain, kept by Spark itself.

    rows ─▶ window(event time, slide), key, cell ─▶ window(panes, duration, slide), key ─▶ answers

What comes out is a streaming DataFrame for any sink in append mode: an instant is answered when
the watermark has passed it. Spark's windows are [start, end) and ours (t - d, t], so event times
are moved back by a microsecond. They are also moved ahead: by 2000 years under a watermark of ours,
as Spark starts it in 1970 and drops what lies before; by a millisecond under one of the user's own,
which cannot be moved along, as an instant that it has only reached is not passed yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ids.errors import ScriptError
from ids.exact import Parts
from ids.model.query import ItemKind
from ids.model.rendering import render
from ids.model.window import TimeWindow
from ids.plan import SelectPlan
from ids.spark.batch import named_output
from ids.spark.cells import cells_of
from ids.spark.evaluating import answered, nameless
from ids.spark.frames import Frame
from ids.spark.limits import refuse_beyond_panes
from ids.spark.panes import COUNT, Layout, atoms, item_sums
from ids.spark.rows import FAULT, TIME, Ready, measure, ready
from ids.spark.sources.canonical import spell
from ids.spark.watermark import DELAY, lateness_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["REACH", "streamed_windows"]

REACH = (1e-9, 1e12)  # the magnitudes a stream takes without being told

# µs that event times are moved ahead
_YEARS = 730_485 * 86_400_000_000  # 2000 of them: the calendar repeats itself every 400
_MILLISECOND = 1_000

_EVENT = "ids_event"
_PANE = "ids_pane"
_WINDOW = "ids_window"
_BEFORE = "ids_before_"


def streamed_windows(
    plan: SelectPlan, frame: Frame, lateness: int | None, reach: tuple[float, float] = REACH
) -> DataFrame:
    """The emits of a query over a streaming DataFrame, as a streaming DataFrame.

    lateness  µs that a row may be late; None: as a watermark of the table's own says
    reach     the smallest (but 0) and the largest magnitude of any measure; a value outside, a
              bad row, or a pane of too many rows ends the stream with an error, never silently
    """
    window = plan.window
    assert isinstance(window, TimeWindow)
    assert window.slide is not None
    if plan.final:
        raise ScriptError(
            "EMIT FINAL has no end to wait for on a stream",
            hint="write EMIT CHANGES, or run over the files as a batch",
        )
    refuse_beyond_panes(plan)
    layout = Layout.of(plan, _parts(plan, ready(plan, frame), reach))
    span = lateness_of(plan, frame, lateness)
    ahead = _MILLISECOND if frame.watermarks else _YEARS
    first = -max(window.slide, ahead) if frame.watermarks else None
    rows = _guarded(plan, ready(plan, frame), reach, first)
    cells = cells_of(plan.predicates, frame.columns)
    moved = _moved(rows.data, ahead, span, own=bool(frame.watermarks))
    # selected, since withColumn over Spark Connect forgets that a column is a window
    slide, start = f"{window.slide} microseconds", f"{ahead % window.slide} microseconds"
    paned = moved.select("*", F.window(_EVENT, slide, slide, start).alias(_PANE))
    rows = Ready(paned, rows.columns, rows.keys, rows.measures)
    table = atoms(plan, rows, cells, layout, _PANE)
    asks_before = any(item.kind is ItemKind.DELTA for item in plan.items)
    reached = window.duration + (window.slide if asks_before else 0)
    over = F.window(F.window_time(_PANE), f"{reached} microseconds", slide, start)
    spread = table.select("*", over.alias(_WINDOW))
    sums = item_sums(cells, layout)
    if asks_before:
        oldest = f"({_PANE}.start > {_WINDOW}.start)"
        newest = f"({_PANE}.end < {_WINDOW}.end)"
        sums = [
            *item_sums(cells, layout, oldest),
            *item_sums(cells, layout, newest, _BEFORE),
        ]
    summed = spread.groupBy(_WINDOW, *rows.keys).agg(*sums).filter(F.col(COUNT) > 0)
    kept = [_WINDOW, *rows.keys, COUNT]
    answers = answered(nameless(plan), layout, summed, kept, _BEFORE if asks_before else None)
    emit_at = f"timestamp_micros(unix_micros({_WINDOW}.end) - {ahead}L)"
    return named_output(plan, answers, rows.keys, emit_at)


def _moved(data: DataFrame, ahead: int, lateness: int, *, own: bool) -> DataFrame:
    """Rows with the event time that Spark sees, under our watermark or the user's own."""
    event = F.expr(f"timestamp_micros({TIME} + {ahead - 1}L)")
    if own:
        # Spark compares whatever column says so with the one watermark of the stream
        return data.select("*", event.alias(_EVENT, metadata={DELAY: lateness // 1_000}))
    return data.withColumn(_EVENT, event).withWatermark(_EVENT, f"{lateness} microseconds")


def _parts(plan: SelectPlan, rows: Ready, reach: tuple[float, float]) -> list[Parts]:
    found: list[Parts] = []
    smallest, largest = reach
    for number, typed in enumerate(rows.measures):
        degree = plan.degrees[number]
        if typed is None or degree == 0:
            parts = Parts(0, 0, 0)
        elif typed.whole:
            parts = Parts.for_integers(63, degree)
        else:
            parts = Parts.fit(largest, smallest, degree)
        if parts.wide:
            raise ScriptError(
                f"magnitudes from {smallest:g} to {largest:g} are too far apart to be summed "
                "exactly",
                hint="give a narrower reach",
            )
        found.append(parts)
    return found


def _guarded(plan: SelectPlan, rows: Ready, reach: tuple[float, float], first: int | None) -> Ready:
    """A bad row, or a value out of reach, ends the stream with a line that says so.

    So does one at or before ``first``, µs, which Spark would drop.
    """
    tests = [f"WHEN {FAULT} IS NOT NULL THEN raise_error(concat({FAULT}, {_said(plan)}))"]
    if first is not None:
        text = f"an event time {plan.order_by[0]!r} of {plan.table} lies before 1970, where "
        text += "Spark's watermark starts; give a lateness in place of withWatermark"
        tests.append(f"WHEN {TIME} <= {first}L THEN raise_error({spell(text)})")
    smallest, largest = reach
    for number, typed in enumerate(rows.measures):
        expression = plan.measures[number]
        if typed is None or expression is None or typed.whole or plan.degrees[number] == 0:
            continue
        size = f"abs({measure(number)})"
        outside = f"{size} >= {largest!r}D OR ({size} > 0D AND {size} < {smallest!r}D)"
        text = f"a value of {render(expression)!r} is not between {smallest:g} and {largest:g} in "
        text += "magnitude; give the stream a wider reach"
        tests.append(f"WHEN {outside} THEN raise_error({spell(text)})")
    checked = F.expr(f"CASE {' '.join(tests)} ELSE {TIME} END").cast("bigint")
    return Ready(rows.data.withColumn(TIME, checked), rows.columns, rows.keys, rows.measures)


def _said(plan: SelectPlan) -> str:
    return spell(f" in {plan.table}; leave such rows out with WHERE")
