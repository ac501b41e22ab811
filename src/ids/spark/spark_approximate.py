"""APPROXIMATE over time windows: a sample per pane in the JVM, estimates in the workers.

    rows ─▶ (key, pane): the first r + 2·k by priority, the k largest and k smallest values
         ─▶ blocks of panes, with the earlier panes in their first windows ─▶ estimates

A window's sample is a subset of the samples of its panes, so only these rows are sent to workers.
The sample depends only on the contents of the rows, not on partitions or order. A worker evaluates
whole blocks with the in-process kernels; no Python runs per row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.games import Attributed
from ids.model import ItemKind
from ids.plan import SelectPlan
from ids.predicates import Measure
from ids.query import Answers, Population, estimate_items, item_columns, moment_items, with_moments
from ids.spark.cell_columns import atoms_of, truth_columns
from ids.spark.count_windows import key_starts, measure_of
from ids.spark.frame import mapped, whole_partition
from ids.spark.spark_evaluate import exact_names, item_names, output_fields
from ids.spark.spark_prepare import (
    CONTENT,
    COUNT,
    INSTANT,
    PANE,
    PRIORITY,
    Ready,
    content_of,
    measure,
    pane_of,
    priority_of,
    slide_and_width,
    tie_break_of,
)

_AT = "ids_at"
_BLOCK = "ids_block"
_IS_EMIT = "ids_is_emit"
_ORDINAL = "ids_j"
_ROW = "ids_row"
_SHORTEST = 64  # panes per block, at least

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Estimator:
    """Estimates emits from pane samples, block by block; Spark calls it with Arrow batches.

    keys      the key columns
    measured  the sampled measures but COUNT(*)
    width     panes per window
    length    panes per block
    """

    plan: SelectPlan
    keys: tuple[str, ...]
    measured: tuple[int, ...]
    width: int
    length: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return whole_partition(batches, self._answered)

    def _answered(self, both: pa.Table) -> pa.Table:
        """Return the emits of some whole blocks."""
        starts = key_starts([both.column(name) for name in (*self.keys, _BLOCK)], both.num_rows)
        group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        places = self._places(both, group)
        is_emit = both.column(_IS_EMIT).to_numpy()
        emitted, sampled = np.flatnonzero(is_emit), np.flatnonzero(~is_emit)
        sampled = _each_once(sampled, places, both.column(PRIORITY))
        emits, rows = both.take(pa.array(emitted)), both.take(pa.array(sampled))
        at = places[emitted]
        population = self._population(rows, places[sampled], at, emits)
        continues = np.zeros(len(at), np.bool_)
        continues[1:] = (at[1:] == at[:-1] + 1) & (group[emitted][1:] == group[emitted][:-1])
        found = estimate_items(self.plan, population, self._exact(emits))
        columns = {name: emits.column(name) for name in self.keys}
        columns |= {INSTANT: emits.column(_AT), COUNT: emits.column(COUNT)}
        for item in self.plan.items:
            if item.name in found:
                columns |= item_columns(item, found[item.name], continues)
            else:
                columns |= {name: emits.column(name) for name in item_names(item)}
        own = emits.column(_AT).to_numpy() // self.length == emits.column(_BLOCK).to_numpy()
        return pa.table(columns).filter(pa.array(own))

    def _places(self, both: pa.Table, group: Integers) -> Integers:
        """Number panes and instants consecutively over all groups, with gaps of a window."""
        at, block = (both.column(name).to_numpy() for name in (_AT, _BLOCK))
        space = self.length + 2 * self.width + 2
        places: Integers = group * space + (at - block * self.length) + self.width + 1
        return places

    def _population(
        self, rows: pa.Table, panes: Integers, at: Integers, emits: pa.Table
    ) -> Population:
        atoms, held = atoms_of(rows, len(self.plan.predicates))
        measures: list[Measure | None] = [
            measure_of(rows.column(measure(n))) if n in self.measured else None
            for n in range(len(self.plan.measures))
        ]
        return Population(
            np.array(rows.column(PRIORITY)),
            atoms,
            held,
            measures,
            np.searchsorted(panes, at, side="right"),
            np.searchsorted(panes, at - self.width, side="right"),
            emits.column(COUNT).to_numpy(),
        )

    def _exact(self, emits: pa.Table) -> Answers:
        """Read the exact answers and moments of the emits."""
        answers = Answers()
        for item in moment_items(self.plan):
            column = emits.column(item.name)
            missing = column.is_null().to_numpy()
            answers.worths[item.game.name, item.measure] = (_doubles(column), missing)
        for item in self.plan.sampled:
            assert item.predicate is not None
            key = (item.game.name, item.measure, item.predicate)
            parts = ("value", *(part.lower() for part in item.parts))
            named = zip(parts, item_names(item), strict=True)
            found = {part: _doubles(emits.column(name)) for part, name in named}
            nothing = Attributed(*(np.zeros(0) for _ in Attributed._fields))
            answers.attributions[key] = answers.attributions.get(key, nothing)._replace(**found)
        return answers


def _doubles(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    return np.ascontiguousarray(pc.fill_null(column, 0.0).to_numpy())


def _each_once(rows: Integers, places: Integers, priority: pa.ChunkedArray) -> Integers:
    """Sort rows by pane, without duplicates: a row may be both sampled and an extreme."""
    keys = priority.fill_null(0).to_numpy()[rows]
    order = np.lexsort((keys, places[rows]))
    keys, panes = keys[order], places[rows][order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (keys[1:] != keys[:-1]) | (panes[1:] != panes[:-1])
    return rows[order[fresh]]


def estimated_windows(plan: SelectPlan, rows: Ready, answers: DataFrame) -> DataFrame:
    """Estimate the sampled items of the emits of a ``nameless`` plan.

    ``answers`` has the exact answers of each emit, and the moments of the sampled measures.
    """
    _, width = slide_and_width(plan)
    length = max(4 * width, _SHORTEST)
    keys = list(rows.keys)
    data = _placed(_pane_samples(plan, rows), PANE, width, length)
    # SHAPLEY_DELTA needs the previous emit, which may be in the previous block
    copies = 1 if any(item.kind is ItemKind.DELTA for item in plan.sampled) else 0
    exact = exact_names(with_moments(plan))
    emits = _placed(answers.select(*keys, INSTANT, COUNT, *exact), INSTANT, copies, length)
    both = emits.withColumn(_IS_EMIT, F.lit(True)).unionByName(
        data.withColumn(_IS_EMIT, F.lit(False)), allowMissingColumns=True
    )
    by = [F.col(name).asc_nulls_first() for name in keys]
    together = both.repartition(*keys, _BLOCK).sortWithinPartitions(*by, _BLOCK, _IS_EMIT, _AT)
    given = answers.schema
    fields = [*(given[name] for name in keys), T.StructField(INSTANT, T.LongType())]
    fields += [T.StructField(COUNT, T.LongType()), *output_fields(plan)]
    work = Estimator(plan, tuple(keys), _measured(plan), width, length)
    return mapped(together, work, T.StructType(fields))


def _measured(plan: SelectPlan) -> tuple[int, ...]:
    """List the sampled measures but COUNT(*)."""
    numbers = {item.measure for item in plan.sampled}
    return tuple(sorted(n for n in numbers if plan.measures[n] is not None))


def _placed(data: DataFrame, at: str, after: int, length: int) -> DataFrame:
    """Copy each pane or instant to every block that uses it, up to ``after`` panes later."""

    def block(pane: str) -> str:
        return f"(({pane}) - pmod({pane}, {length}L)) div {length}L"

    every = F.explode(F.expr(f"sequence({block(at)}, {block(f'{at} + {after}L')})"))
    return data.select("*", every.alias(_BLOCK)).withColumnRenamed(at, _AT)


def _pane_samples(plan: SelectPlan, rows: Ready) -> DataFrame:
    """Select the rows of each (key, pane) that may be in a window's sample, some of them twice."""
    keys = list(rows.keys)
    numbered = _numbered(plan, rows)
    values = [measure(n) for n in _measured(plan)]
    row = f"struct({', '.join([PRIORITY, *values, *truth_columns(len(plan.predicates))])})"
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
    """Add priorities to valid rows: equal rows are counted, and numbered."""
    slide, _ = slide_and_width(plan)
    values = [measure(n) for n in _measured(plan)]
    named = {PANE: pane_of(slide), CONTENT: content_of(plan, rows.columns)}
    named |= {name: f"cast({name} as double)" for name in values}
    same = [F.first(name).alias(name) for name in (*values, *truth_columns(len(plan.predicates)))]
    slim = rows.packed(plan, named).groupBy(*rows.keys, PANE, CONTENT)
    alike = slim.agg(F.count(F.lit(1)).alias(COUNT), *same)
    each = alike.withColumn(_ORDINAL, F.explode(F.expr(f"sequence(0L, {COUNT} - 1L)")))
    return each.withColumn(PRIORITY, F.expr(priority_of(CONTENT, _ORDINAL)))
