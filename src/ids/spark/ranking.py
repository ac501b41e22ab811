"""Rows to tasks: which rows a task answers, and which it only looks back at, without a sort."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ids.model.expression import Literal
from ids.model.window import CountWindow
from ids.plan import SelectPlan
from ids.spark.expressions import compiled
from ids.spark.frames import Typed
from ids.spark.replaying import Bounds
from ids.spark.rows import FAULT, Ready, Survey, survey_columns, surveyed
from ids.spark.ruler import Ruler
from ids.spark.stretches import Part, cut, halo_of, last_alone, stairs, target_of

__all__ = ["BUCKET", "HEAVY", "Ranked", "look", "order", "rank"]

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
    bounds       where each task's rows stand in their key
    """

    heavy: str
    bucket: str
    first: str
    last: str
    bounds: tuple[Bounds, ...]


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


def rank(
    plan: SelectPlan, rows: Ready, total: int, ruler: Ruler, target: int | None = None
) -> Ranked:
    """Divide ``total`` sound rows among tasks; no job where one task is enough."""
    assert isinstance(plan.window, CountWindow)
    halo = halo_of(plan.window)
    target = target or target_of(total, halo)
    heavy, held = _heavy_keys(rows, total, target)
    light = total - held
    shared = max(1, -(-light // target)) if light or not total else 0
    bounds = [Bounds(0, 0)] * shared
    hashed = f"cast(pmod(xxhash64({', '.join(rows.keys)}), {shared}L) as int)" if rows.keys else "0"
    if not heavy:
        return Ranked("cast(NULL as int)", "0", hashed, hashed, tuple(bounds))
    numbered = _numbered(list(rows.keys), heavy)
    value = rows.columns[plan.order_by[0]].text
    placed = rows.data.selectExpr(f"{numbered} AS {HEAVY}", f"{value} AS {order(0)}")
    placed = placed.filter(f"{HEAVY} IS NOT NULL")
    counts, ruler = _histogram(placed, len(heavy), ruler, target)
    firsts, lasts = [], []
    for number, own in enumerate(counts):
        parts = _parts(plan, own, target, halo)
        steps = stairs(parts, len(bounds), BUCKET)
        firsts.append(f"WHEN {HEAVY} = {number} THEN {steps[0] if steps else 'NULL'}")
        lasts.append(f"WHEN {HEAVY} = {number} THEN {steps[1] if steps else 'NULL'}")
        bounds.extend(Bounds(part.base, part.halo) for part in parts)
    other = f"WHEN {HEAVY} IS NULL THEN {hashed} " if shared else ""
    first, last = (f"cast(CASE {other}{' '.join(s)} END as int)" for s in (firsts, lasts))
    return Ranked(numbered, ruler.bucket, first, last, tuple(bounds) or (Bounds(0, 0),))


def _parts(plan: SelectPlan, counts: npt.NDArray[np.int64], target: int, halo: int) -> list[Part]:
    assert isinstance(plan.window, CountWindow)
    if plan.final:
        return last_alone(counts, plan.window.slide, halo)
    return cut(counts, target, halo)


def _heavy_keys(rows: Ready, total: int, target: int) -> tuple[list[tuple[Any, ...]], int]:
    """The keys of more rows than a task should have, the heaviest first, and all their rows."""
    if total <= target:
        return [], 0
    if not rows.keys:
        return [()], total
    counted = rows.data.groupBy(*rows.keys).agg(F.count(F.lit(1)).alias("ids_n"))
    found = counted.filter(f"ids_n > {target}L").orderBy(F.desc("ids_n")).limit(_MOST_HEAVY)
    keys = [tuple(row) for row in found.collect()]
    return [values[:-1] for values in keys], sum(values[-1] for values in keys)


def _numbered(names: list[str], heavy: list[tuple[Any, ...]]) -> str:
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
