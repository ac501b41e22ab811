"""Time windows over a batch DataFrame: rows to panes, panes to windows, windows to answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from ids.engine.moments import with_moments
from ids.exact import Parts
from ids.model.query import ItemKind
from ids.model.table import Kind
from ids.model.window import TimeWindow
from ids.plan import SelectPlan
from ids.spark.cells import cells_of, wordy_columns
from ids.spark.evaluating import nameless, output_names
from ids.spark.frames import Frame, Typed
from ids.spark.limits import refuse_beyond_panes
from ids.spark.panes import COUNT, Layout, panes
from ids.spark.rows import Ready, Survey, ready, survey
from ids.spark.sampled import estimated_windows
from ids.spark.unfolding import unfolded
from ids.spark.windows import INSTANT, windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Faults", "fit_parts", "named_output", "time_windows"]

_SAMPLED = 10_000
_FEW_VALUES = 1_000

Faults = Callable[[Ready, int], None]  # given the rows, and how many of them are bad


def time_windows(plan: SelectPlan, frame: Frame, on_faults: Faults) -> DataFrame:
    """Every emit of a query with a time window.

    One job surveys the rows at once, for the reach of their values and for bad rows, which
    ``on_faults`` refuses or keeps; all else happens when the result is asked for.
    """
    assert isinstance(plan.window, TimeWindow)
    assert plan.window.slide is not None
    refuse_beyond_panes(plan)
    rows = ready(plan, frame)
    known = survey(plan, rows)
    if known.faults:
        on_faults(rows, known.faults)
        rows = rows.sound()
    rows = replace(rows, present=known.present)
    layout = Layout.of(plan, fit_parts(plan, rows, known))
    raw = _few_valued(frame, wordy_columns(plan.predicates, frame.columns))
    table = panes(plan, rows, cells_of(plan.predicates, frame.columns, raw), layout)
    last = 0 if known.last is None else known.last
    final = -(-last // plan.window.slide)
    keys = list(rows.keys)
    emits = windows(plan.window, table, keys, layout.sums, final)
    inner = nameless(plan)
    answers = unfolded(with_moments(inner), layout, emits, [*keys, INSTANT, COUNT])
    if plan.sampled:
        answers = estimated_windows(inner, rows, answers)
    return _ordered(plan, _since_before(inner, answers, keys), keys, rows)


def fit_parts(plan: SelectPlan, rows: Ready, known: Survey) -> list[Parts]:
    """Parts that hold every bit of every value."""
    found: list[Parts] = []
    for number, typed in enumerate(rows.measures):
        degree, reach = plan.degrees[number], known.reaches[number]
        if typed is None or reach is None:
            found.append(Parts(0, 0, 0))
            continue
        largest, smallest = reach
        if typed.whole:
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


def _since_before(plan: SelectPlan, answers: DataFrame, keys: list[str]) -> DataFrame:
    """SHAPLEY_DELTA: less the attribution one slide before, if a window stood there."""
    exact = [item for item in plan.items if item.approximate is None]
    deltas = [item.name for item in exact if item.kind is ItemKind.DELTA]
    if not deltas:
        return answers
    order = Window.partitionBy(*keys).orderBy(INSTANT)
    adjoining = F.lag(INSTANT).over(order) == F.col(INSTANT) - 1
    changed = {}
    for name in deltas:
        before = F.when(adjoining, F.lag(name).over(order)).otherwise(F.lit(0.0))
        changed[name] = F.col(name) - before
    return answers.withColumns(changed)


def _ordered(plan: SelectPlan, answers: DataFrame, keys: list[str], rows: Ready) -> DataFrame:
    """By instant, then key, NULL first; EMIT FINAL keeps each key's last."""
    if plan.final:
        last = F.max(INSTANT).over(Window.partitionBy(*keys))
        answers = answers.withColumn("ids_last", last).filter(F.col(INSTANT) == F.col("ids_last"))
    answers = answers.orderBy(INSTANT, *(F.col(name).asc_nulls_first() for name in keys))
    assert isinstance(plan.window, TimeWindow)
    instant = f"timestamp_micros({INSTANT} * {plan.window.slide}L)"
    return named_output(plan, answers, rows.keys, instant)


def named_output(
    plan: SelectPlan, answers: DataFrame, keys: dict[str, Typed], emit_at: str
) -> DataFrame:
    """The output as users see it: keys, emit_at, n, then the items.

    ``answers`` are those of the ``nameless`` plan.
    """
    columns = []
    for name, (column, typed) in zip(plan.partition_by, keys.items(), strict=True):
        text = f"timestamp_micros({column})" if typed.kind is Kind.TIME else column
        columns.append(F.expr(text).alias(name))
    columns.append(F.expr(emit_at).alias("emit_at"))
    columns.append(F.col(COUNT).alias("n"))
    inner = zip(output_names(nameless(plan)), output_names(plan), strict=True)
    columns.extend(F.col(name).alias(alias) for name, alias in inner)
    return answers.select(*columns)
