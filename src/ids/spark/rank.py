"""Rows to tasks: which rows a task answers, and which it only looks back at, without a sort.

The values of the first ORDER BY column fall into buckets, never out of order, equal ones into the
same. Numbers and instants are divided evenly between the smallest and the largest, or at quantiles
where they crowd; a text counts by the bytes after the beginning that all texts share.

A key of many rows is cut into parts at the borders of buckets, each for a task of its own:

    buckets   ▁▃▅▂▁▂▄▆▃▁▂▃▅▂     rows of a key, by the first ORDER BY column, ascending
    part 0    └─own─┘
    part 1       └halo┘└─own─┘    the halo: rows before its own that its first windows reach

The histogram's counts are exact, hence so is the rank of every part's first row; nothing is sorted.
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
from ids.spark.condition_sql import constant, search
from ids.spark.frame import ORIGIN
from ids.spark.spark_prepare import FAULT, Ready, Survey, survey_columns, surveyed
from ids.spark.typed_column import Typed, spell

TASK = "ids_task"
RANK = "ids_rank"  # of a row that is remembered: how many rows of its key came before it
OLD = "ids_old"  # whether a row has had its emit
HEAVY = "ids_heavy"
BUCKET = "ids_b"

Counts = npt.NDArray[np.int64]

_BUCKETS = 1024
_BYTES = 7  # of a text: as many as a BIGINT holds
_WIDEST = 2**62
_QUANTILES = 256
_MOST_HEAVY = 64
_FEWEST = 100_000  # rows that are worth a task of their own
_MOST = 500_000  # rows that a task holds in memory without anybody noticing
_TASKS = 16


def order(number: int) -> str:
    """The column of ORDER BY column ``number``."""
    return f"ids_o{number}"


def stream_order(plan: SelectPlan, data: DataFrame) -> list[Column]:
    """The order of the stream: the ORDER BY columns; equal ones keep their order in the input."""
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
        """Even buckets between the smallest and the largest (of a DOUBLE: finite) value."""
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
        """In halves, so that no difference overflows; infinities and NaN go to the ends."""
        span = high * 0.5 - low * 0.5
        factor = _BUCKETS / span if span else 0.0
        if not (isfinite(factor) and factor > 0.0):
            return cls(number, "0", 1)
        place = f"(({number}) * 0.5D - double('{low * 0.5!r}')) * double('{factor!r}')"
        bucket = f"cast(greatest(0.0D, least({_BUCKETS - 1}.0D, {place})) as int)"
        return cls(number, bucket, _BUCKETS)

    def at(self, quantiles: Sequence[float | int]) -> Buckets:
        """Buckets that part at the given values of ``number`` instead."""
        cuts = [constant(q).text for q in sorted({q for q in quantiles if isfinite(q)})]
        bucket = search(f"({self.number}) <=", cuts, [str(k) for k in range(len(cuts) + 1)])
        return Buckets(self.number, bucket, len(cuts) + 1)


def _text_number(text: str, low: bytes, high: bytes) -> str:
    """The first bytes in which texts between ``low`` and ``high`` differ, as one number."""
    shared = 0
    while shared < min(len(low), len(high)) and low[shared] == high[shared]:
        shared += 1
    some = f"substring(cast({text} as binary), {shared + 1}, {_BYTES})"
    return f"cast(conv(rpad(hex({some}), {2 * _BYTES}, {spell('0')}), 16, 10) as bigint)"


def survey_order(plan: SelectPlan, rows: Ready) -> tuple[Survey, Buckets]:
    """One pass over the rows: the survey, and buckets for the first ORDER BY column."""
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

    first, start, stop  buckets: the halo is ``first`` to ``start``, its own ``start`` to ``stop``
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
        """The part of some buckets, with a halo of so many rows at least if there are any.

        ``before`` says how many rows come before each bucket.
        """
        wanted = max(int(before[start]) - halo, 0)
        first = min(int(np.searchsorted(before, wanted, side="right")) - 1, start)
        return cls(first, start, stop, int(before[first]), int(before[start] - before[first]))


def halo_of(window: CountWindow) -> int:
    """How many rows before a row may matter to it: its window, and the one a slide before."""
    return window.size + window.slide


def cut(counts: Counts, target: int, halo: int, old: int = 0) -> list[Part]:
    """Cut at the borders of buckets, so that each part has about ``target`` rows of its own.

    The first ``old`` rows are only looked back at: buckets of these alone are no part's own.
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
    """The one part that holds the key's last emit; none if it has no emit."""
    before = np.concatenate([[0], np.cumsum(counts)])
    emit = int(before[-1]) // slide * slide
    if emit == 0:
        return []
    start = int(np.searchsorted(before, emit, side="left")) - 1
    return [Part.of(before, start, len(counts), halo)]


def end_of(counts: Counts, halo: int) -> Part:
    """A part without rows of its own, after all of them: its halo is what rows to come look at."""
    before = np.concatenate([[0], np.cumsum(counts)])
    return Part.of(before, len(counts), len(counts), halo)


