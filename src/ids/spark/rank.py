"""Divide the rows of count windows among tasks without sorting them.

The values of the first ORDER BY column are assigned to buckets, in order; equal values share a
bucket. The range of numbers and timestamps is divided into equal intervals, or at quantiles if the
values are skewed. Texts are divided by the bytes after their common prefix.

The rows of a heavy key, one with many rows, are cut between buckets into parts, one task per part.
A task emits only for the part's own rows, but also reads its halo:

    buckets   ▁▃▅▂▁▂▄▆▃▁▂▃▅▂     rows of a key, by the first ORDER BY column, ascending
    part 0    └─own─┘
    part 1       └halo┘└─own─┘    the halo: earlier rows that the part's first windows contain

The histogram counts the rows in each bucket exactly. It determines the rank of each part's first
row (how many rows of the key precede it), so the input does not have to be sorted.
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
RANK = "ids_rank"  # how many rows of the key precede a stored row
OLD = "ids_old"  # whether the emits of a row were computed in an earlier batch
HEAVY = "ids_heavy"
BUCKET = "ids_b"

Counts = npt.NDArray[np.int64]

_BUCKETS = 1024
_BYTES = 7  # bytes of a text that are used: as many as fit into a BIGINT
_WIDEST = 2**62
_QUANTILES = 256
_MOST_HEAVY = 64
_FEWEST = 100_000  # rows per task; fewer are not worth a task
_MOST = 500_000  # rows per task; more take too much memory
_TASKS = 16


def order(number: int) -> str:
    """Return the column name for ORDER BY column ``number``."""
    return f"ids_o{number}"


def stream_order(plan: SelectPlan, data: DataFrame) -> list[Column]:
    """Return the columns to sort by: the ORDER BY columns, then the position in the input."""
    orders = [data[order(n)].asc_nulls_first() for n in range(len(plan.order_by))]
    return [*orders, data[ORIGIN].asc()]


@dataclass(frozen=True, slots=True)
class Buckets:
    """Assigns values to the buckets 0 … ``count - 1``.

    number  the SQL of a BIGINT or DOUBLE that increases with the value
    bucket  the SQL of the value's bucket
    """

    number: str
    bucket: str
    count: int

    @classmethod
    def between(cls, value: Typed, low: Any, high: Any) -> Buckets:
        """Return buckets of equal width between the smallest and the largest finite value."""
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
        """Return buckets of equal width; infinities and NaN are put into the first or last one.

        All values are halved, so that differences cannot overflow.
        """
        span = high * 0.5 - low * 0.5
        factor = _BUCKETS / span if span else 0.0
        if not (isfinite(factor) and factor > 0.0):
            return cls(number, "0", 1)
        scaled = f"(({number}) * 0.5D - double('{low * 0.5!r}')) * double('{factor!r}')"
        bucket = f"cast(greatest(0.0D, least({_BUCKETS - 1}.0D, {scaled})) as int)"
        return cls(number, bucket, _BUCKETS)

    def at(self, quantiles: Sequence[float | int]) -> Buckets:
        """Return other buckets, whose boundaries are the given values of ``number``."""
        cuts = [constant(q).text for q in sorted({q for q in quantiles if isfinite(q)})]
        bucket = search(f"({self.number}) <=", cuts, [str(k) for k in range(len(cuts) + 1)])
        return Buckets(self.number, bucket, len(cuts) + 1)


def _text_number(text: str, low: bytes, high: bytes) -> str:
    """Return the SQL that converts a text to a number, from the bytes after the common prefix.

    All texts are between ``low`` and ``high``.
    """
    shared = 0
    while shared < min(len(low), len(high)) and low[shared] == high[shared]:
        shared += 1
    some = f"substring(cast({text} as binary), {shared + 1}, {_BYTES})"
    return f"cast(conv(rpad(hex({some}), {2 * _BYTES}, {spell('0')}), 16, 10) as bigint)"


def survey_order(plan: SelectPlan, rows: Ready) -> tuple[Survey, Buckets]:
    """Survey the rows (see ``Survey``) and choose buckets for the first ORDER BY column.

    Both are done in one job.
    """
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
    """A part of a key's rows, with its halo.

    first, start, stop  buckets: the halo is in [first, start), the part's own rows in [start, stop)
    base                how many rows of the key precede the halo
    halo                how many rows the halo has
    """

    first: int
    start: int
    stop: int
    base: int
    halo: int

    @classmethod
    def of(cls, before: Counts, start: int, stop: int, halo: int) -> Part:
        """Return the part with the buckets in [start, stop).

        Its halo has at least ``halo`` rows, or all earlier rows if there are fewer. ``before``
        contains the number of rows before each bucket.
        """
        wanted = max(int(before[start]) - halo, 0)
        first = min(int(np.searchsorted(before, wanted, side="right")) - 1, start)
        return cls(first, start, stop, int(before[first]), int(before[start] - before[first]))


def halo_of(window: CountWindow) -> int:
    """Return how many rows an emit needs, including those of the window one slide before."""
    return window.size + window.slide


def cut(counts: Counts, target: int, halo: int, old: int = 0) -> list[Part]:
    """Cut between buckets into parts with about ``target`` own rows each.

    Emits of the first ``old`` rows were computed before; a bucket with no other rows belongs to no
    part.
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
    """Return a list of the part with the key's last emit; [] if the key has no emit."""
    before = np.concatenate([[0], np.cumsum(counts)])
    emit = int(before[-1]) // slide * slide
    if emit == 0:
        return []
    start = int(np.searchsorted(before, emit, side="left")) - 1
    return [Part.of(before, start, len(counts), halo)]


