"""APPROXIMATE over time windows: a sample a pane in the JVM, estimates in the workers.

    rows ─▶ (key, pane): the first r + 2·k by priority, the k largest and k smallest values
         ─▶ stretches of panes, with those their first windows reach back to ─▶ estimates

A window's sample is among the samples of its panes, so no more rows than these are ever moved to a
worker. Which rows they are depends on their contents alone, not on partitions or order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.engine.moments import with_moments
from ids.model.query import ItemKind
from ids.model.window import TimeWindow
from ids.plan import SelectPlan
from ids.spark.cells import cells_of
from ids.spark.contents import CONTENT, PRIORITY, content_of, priority_of, tie_break_of
from ids.spark.estimating import AT, IS_EMIT, STRETCH, Estimating
from ids.spark.evaluating import exact_names, output_fields
from ids.spark.mapping import mapped
from ids.spark.panes import COUNT, PANE, pane_of
from ids.spark.rows import Ready, measure
from ids.spark.windows import INSTANT
from ids.spark.words import truth_words, words

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["estimated_windows"]

_SHORTEST = 64  # panes of a stretch
_ORDINAL = "ids_j"
_ROW = "ids_row"


def estimated_windows(plan: SelectPlan, rows: Ready, answers: DataFrame) -> DataFrame:
    """The emits with their sampled items estimated; the plan is a ``nameless`` one.

    ``answers`` holds, for each emit, the exact answers and the moments of sampled measures.
    """
    assert isinstance(plan.window, TimeWindow)
    assert plan.window.slide is not None
    width = plan.window.duration // plan.window.slide
    length = max(4 * width, _SHORTEST)
    keys = list(rows.keys)
    data = _placed(_pane_samples(plan, rows), PANE, width, length)
    # a change looks back at the emit before, which may be of the stretch before
    reach = 1 if any(item.kind is ItemKind.DELTA for item in plan.sampled) else 0
    exact = exact_names(with_moments(plan))
    emits = _placed(answers.select(*keys, INSTANT, COUNT, *exact), INSTANT, reach, length)
    both = emits.withColumn(IS_EMIT, F.lit(True)).unionByName(
        data.withColumn(IS_EMIT, F.lit(False)), allowMissingColumns=True
    )
    by = [F.col(name).asc_nulls_first() for name in keys]
    together = both.repartition(*keys, STRETCH).sortWithinPartitions(*by, STRETCH, IS_EMIT, AT)
    given = answers.schema
    fields = [*(given[name] for name in keys), T.StructField(INSTANT, T.LongType())]
    fields += [T.StructField(COUNT, T.LongType()), *output_fields(plan)]
    work = Estimating(plan, tuple(keys), _measured(plan), width, length)
    return mapped(together, work, T.StructType(fields))


def _measured(plan: SelectPlan) -> tuple[int, ...]:
    """The measures that are sampled and have values."""
    numbers = {item.measure for item in plan.sampled}
    return tuple(sorted(n for n in numbers if plan.measures[n] is not None))


def _placed(data: DataFrame, at: str, reach: int, length: int) -> DataFrame:
    """Panes or instants under the stretches that need them: their own, and those they reach."""

    def stretch(place: str) -> str:
        return f"(({place}) - pmod({place}, {length}L)) div {length}L"

    every = F.explode(F.expr(f"sequence({stretch(at)}, {stretch(f'{at} + {reach}L')})"))
    return data.select("*", every.alias(STRETCH)).withColumnRenamed(at, AT)


def _pane_samples(plan: SelectPlan, rows: Ready) -> DataFrame:
    """The rows of each (key, pane) that the sample of some window may hold; some may come twice."""
    keys = list(rows.keys)
    numbered = _numbered(plan, rows)
    values = [measure(n) for n in _measured(plan)]
    row = f"struct({', '.join([PRIORITY, *values, *words(len(plan.predicates))])})"
    limit = max(i.approximate.size + 2 * i.extremes for i in plan.sampled if i.approximate)
    best: list[Column] = [F.expr(f"max_by({_ROW}, {PRIORITY}, {limit})").alias("ids_best")]
    for number in _measured(plan):
        asked = [item for item in plan.sampled if item.measure == number and item.game.degree]
        if not asked:
            continue
        ends = max(1, *(item.extremes for item in asked))
        value = measure(number)
        order = f"struct({value}, {tie_break_of(PRIORITY)})"
        for side in ("max", "min"):
            taken = f"{side}_by({_ROW}, {order}, {ends}) FILTER (WHERE {value} IS NOT NULL)"
            best.append(F.expr(taken).alias(f"ids_{side}{number}"))
    found = numbered.selectExpr("*", f"{row} AS {_ROW}").groupBy(*keys, PANE).agg(*best)
    arrays = [name for name in found.columns if name not in (*keys, PANE)]
    some = ", ".join(f"coalesce({name}, array())" for name in arrays)
    return found.selectExpr(*keys, PANE, f"inline(concat({some}))")


def _numbered(plan: SelectPlan, rows: Ready) -> DataFrame:
    """Sound rows, slim, under their priorities: equal ones are counted and told apart."""
    assert isinstance(plan.window, TimeWindow)
    assert plan.window.slide is not None
    cells = cells_of(plan.predicates, rows.columns)
    data = rows.data
    if cells.subjects:
        data = data.withColumns({name: F.expr(text) for name, text in cells.subjects})
    values = [measure(n) for n in _measured(plan)]
    slim = data.selectExpr(
        *rows.keys,
        f"{pane_of(plan.window.slide)} AS {PANE}",
        f"{content_of(plan, rows.columns)} AS {CONTENT}",
        *(f"cast({name} as double) AS {name}" for name in values),
        *(f"{text} AS {name}" for name, text in cells.groups),
    ).selectExpr(*rows.keys, PANE, CONTENT, *values, *truth_words(cells.predicates))
    same = [F.first(name).alias(name) for name in (*values, *words(len(plan.predicates)))]
    alike = slim.groupBy(*rows.keys, PANE, CONTENT).agg(F.count(F.lit(1)).alias(COUNT), *same)
    each = alike.withColumn(_ORDINAL, F.explode(F.expr(f"sequence(0L, {COUNT} - 1L)")))
    return each.withColumn(PRIORITY, F.expr(priority_of(CONTENT, _ORDINAL)))
