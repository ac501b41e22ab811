"""Prepare rows in the JVM: apply WHERE, and add columns for keys, event time and measures.

The hash of a row's contents equals that of ``ids.state.row_hash``, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ids.kernels import START
from ids.model import DOUBLE_INTEGERS, FIRST_INSTANT, LAST_INSTANT, Kind, TimeWindow, render
from ids.plan import SelectPlan
from ids.query import FAR_TIME, INFINITE, NAN, NULL_TIME
from ids.spark.cell_columns import cells_of, packed_truths
from ids.spark.expression_sql import Typed, compiled, spell, unfit_of
from ids.spark.frame import Frame
from ids.spark.kafka_topic import MALFORMED

TIME = "ids_t"
FAULT = "ids_fault"  # why a row is a bad row, else NULL
CONTENT = "ids_h"  # the hash of a row's contents
PRIORITY = "ids_q"
AHEAD = "ids_ahead"  # whether a row of a stream is too far ahead of the other rows
PANE = "ids_p"  # the number of the slide that a row's event time falls into
INSTANT = "ids_i"  # the instant at which a time window ends, in slides
COUNT = "ids_n"  # rows in the window

_ROUNDS_UP = 2**63 - 512  # larger integers round to 2**63, which is not a BIGINT


def key(number: int) -> str:
    """Return the column name for PARTITION BY column ``number``."""
    return f"ids_k{number}"


def measure(number: int) -> str:
    """Return the column name for measure ``number``."""
    return f"ids_x{number}"


def slide_and_width(plan: SelectPlan) -> tuple[int, int]:
    """Return the slide of a plan's time window in µs, and the window's length in slides."""
    assert isinstance(plan.window, TimeWindow)
    assert plan.window.slide is not None
    return plan.window.slide, plan.window.duration // plan.window.slide


def pane_of(slide: int) -> str:
    """Return the SQL for a row's pane: its event time divided by the slide, rounded up."""
    # BIGINT division truncates, which rounds negative times up; the addition handles positive ones
    return f"(({TIME} + if({TIME} > 0L, {slide - 1}L, 0L)) div {slide}L)"


@dataclass(frozen=True, slots=True)
class Ready:
    """Prepared rows: the table's own columns, with keys, event time, measures and fault added.

    columns   the SQL of each of the user's columns, by name
    keys      the type of each key column, by name
    measures  the type of each measure; None for COUNT(*)
    present   the measures that are known to contain no NULL
    """

    data: DataFrame
    columns: dict[str, Typed]
    keys: dict[str, Typed]
    measures: list[Typed | None]
    present: frozenset[int] = frozenset()

    @property
    def measured(self) -> list[str]:
        """The names of the measure columns; COUNT(*) has none."""
        return [measure(n) for n, typed in enumerate(self.measures) if typed is not None]

    def sound(self) -> Ready:
        """Return the rows without the bad ones."""
        return replace(self, data=self.data.filter(F.col(FAULT).isNull()))

    def packed(self, plan: SelectPlan, named: Mapping[str, str]) -> DataFrame:
        """Select the keys, the ``named`` SQL expressions, and one bit per predicate.

        The bit is set if the predicate holds.
        """
        cells = cells_of(plan.predicates, self.columns)
        columns = [f"{text} AS {name}" for name, text in (*named.items(), *cells.groups)]
        data = cells.prepared(self.data).selectExpr(*self.keys, *columns)
        return data.selectExpr(*self.keys, *named, *packed_truths(cells.predicates))


Faults = Callable[[Ready, int], None]  # called with the rows, and how many of them are bad


def ready(plan: SelectPlan, frame: Frame) -> Ready:
    """Filter rows by WHERE and add the columns that a plan needs, without running a job."""
    data, columns = frame.data, frame.columns
    malformed = MALFORMED in data.columns
    if plan.where is not None:
        where = compiled(plan.where, columns)
        wanted = where.text if where.kind is Kind.BOOLEAN else f"cast({where.text} as boolean)"
        # WHERE does not apply to a message that could not be parsed
        data = data.filter(f"{wanted} OR {MALFORMED} IS NOT NULL" if malformed else wanted)
    named: dict[str, Column] = {}
    keys: dict[str, Typed] = {}
    for number, name in enumerate(plan.partition_by):
        keys[key(number)] = columns[name]
        named[key(number)] = F.expr(_key(columns[name]))
    event_time = columns[plan.order_by[0]]
    if event_time.kind in (Kind.TIME, None):
        named[TIME] = F.expr(event_time.text).cast("bigint")
    measures: list[Typed | None] = []
    for number, expression in enumerate(plan.measures):
        found = None if expression is None else _measured(compiled(expression, columns))
        measures.append(found)
        if found is not None:
            named[measure(number)] = F.expr(found.text)
    faults = _faults(plan, columns, measures)
    if malformed:
        faults.insert(0, (f"{MALFORMED} IS NOT NULL", "a message that is not such a JSON object"))
    unfit = [unfit_of(columns[name]) for name in plan.columns]
    tests = [f"WHEN {why} IS NOT NULL THEN {why}" for why in unfit if why in data.columns]
    tests += [f"WHEN {test} THEN {spell(reason)}" for test, reason in faults]
    data = data.withColumns(named).withColumn(FAULT, F.expr(f"CASE {' '.join(tests)} END"))
    return Ready(data, columns, keys, measures)


def _key(typed: Typed) -> str:
    """Return the SQL of a normalized key: -0.0 becomes 0.0, and all NaNs become the same NaN."""
    if typed.type != "double":
        return typed.text
    return f"if(isnan({typed.text}), double('NaN'), {typed.text} + 0.0D)"


