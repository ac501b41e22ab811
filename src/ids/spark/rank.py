"""Rows to tasks without a sort: the rows that each task answers, and the rows it only needs.

The values of the first ORDER BY column are assigned to buckets, in order; equal values share a
bucket. Numbers and timestamps are divided evenly between the smallest and the largest, or at
quantiles if they are skewed; texts are divided by the bytes after their common prefix.

A key with many rows is cut into parts between buckets, one task per part:

    buckets   ▁▃▅▂▁▂▄▆▃▁▂▃▅▂     rows of a key, by the first ORDER BY column, ascending
    part 0    └─own─┘
    part 1       └halo┘└─own─┘    the halo: earlier rows that are in the part's first windows

The histogram is exact, so the rank of every part's first row is known, and nothing is sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ids.model import CountWindow, Kind
from ids.plan import SelectPlan
from ids.spark.expression_sql import Typed, constant, search, spell
from ids.spark.frame import ORIGIN
from ids.spark.spark_prepare import FAULT, Ready, Survey, survey_columns, surveyed

TASK = "ids_task"
RANK = "ids_rank"  # of a row from the state: how many rows of its key came before it
OLD = "ids_old"  # whether a row was answered before
HEAVY = "ids_heavy"
BUCKET = "ids_b"

Counts = npt.NDArray[np.int64]

_BUCKETS = 1024
_BYTES = 7  # of a text: the most that fit into a BIGINT
_WIDEST = 2**62
_QUANTILES = 256
_MOST_HEAVY = 64
_FEWEST = 100_000  # rows per task; fewer are not worth a task
_MOST = 500_000  # rows per task; more take too much memory
_TASKS = 16


def order(number: int) -> str:
    """Name the column of ORDER BY column ``number``."""
    return f"ids_o{number}"


def stream_order(plan: SelectPlan, data: DataFrame) -> list[Column]:
    """Return the order of the stream: the ORDER BY columns, then the order of the input."""
    orders = [data[order(n)].asc_nulls_first() for n in range(len(plan.order_by))]
    return [*orders, data[ORIGIN].asc()]


@dataclass(frozen=True, slots=True)
class Buckets:
    """Buckets 0 … ``count - 1`` of a value.

    number  SQL of a BIGINT or DOUBLE that ascends with the value
    bucket  SQL of the value's bucket
    """

    number: str
    bucket: str
    count: int

    @classmethod
    def between(cls, value: Typed, low: Any, high: Any) -> Buckets:
        """Return even buckets between the smallest and the largest (finite) value."""
        if low is None or high is None or low == high:
            return cls("0L", "0", 1)
        if value.kind is Kind.TEXT:
            number = _text_number(value.text, low.encode(), high.encode())
            return cls._even(number, 0, 256**_BYTES - 1)
        if value.kind is Kind.BOOLEAN:
            return cls._even(f"cast({value.text} as bigint)", 0, 1)
        if value.kind is Kind.NUMBER and not value.whole:
            return cls._even_doubles(value.text, float(low), float(high))
        if high - low >= _WIDEST:
            return cls._even_doubles(f"cast({value.text} as double)", float(low), float(high))
        return cls._even(value.text, low, high)

    @classmethod
    def _even(cls, number: str, low: int, high: int) -> Buckets:
        width = -(-(high - low + 1) // _BUCKETS)
        bucket = f"cast((({number}) - {constant(low).text}) div {width}L as int)"
        return cls(number, bucket, (high - low) // width + 1)

    @classmethod
    def _even_doubles(cls, number: str, low: float, high: float) -> Buckets:
        """Divide halves, so that no difference overflows; infinities and NaN go to the ends."""
        span = high * 0.5 - low * 0.5
        factor = _BUCKETS / span if span else 0.0
        if not (isfinite(factor) and factor > 0.0):
            return cls(number, "0", 1)
        scaled = f"(({number}) * 0.5D - double('{low * 0.5!r}')) * double('{factor!r}')"
        bucket = f"cast(greatest(0.0D, least({_BUCKETS - 1}.0D, {scaled})) as int)"
        return cls(number, bucket, _BUCKETS)

    def at(self, quantiles: Sequence[float | int]) -> Buckets:
        """Return buckets that are divided at the given values of ``number`` instead."""
        cuts = [constant(q).text for q in sorted({q for q in quantiles if isfinite(q)})]
        bucket = search(f"({self.number}) <=", cuts, [str(k) for k in range(len(cuts) + 1)])
        return Buckets(self.number, bucket, len(cuts) + 1)


def _text_number(text: str, low: bytes, high: bytes) -> str:
    """Write the first bytes in which texts between ``low`` and ``high`` differ, as a number."""
    shared = 0
    while shared < min(len(low), len(high)) and low[shared] == high[shared]:
        shared += 1
    some = f"substring(cast({text} as binary), {shared + 1}, {_BYTES})"
    return f"cast(conv(rpad(hex({some}), {2 * _BYTES}, {spell('0')}), 16, 10) as bigint)"


def survey_order(plan: SelectPlan, rows: Ready) -> tuple[Survey, Buckets]:
    """Survey the rows and choose buckets for the first ORDER BY column, in one job."""
    value = rows.columns[plan.order_by[0]]
    sound = f"{FAULT} IS NULL"
    if value.type == "double":
        sound += f" AND abs({value.text}) < double('inf')"
    ends = [
        F.expr(f"{end}(if({sound}, {value.text}, NULL))").alias(f"ids_{end}")
        for end in ("min", "max")
    ]
    found = rows.data.agg(*survey_columns(plan, rows), *ends).first()
    assert found is not None
    buckets = Buckets.between(replace(value, text=order(0)), found["ids_min"], found["ids_max"])
    return surveyed(plan, found.asDict()), buckets


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a key's rows.

    first, start, stop  buckets: the halo is ``first`` to ``start``, own rows ``start`` to ``stop``
    base                rows of the key before the halo
    halo                rows of the halo
    """

    first: int
    start: int
    stop: int
    base: int
    halo: int

    @classmethod
    def of(cls, before: Counts, start: int, stop: int, halo: int) -> Part:
        """Return the part of some buckets, with at least ``halo`` rows before it if there are any.

        ``before`` is the number of rows before each bucket.
        """
        wanted = max(int(before[start]) - halo, 0)
        first = min(int(np.searchsorted(before, wanted, side="right")) - 1, start)
        return cls(first, start, stop, int(before[first]), int(before[start] - before[first]))