def tasks_of(parts: Sequence[Part], offset: int, bucket: str) -> tuple[str, str]:
    """The first and the last task of a row by its bucket, as SQL; NULL where none wants it.

    The parts are tasks ``offset``, ``offset + 1``, …; a row is its own part's, and a row of the
    halo of every part up to the last that begins to look back at or before it.
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
    """Where a task's rows are in their key: rows before the first, rows only looked back at."""

    base: int
    halo: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """Which tasks a row goes to, as SQL.

    heavy        over the keys: the number of a key that is cut into parts, or NULL
    bucket       over ``order(0)``: the bucket of the first ORDER BY column
    first, last  over HEAVY and BUCKET: the first and the last task of a row; NULL: none wants it
    bounds       where each task's rows are in their key; None for a task of whole keys
    """

    heavy: str
    bucket: str
    first: str
    last: str
    bounds: tuple[Bounds | None, ...]


class Heavy(NamedTuple):
    """A key of more rows than a task should have.

    rows    of these rows, how many are its
    old     of these, how many have had their emit; they come first
    base    rows of the key before all these
    counts  int64[buckets], its rows in each bucket of the order
    """

    values: tuple[Any, ...]
    rows: int
    old: int
    base: int
    counts: Counts


@dataclass(frozen=True, slots=True)
class Division:
    """Rows divided into those of heavy keys, by the order, and those of all others, by key.

    keys    the key columns
    light   how many rows are of other keys
    target  how many rows a task should have of its own
    bucket  SQL, see ``Ranked``
    """

    plan: SelectPlan
    keys: tuple[str, ...]
    heavy: tuple[Heavy, ...]
    light: int
    target: int
    bucket: str = "0"

    def emits(self) -> Ranked:
        """The tasks that answer these rows."""
        window, parts = self._window, []
        for key in self.heavy:
            if self.plan.final:
                parts.append(last_alone(key.counts, window.slide, halo_of(window)))
            else:
                parts.append(cut(key.counts, self.target, halo_of(window), key.old))
        return self._ranked(parts, -(-self.light // self.target))

    def tails(self, rows: int) -> Ranked:
        """The tasks that find the last rows of each key; in all there are about so many rows.

        Tasks of whole keys are a power of two, so that a bucket of keys is in one of them.
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
    """The bucket of a key, of so many, as SQL."""
    return f"pmod(xxhash64({', '.join(keys)}), {buckets}L)" if keys else "0L"


def power_of_two(number: int) -> int:
    """The first one that is not smaller.

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
    """Divide rows with keys and ``order(0)`` among tasks; no job where one task is enough.

    ``new`` of the ``rows`` are to be answered, if not all; the others are OLD, and those that
    know how many came before them have a RANK.
    """
    assert isinstance(plan.window, CountWindow)
    fresh = rows if new is None else new
    # a halo costs a task a quarter more at most
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
        # too full to be cut at their borders
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
    """The keys of more new rows than a task should have, the heaviest first; not counted yet."""
    counts = np.zeros(0, np.int64)
    if not keys and not has_old:
        return [Heavy((), rows, 0, 0, counts)]
    old, base = (f"count_if({OLD})", f"min({RANK})") if has_old else ("0L", "0L")
    told = {"ids_n": "count(*)", "ids_old": old, "ids_base": f"coalesce({base}, 0L)"}
    counted = data.groupBy(*keys).agg(*(F.expr(text).alias(name) for name, text in told.items()))
    heavy = counted.filter(f"ids_n - ids_old > {target}L")
    found = heavy.orderBy(F.desc("ids_n")).limit(_MOST_HEAVY).collect()
    return [Heavy(tuple(row[:-3]), row[-3], row[-2], row[-1], counts) for row in found]


def _heavy_number(names: Sequence[str], heavy: Sequence[Heavy]) -> str:
    """The number of a row's key among the heavy ones, as SQL; NULL for a light one."""
    if not names:
        return "0"
    tests = []
    for number, key in enumerate(heavy):
        pairs = zip(names, key.values, strict=True)
        match = " AND ".join(f"{name} <=> {constant(value).text}" for name, value in pairs)
        tests.append(f"WHEN {match} THEN {number}")
    return f"CASE {' '.join(tests)} END"


def _histogram(numbered: DataFrame, keys: int, buckets: Buckets) -> Counts:
    """Rows of each heavy key in each bucket, int64[keys, buckets]; exact."""
    grouped = numbered.selectExpr(HEAVY, f"{buckets.bucket} AS {BUCKET}").groupBy(HEAVY, BUCKET)
    table = grouped.agg(F.count(F.lit(1)).alias("ids_n")).toArrow()
    counts = np.zeros((keys, buckets.count), np.int64)
    heavy, bucket, rows = (table.column(name).to_numpy() for name in (HEAVY, BUCKET, "ids_n"))
    counts[heavy, bucket] = rows
    return counts
