"""Rows to tasks: which rows a task answers, and which it only looks back at, without a sort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ids.model.expression import Literal
from ids.model.window import CountWindow
from ids.plan import SelectPlan
from ids.spark.expressions import compiled
from ids.spark.frames import Typed
from ids.spark.replaying import OLD, RANK, Bounds
from ids.spark.rows import FAULT, Ready, Survey, survey_columns, surveyed
from ids.spark.ruler import Ruler
from ids.spark.stretches import Part, cut, end_of, halo_of, last_alone, stairs, target_of

__all__ = [
    "BUCKET",
    "HEAVY",
    "Division",
    "Heavy",
    "Ranked",
    "divide",
    "key_bucket",
    "look",
    "order",
    "power_of_two",
]

HEAVY = "ids_heavy"
BUCKET = "ids_b"

_MOST_HEAVY = 64
_QUANTILES = 256


def order(number: int) -> str:
    """The column of ORDER BY column ``number``."""
    return f"ids_o{number}"


@dataclass(frozen=True, slots=True)
class Ranked:
    """Which tasks a row goes to, as SQL.

    heavy        over the keys: the number of a key that is cut into stretches, or NULL
    bucket       over ``order(0)``: the bucket of the first ORDER BY column
    first, last  over HEAVY and BUCKET: the first and the last task of a row; NULL: none wants it
    bounds       where each task's rows stand in their key; None for a task of whole keys
    """

    heavy: str
    bucket: str
    first: str
    last: str
    bounds: tuple[Bounds | None, ...]


class Heavy(NamedTuple):
    """A key of more rows than a task should have.

    rows    of these rows, how many are its
    old     of these, how many have had their emit; they stand first
    base    rows of the key before all these
    counts  int64[buckets], its rows in each bucket of the order
    """

    values: tuple[Any, ...]
    rows: int
    old: int
    base: int
    counts: npt.NDArray[np.int64]


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
        shared = -(-self.light // self.target)
        return self._ranked([self._parts(key) for key in self.heavy], shared)

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

    def _parts(self, key: Heavy) -> list[Part]:
        halo = halo_of(self._window)
        if self.plan.final:
            return last_alone(key.counts, self._window.slide, halo)
        return cut(key.counts, self.target, halo, key.old)

    def _ranked(self, parts: list[list[Part]], shared: int) -> Ranked:
        shared = shared if shared or self.heavy else 1
        hashed = f"cast({key_bucket(self.keys, shared or 1)} as int)"
        bounds: list[Bounds | None] = [None] * shared
        if not self.heavy:
            return Ranked("cast(NULL as int)", "0", hashed, hashed, tuple(bounds))
        firsts, lasts = [], []
        for number, (key, own) in enumerate(zip(self.heavy, parts, strict=True)):
            steps = stairs(own, len(bounds), BUCKET)
            firsts.append(f"WHEN {HEAVY} = {number} THEN {steps[0] if steps else 'NULL'}")
            lasts.append(f"WHEN {HEAVY} = {number} THEN {steps[1] if steps else 'NULL'}")
            bounds.extend(
                Bounds(key.base + part.base, max(part.halo, key.old - part.base)) for part in own
            )
        other = f"WHEN {HEAVY} IS NULL THEN {hashed} " if shared else ""
        first, last = (f"cast(CASE {other}{' '.join(s)} END as int)" for s in (firsts, lasts))
        numbered = _numbered(self.keys, [key.values for key in self.heavy])
        return Ranked(numbered, self.bucket, first, last, tuple(bounds) or (None,))


def key_bucket(keys: Sequence[str], buckets: int) -> str:
    """The bucket of a key, of so many, as SQL."""
    return f"pmod(xxhash64({', '.join(keys)}), {buckets}L)" if keys else "0L"


def power_of_two(number: int) -> int:
    """The first one that is not smaller.

    >>> [power_of_two(n) for n in (0, 1, 2, 3, 8)]
    [1, 1, 2, 4, 8]
    """
    return 1 << max(number - 1, 0).bit_length()


def look(plan: SelectPlan, rows: Ready) -> tuple[Survey, Ruler]:
    """One pass over the rows: the survey, and a ruler for the first ORDER BY column."""
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
    named = Typed(order(0), value.kind, value.whole)
    ruler = Ruler.between(named, found["ids_min"], found["ids_max"])
    return surveyed(plan, found.asDict()), ruler


def divide(
    plan: SelectPlan,
    data: DataFrame,
    keys: Sequence[str],
    ruler: Ruler,
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
    target = target or target_of(fresh, halo_of(plan.window))
    found = _heavy_keys(data, keys, rows, target, has_old=new is not None) if fresh > target else []
    if not found:
        return Division(plan, tuple(keys), (), rows, target)
    light = rows - sum(key.rows for key in found) if keys else 0
    numbered = _numbered(keys, [key.values for key in found])
    placed = data.selectExpr(f"{numbered} AS {HEAVY}", order(0)).filter(f"{HEAVY} IS NOT NULL")
    counts, ruler = _histogram(placed, len(found), ruler, target)
    heavy = [key._replace(counts=own) for key, own in zip(found, counts, strict=True)]
    return Division(plan, tuple(keys), tuple(heavy), light, target, ruler.bucket)


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


def _numbered(names: Sequence[str], heavy: list[tuple[Any, ...]]) -> str:
    """The number of a row's key among the heavy ones, as SQL; NULL for a light one."""
    if not names:
        return "0"
    tests = []
    for number, values in enumerate(heavy):
        pairs = zip(names, values, strict=True)
        match = " AND ".join(f"{name} <=> {compiled(Literal(v), {}).text}" for name, v in pairs)
        tests.append(f"WHEN {match} THEN {number}")
    return f"CASE {' '.join(tests)} END"


def _histogram(
    placed: DataFrame, keys: int, ruler: Ruler, target: int
) -> tuple[npt.NDArray[np.int64], Ruler]:
    """Rows of each heavy key in each bucket, int64[keys, buckets]; exact.

    Where even buckets are too full to cut at their borders, they are laid at quantiles.
    """
    counts = _counted(placed, keys, ruler)
    if ruler.buckets == 1 or counts.max() <= target:
        return counts, ruler
    steps = ", ".join(f"{k / _QUANTILES!r}D" for k in range(1, _QUANTILES))
    found = placed.agg(F.expr(f"approx_percentile({ruler.number}, array({steps}))")).first()
    assert found is not None
    finer = ruler.at(found[0])
    return _counted(placed, keys, finer), finer


def _counted(placed: DataFrame, keys: int, ruler: Ruler) -> npt.NDArray[np.int64]:
    grouped = placed.selectExpr(HEAVY, f"{ruler.bucket} AS {BUCKET}").groupBy(HEAVY, BUCKET)
    table = grouped.agg(F.count(F.lit(1)).alias("ids_n")).toArrow()
    counts = np.zeros((keys, ruler.buckets), np.int64)
    heavy, bucket, rows = (table.column(name).to_numpy() for name in (HEAVY, BUCKET, "ids_n"))
    counts[heavy, bucket] = rows
    return counts