def halo_of(window: CountWindow) -> int:
    """Return how many earlier rows an emit needs: its window, and the window one slide before."""
    return window.size + window.slide


def cut(counts: Counts, target: int, halo: int, old: int = 0) -> list[Part]:
    """Cut between buckets, so that each part has about ``target`` own rows.

    The first ``old`` rows were answered before: a bucket of only these belongs to no part.
    """
    before = np.concatenate([[0], np.cumsum(counts)])
    total = int(before[-1]) - old
    target = -(-total // max(1, round(total / target)))  # of about equal length
    parts: list[Part] = []
    start = int(np.searchsorted(before, old, side="right")) - 1 if old else 0
    while start < len(counts):
        stop = int(np.searchsorted(before, before[start] + target, side="left"))
        stop = min(max(stop, start + 1), len(counts))
        parts.append(Part.of(before, start, stop, halo))
        start = stop
    return parts


def last_alone(counts: Counts, slide: int, halo: int) -> list[Part]:
    """Return the part with the key's last emit; none if it has no emit."""
    before = np.concatenate([[0], np.cumsum(counts)])
    emit = int(before[-1]) // slide * slide
    if emit == 0:
        return []
    start = int(np.searchsorted(before, emit, side="left")) - 1
    return [Part.of(before, start, len(counts), halo)]


def end_of(counts: Counts, halo: int) -> Part:
    """Return an empty part after all rows: its halo is what future rows need."""
    before = np.concatenate([[0], np.cumsum(counts)])
    return Part.of(before, len(counts), len(counts), halo)


def tasks_of(parts: Sequence[Part], offset: int, bucket: str) -> tuple[str, str]:
    """Write the first and the last task that need a row, by its bucket; NULL if none does.

    The parts are tasks ``offset``, ``offset + 1``, …. A row belongs to its own part, and to the
    halo of every later part up to the last one whose halo starts at or before the row.
    """
    if not parts:
        return "NULL", "NULL"
    tasks = [str(offset + number) for number in range(len(parts))]
    stops = [str(part.stop) for part in parts[:-1]]
    firsts = [str(part.first) for part in parts[1:]]
    own, last = (search(f"{bucket} <", cuts, tasks) for cuts in (stops, firsts))
    if parts[0].first == 0:
        return own, last
    before = f"{bucket} < {parts[0].first}"
    return f"if({before}, NULL, {own})", f"if({before}, NULL, {last})"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The position of a task's rows in their key.

    base  rows of the key before the first
    halo  rows at the beginning that are not answered
    """

    base: int
    halo: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """The tasks that need a row, as SQL.

    heavy        over the keys: the number of a key that is cut into parts, or NULL
    bucket       over ``order(0)``: the bucket of the first ORDER BY column
    first, last  over HEAVY and BUCKET: the first and the last task of a row; NULL: no task
    bounds       the position of each task's rows in their key; None for a task of whole keys
    """

    heavy: str
    bucket: str
    first: str
    last: str
    bounds: tuple[Bounds | None, ...]


class Heavy(NamedTuple):
    """A key with more rows than a task should have.

    rows    its number of rows
    old     how many of them were answered before; they come first
    base    rows of the key before all of them
    counts  int64[buckets], its rows in each bucket
    """

    values: tuple[Any, ...]
    rows: int
    old: int
    base: int
    counts: Counts


@dataclass(frozen=True, slots=True)
class Division:
    """Rows of heavy keys divided by their order, and rows of all other keys divided by key.

    keys    the key columns
    light   the number of rows of the other keys
    target  how many own rows a task should have
    bucket  SQL, see ``Ranked``
    """

    plan: SelectPlan
    keys: tuple[str, ...]
    heavy: tuple[Heavy, ...]
    light: int
    target: int
    bucket: str = "0"

    def emits(self) -> Ranked:
        """Return the tasks that answer the rows."""
        window, parts = self._window, []
        for key in self.heavy:
            if self.plan.final:
                parts.append(last_alone(key.counts, window.slide, halo_of(window)))
            else:
                parts.append(cut(key.counts, self.target, halo_of(window), key.old))
        return self._ranked(parts, -(-self.light // self.target))

    def tails(self, rows: int) -> Ranked:
        """Return the tasks that find the last rows of each key, of about ``rows`` rows in total.

        The number of tasks of whole keys is a power of two, so that each bucket of keys is in one.
        """
        parts = [[end_of(key.counts, halo_of(self._window))] for key in self.heavy]
        light = max(rows - sum(key.rows for key in self.heavy), 1)
        whole = self.keys or not self.heavy
        return self._ranked(parts, power_of_two(-(-light // self.target)) if whole else 0)

    @property
    def _window(self) -> CountWindow:
        assert isinstance(self.plan.window, CountWindow)
        return self.plan.window

    def _ranked(self, parts: list[list[Part]], shared: int) -> Ranked:
        shared = shared if shared or self.heavy else 1
        hashed = f"cast({key_bucket(self.keys, shared or 1)} as int)"
        bounds: list[Bounds | None] = [None] * shared
        if not self.heavy:
            return Ranked("cast(NULL as int)", "0", hashed, hashed, tuple(bounds))
        firsts, lasts = [], []
        for number, (key, own) in enumerate(zip(self.heavy, parts, strict=True)):
            first, last = tasks_of(own, len(bounds), BUCKET)
            firsts.append(f"WHEN {HEAVY} = {number} THEN {first}")
            lasts.append(f"WHEN {HEAVY} = {number} THEN {last}")
            bounds.extend(
                Bounds(key.base + part.base, max(part.halo, key.old - part.base)) for part in own
            )
        other = f"WHEN {HEAVY} IS NULL THEN {hashed} " if shared else ""
        first, last = (f"cast(CASE {other}{' '.join(s)} END as int)" for s in (firsts, lasts))
        heavy = _heavy_number(self.keys, self.heavy)
        return Ranked(heavy, self.bucket, first, last, tuple(bounds) or (None,))


def key_bucket(keys: Sequence[str], buckets: int) -> str:
    """Write the number of a key's bucket, below ``buckets``."""
    return f"pmod(xxhash64({', '.join(keys)}), {buckets}L)" if keys else "0L"


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is not less than ``number``.

    >>> [power_of_two(n) for n in (0, 1, 2, 3, 8)]
    [1, 1, 2, 4, 8]
    """
    return 1 << max(number - 1, 0).bit_length()


def divide(
    plan: SelectPlan,
    data: DataFrame,
    keys: Sequence[str],
    buckets: Buckets,
    rows: int,
    new: int | None = None,
    target: int | None = None,
) -> Division:
    """Divide rows with keys and ``order(0)`` among tasks; no job runs if one task is enough.

    data    the rows
    rows    their number
    new     how many are not answered yet, default all; the others are OLD, some with a RANK
    target  how many own rows a task should have; chosen by default
    """
    assert isinstance(plan.window, CountWindow)
    fresh = rows if new is None else new
    # a halo is at most a quarter of a task's own rows
    fitting = max(4 * halo_of(plan.window), min(_MOST, max(_FEWEST, fresh // _TASKS)))
    target = target or fitting
    found = _heavy_keys(data, keys, rows, target, has_old=new is not None) if fresh > target else []
    if not found:
        return Division(plan, tuple(keys), (), rows, target)
    light = rows - sum(key.rows for key in found) if keys else 0
    numbered = data.selectExpr(f"{_heavy_number(keys, found)} AS {HEAVY}", order(0))
    numbered = numbered.filter(f"{HEAVY} IS NOT NULL")
    counts = _histogram(numbered, len(found), buckets)
    if buckets.count > 1 and counts.max() > target:
        # a bucket is too full to cut between buckets
        steps = ", ".join(f"{k / _QUANTILES!r}D" for k in range(1, _QUANTILES))
        row = numbered.agg(F.expr(f"approx_percentile({buckets.number}, array({steps}))")).first()
        assert row is not None
        buckets = buckets.at(row[0])
        counts = _histogram(numbered, len(found), buckets)
    heavy = [key._replace(counts=own) for key, own in zip(found, counts, strict=True)]
    return Division(plan, tuple(keys), tuple(heavy), light, target, buckets.bucket)


def _heavy_keys(
    data: DataFrame, keys: Sequence[str], rows: int, target: int, *, has_old: bool
) -> list[Heavy]:
    """Find the keys with more than ``target`` new rows, most rows first, without their counts."""
    counts = np.zeros(0, np.int64)
    if not keys and not has_old:
        return [Heavy((), rows, 0, 0, counts)]
    old, base = (f"count_if({OLD})", f"min({RANK})") if has_old else ("0L", "0L")
    sums = {"ids_n": "count(*)", "ids_old": old, "ids_base": f"coalesce({base}, 0L)"}
    counted = data.groupBy(*keys).agg(*(F.expr(text).alias(name) for name, text in sums.items()))
    heavy = counted.filter(f"ids_n - ids_old > {target}L")
    found = heavy.orderBy(F.desc("ids_n")).limit(_MOST_HEAVY).collect()
    return [Heavy(tuple(row[:-3]), row[-3], row[-2], row[-1], counts) for row in found]


def _heavy_number(names: Sequence[str], heavy: Sequence[Heavy]) -> str:
    """Write the number of a row's key among the heavy keys; NULL for any other key."""
    if not names:
        return "0"
    tests = []
    for number, key in enumerate(heavy):
        pairs = zip(names, key.values, strict=True)
        match = " AND ".join(f"{name} <=> {constant(value).text}" for name, value in pairs)
        tests.append(f"WHEN {match} THEN {number}")
    return f"CASE {' '.join(tests)} END"


def _histogram(numbered: DataFrame, keys: int, buckets: Buckets) -> Counts:
    """Count the rows of each heavy key in each bucket, int64[keys, buckets]."""
    grouped = numbered.selectExpr(HEAVY, f"{buckets.bucket} AS {BUCKET}").groupBy(HEAVY, BUCKET)
    table = grouped.agg(F.count(F.lit(1)).alias("ids_n")).toArrow()
    counts = np.zeros((keys, buckets.count), np.int64)
    heavy, bucket, rows = (table.column(name).to_numpy() for name in (HEAVY, BUCKET, "ids_n"))
    counts[heavy, bucket] = rows
    return counts