def end_of(counts: Counts, halo: int) -> Part:
    """Return an empty part after all rows, whose halo has the rows that future windows need."""
    before = np.concatenate([[0], np.cumsum(counts)])
    return Part.of(before, len(counts), len(counts), halo)


def tasks_of(parts: Sequence[Part], offset: int, bucket: str) -> tuple[str, str]:
    """Return the SQL for the first and the last task that need a row; NULL if no task does.

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
    """The position of a task's rows among all rows of their key.

    base  how many rows of the key precede the task's first row
    halo  how many of the task's first rows have no emits in this task
    """

    base: int
    halo: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """SQL expressions that determine which tasks need a row.

    heavy        from the keys: the number of the heavy key, or NULL
    bucket       from ``order(0)``: the bucket of the first ORDER BY column
    first, last  from HEAVY and BUCKET: the first and the last task that need a row; NULL: none
    bounds       the position of each task's rows in their key; None for a task with whole keys
    """

    heavy: str
    bucket: str
    first: str
    last: str
    bounds: tuple[Bounds | None, ...]


class Heavy(NamedTuple):
    """A key with more rows than a task should have.

    rows    the number of its rows
    old     how many of these, the first ones, had their emits computed before
    base    how many rows of the key precede all of these
    counts  int64[buckets], the number of rows in each bucket
    """

    values: tuple[Any, ...]
    rows: int
    old: int
    base: int
    counts: Counts


@dataclass(frozen=True, slots=True)
class Division:
    """Divides the rows of heavy keys by their order, and the rows of all other keys by key.

    keys    the key columns
    heavy   the heavy keys
    light   how many rows the other keys have in total
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
        """Return the tasks that compute the emits."""
        window, parts = self._window, []
        for key in self.heavy:
            if self.plan.final:
                parts.append(last_alone(key.counts, window.slide, halo_of(window)))
            else:
                parts.append(cut(key.counts, self.target, halo_of(window), key.old))
        return self._ranked(parts, -(-self.light // self.target))

    def tails(self, rows: int) -> Ranked:
        """Return the tasks that select the last rows of each key from about ``rows`` rows.

        The number of tasks with whole keys is a power of two, so that all keys with the same
        ``key_bucket`` are in one task.
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
    """Return the SQL that hashes a key to a bucket number below ``buckets``."""
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
    """Divide rows among tasks; no job runs if one task is enough.

    data    the rows, with the key columns and ``order(0)``
    rows    the number of rows
    new     how many rows still need emits, default all; the others are OLD, some with a RANK
    target  how many own rows a task should have; chosen automatically by default
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
        # one bucket alone has too many rows for a task, so divide at quantiles instead
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
    """Return the keys with more than ``target`` new rows, most rows first; counts are empty."""
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
    """Return the SQL for the number of a row's key among the heavy keys; NULL for other keys."""
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