def _measured(typed: Typed) -> Typed:
    """Convert a measure to a number.

    A measure of another type occurs only in COUNT(x), so it becomes 0, or stays NULL. An integer
    beyond 2**53 is rounded to the nearest double, as in process; the largest BIGINT represents
    2**63 (``ids.exact.split_integer``).
    """
    if typed.kind is Kind.NUMBER and typed.whole:
        near = f"cast(cast({typed.text} as double) as bigint)"
        near = f"if({typed.text} >= {_ROUNDS_UP}L, {2**63 - 1}L, {near})"
        # for NULL the condition is NULL, and the value stays NULL
        far = f"{typed.text} > {DOUBLE_INTEGERS}L OR {typed.text} < {-DOUBLE_INTEGERS}L"
        text = f"if({far}, {near}, {typed.text})"
        return Typed(text, Kind.NUMBER, whole=True)
    if typed.kind is Kind.NUMBER:
        return typed
    return Typed(f"if(({typed.text}) IS NULL, NULL, 0L)", Kind.NUMBER, whole=True)


def _faults(
    plan: SelectPlan, columns: dict[str, Typed], measures: list[Typed | None]
) -> list[tuple[str, str]]:
    """Return the SQL conditions that identify bad rows, each with the reason to report."""
    name = plan.order_by[0]
    faults = [(f"({columns[name].text}) IS NULL", NULL_TIME.format(name))]
    if columns[name].kind is Kind.TIME:
        outside = f"{TIME} NOT BETWEEN {FIRST_INSTANT}L AND {LAST_INSTANT}L"
        faults.append((outside, FAR_TIME.format(name)))
    for number, (expression, typed) in enumerate(zip(plan.measures, measures, strict=True)):
        if typed is None or expression is None or typed.whole:
            continue
        value, text = measure(number), render(expression)
        faults.append((f"isnan({value})", NAN.format(text)))
        faults.append((f"abs({value}) = double('inf')", INFINITE.format(text)))
    return faults


@dataclass(frozen=True, slots=True)
class Survey:
    """Statistics collected in one pass over the rows.

    rows      the number of rows
    faults    the number of bad rows
    last      the last event time of a valid row, µs
    ranges   (largest, smallest nonzero) magnitude of each measure, over valid rows
    present   the measures that contain no NULL
    """

    rows: int
    faults: int
    last: int | None
    ranges: list[tuple[float, float] | None]
    present: frozenset[int] = frozenset()


def survey(plan: SelectPlan, rows: Ready) -> Survey:
    """Collect the statistics of the rows in one job, which shuffles one row per partition."""
    found = rows.data.agg(*survey_columns(plan, rows)).first()
    assert found is not None
    return surveyed(plan, found.asDict())


def survey_columns(plan: SelectPlan, rows: Ready) -> list[Column]:
    """Return the aggregates that a survey computes."""
    sound = f"{FAULT} IS NULL"
    found = {"ids_rows": "count(*)", "ids_faults": f"count({FAULT})"}
    if TIME in rows.data.columns:
        found["ids_last"] = f"max(if({sound}, {TIME}, NULL))"
    for number, typed in enumerate(rows.measures):
        if typed is None or plan.degrees[number] == 0:
            continue
        value = f"if({sound}, abs(cast({measure(number)} as double)), NULL)"
        found[f"ids_largest{number}"] = f"max({value})"
        found[f"ids_smallest{number}"] = f"min(nullif({value}, 0.0D))"
        found[f"ids_present{number}"] = f"count({measure(number)})"
    return [F.expr(text).alias(name) for name, text in found.items()]


def surveyed(plan: SelectPlan, found: dict[str, Any]) -> Survey:
    """Return the survey that these computed aggregates represent."""
    ranges: list[tuple[float, float] | None] = []
    for number in range(len(plan.measures)):
        if f"ids_largest{number}" not in found:
            ranges.append(None)
            continue
        largest = found[f"ids_largest{number}"] or 0.0
        ranges.append((largest, found[f"ids_smallest{number}"] or largest))
    rows = found["ids_rows"]
    present = frozenset(n for n in range(len(ranges)) if found.get(f"ids_present{n}") == rows)
    return Survey(rows, found["ids_faults"], found.get("ids_last"), ranges, present)


def content_of(plan: SelectPlan, columns: Mapping[str, Typed]) -> str:
    """Return the SQL for the hash of a row, over the columns that a plan uses."""
    each = ", ".join(_hashed(columns[name]) for name in plan.columns)
    return f"xxhash64(cast('{plan.seed}' as bigint), {each})"


def _hashed(column: Typed) -> str:
    """Return the SQL for the hash of a column; the hash of NULL is the initial hash value."""
    if column.kind is None:
        return f"{START}L"
    if column.kind is Kind.TEXT:
        return f"xxhash64({column.text})"
    if column.kind is not Kind.NUMBER:
        return f"xxhash64(cast({column.text} as bigint))"
    value = f"cast({column.text} as double)"
    if not column.whole:
        return f"xxhash64({value})"
    # xxhash64 skips NULL, so only integers beyond 2**53 are hashed a second time
    far = f"{column.text} > {DOUBLE_INTEGERS}L OR {column.text} < {-DOUBLE_INTEGERS}L"
    return f"xxhash64({value}, if({far}, {column.text}, NULL))"


def priority_of(content: str, ordinal: str) -> str:
    """Return the SQL for a row's sampling priority.

    It depends on the row's contents and on its position among identical rows.
    """
    return f"xxhash64({content}, {ordinal})"


def tie_break_of(priority: str) -> str:
    """Return the SQL for the hash that orders rows with equal values."""
    return f"xxhash64({priority})"
