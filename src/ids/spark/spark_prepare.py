"""Rows made ready in the JVM: WHERE applied, keys, event time and measures under fixed names.

A row's contents are hashed to the numbers of ``ids.state.row_hash``, bit by bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from ids.kernels import START
from ids.model import DOUBLE_INTEGERS, FIRST_INSTANT, LAST_INSTANT, Kind, render
from ids.plan import SelectPlan
from ids.query import FAR_TIME, INFINITE, NAN, NULL_TIME
from ids.spark.cell_columns import cells_of, packed_truths
from ids.spark.condition_sql import compiled
from ids.spark.frame import Frame
from ids.spark.kafka_topic import MALFORMED
from ids.spark.typed_column import Typed, spell, unfit_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TIME = "ids_t"
FAULT = "ids_fault"
CONTENT = "ids_h"  # the hash of a row's contents
PRIORITY = "ids_q"
AHEAD = "ids_ahead"  # whether a row of a stream is too far ahead of the others

_ROUNDS_UP = 2**63 - 512  # from here on the nearest double is 2**63, which no BIGINT holds


def key(number: int) -> str:
    """The column of PARTITION BY column ``number``."""
    return f"ids_k{number}"


def measure(number: int) -> str:
    """The column of measure ``number``."""
    return f"ids_x{number}"


@dataclass(frozen=True, slots=True)
class Ready:
    """Rows with their keys, event time, measures and fault beside their own columns.

    columns   the table's own columns, as SQL
    keys      the key columns' names, and what they hold
    measures  what each measure holds; None for COUNT(*)
    present   the measures that are known to be NULL nowhere
    """

    data: DataFrame
    columns: dict[str, Typed]
    keys: dict[str, Typed]
    measures: list[Typed | None]
    present: frozenset[int] = frozenset()

    @property
    def measured(self) -> list[str]:
        """The columns of the measures that have values."""
        return [measure(n) for n, typed in enumerate(self.measures) if typed is not None]

    def sound(self) -> Ready:
        """Without the rows that no window can take."""
        return replace(self, data=self.data.filter(F.col(FAULT).isNull()))

    def packed(self, plan: SelectPlan, named: Mapping[str, str]) -> DataFrame:
        """The keys, columns as ``named`` SQL, and the truths of all predicates as bits."""
        cells = cells_of(plan.predicates, self.columns)
        columns = [f"{text} AS {name}" for name, text in (*named.items(), *cells.groups)]
        data = cells.prepared(self.data).selectExpr(*self.keys, *columns)
        return data.selectExpr(*self.keys, *named, *packed_truths(cells.predicates))


Faults = Callable[[Ready, int], None]  # given the rows, and how many of them are bad


def ready(plan: SelectPlan, frame: Frame) -> Ready:
    """Apply WHERE, and name what the plan asks for; no job runs."""
    data, columns = frame.data, frame.columns
    malformed = MALFORMED in data.columns
    if plan.where is not None:
        where = compiled(plan.where, columns)
        wanted = where.text if where.kind is Kind.BOOLEAN else f"cast({where.text} as boolean)"
        # what could not be read is no row that WHERE could be about
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
        faults.insert(0, (f"{MALFORMED} IS NOT NULL", "a message that is no such JSON object"))
    unfit = [unfit_of(columns[name]) for name in plan.columns]
    tests = [f"WHEN {why} IS NOT NULL THEN {why}" for why in unfit if why in data.columns]
    tests += [f"WHEN {test} THEN {spell(reason)}" for test, reason in faults]
    data = data.withColumns(named).withColumn(FAULT, F.expr(f"CASE {' '.join(tests)} END"))
    return Ready(data, columns, keys, measures)


def _key(typed: Typed) -> str:
    """A key with one bit pattern: -0.0 as 0.0, and every NaN the same."""
    if typed.type != "double":
        return typed.text
    return f"if(isnan({typed.text}), double('NaN'), {typed.text} + 0.0D)"


def _measured(typed: Typed) -> Typed:
    """A measure as a number; of anything else only whether it is there is ever asked.

    A whole number beyond 2**53 counts as the double nearest to it, as in process; the largest
    BIGINT stands for 2**63 (``ids.exact.split_integer``).
    """
    if typed.kind is Kind.NUMBER and typed.whole:
        near = f"cast(cast({typed.text} as double) as bigint)"
        near = f"if({typed.text} >= {_ROUNDS_UP}L, {2**63 - 1}L, {near})"
        # NULL is not far
        far = f"{typed.text} > {DOUBLE_INTEGERS}L OR {typed.text} < {-DOUBLE_INTEGERS}L"
        text = f"if({far}, {near}, {typed.text})"
        return Typed(text, Kind.NUMBER, whole=True)
    if typed.kind is Kind.NUMBER:
        return typed
    return Typed(f"if(({typed.text}) IS NULL, NULL, 0L)", Kind.NUMBER, whole=True)


def _faults(
    plan: SelectPlan, columns: dict[str, Typed], measures: list[Typed | None]
) -> list[tuple[str, str]]:
    """What no window can take: a test of the row, and the reason."""
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
    """What one pass over the rows tells: how many, which faults, how far values reach.

    last      the last event time of any sound row, µs
    ranges    (largest, smallest but 0) magnitude of each measure, of sound rows
    present   the measures that are NULL nowhere
    """

    rows: int
    faults: int
    last: int | None
    ranges: list[tuple[float, float] | None]
    present: frozenset[int] = frozenset()


def survey(plan: SelectPlan, rows: Ready) -> Survey:
    """Run that pass: one job, with hardly a shuffle."""
    found = rows.data.agg(*survey_columns(plan, rows)).first()
    assert found is not None
    return surveyed(plan, found.asDict())


def survey_columns(plan: SelectPlan, rows: Ready) -> list[Column]:
    """The aggregates of a survey."""
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
    """A survey's aggregates, read."""
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
    """The hash of the columns a plan reads, as SQL."""
    each = ", ".join(_hashed(columns[name]) for name in plan.columns)
    return f"xxhash64(cast('{plan.seed}' as bigint), {each})"


def _hashed(column: Typed) -> str:
    """A column's hash; that of NULL is where every hash starts."""
    if column.kind is None:
        return f"{START}L"
    if column.kind is Kind.TEXT:
        return f"xxhash64({column.text})"
    if column.kind is not Kind.NUMBER:
        return f"xxhash64(cast({column.text} as bigint))"
    value = f"cast({column.text} as double)"
    if not column.whole:
        return f"xxhash64({value})"
    # a NULL is passed over: only numbers beyond the doubles are hashed on
    far = f"{column.text} > {DOUBLE_INTEGERS}L OR {column.text} < {-DOUBLE_INTEGERS}L"
    return f"xxhash64({value}, if({far}, {column.text}, NULL))"


def priority_of(content: str, ordinal: str) -> str:
    """The priority of a row by its contents and its number among equal ones, as SQL."""
    return f"xxhash64({content}, {ordinal})"


def tie_break_of(priority: str) -> str:
    """What decides between equal values, as SQL."""
    return f"xxhash64({priority})"
