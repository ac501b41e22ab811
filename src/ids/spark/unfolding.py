"""Many predicates in batch: one row a predicate, so that the closed form is written once for all.

    one emit, K predicates ─▶ K rows ─▶ the same columns worked out on each ─▶ one emit again

Written out beside each other, the closed forms of 64 predicates are thousands of columns, and
Spark takes longer to plan them than to compute them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StructField, StructType

from ids.exact import Program
from ids.model.query import ItemKind
from ids.plan import PlannedItem, SelectPlan
from ids.spark.answers import Answers, exact_columns
from ids.spark.evaluating import aggregate_text, answered, exact_names, narrow, text_of
from ids.spark.mapping import mapped
from ids.spark.panes import Item, Layout, applied

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["unfolded"]

_FEW = 8
_ANY = -1  # stands for whichever predicate a row is of
_NUMBER = "ids_item"
_PARTS = ("value", "share", "lift")


def unfolded(plan: SelectPlan, layout: Layout, data: DataFrame, kept: list[str]) -> DataFrame:
    """``evaluating.answered``, by a row a predicate where there are many of them.

    ``kept`` tell one emit from another. Sums too wide for SQL are evaluated in the workers.
    """
    if any(parts.wide for parts in layout.parts):
        return _in_workers(plan, layout, narrow(data), kept)
    if max(map(len, layout.predicates), default=0) <= _FEW:
        return answered(plan, layout, data, kept)
    data = narrow(data)
    for number in range(len(layout.parts)):
        items = [item for item in plan.items if item.measure == number]
        data = _measured(items, layout, data, number, kept)
    return data.select(*kept, *exact_names(plan))


def _in_workers(plan: SelectPlan, layout: Layout, data: DataFrame, kept: list[str]) -> DataFrame:
    fields = [data.schema[name] for name in kept]
    fields += [StructField(name, DoubleType()) for name in exact_names(plan)]

    def evaluated(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            sums = {name: batch.column(name).to_numpy() for name in layout.sums}
            found = exact_columns(plan, Answers(layout, sums.__getitem__), len(batch))
            columns = [*(batch.column(name) for name in kept), *found.values()]
            yield pa.RecordBatch.from_arrays(columns, [*kept, *found])

    needed = dict.fromkeys([*kept, *layout.sums])
    return mapped(data.select(*needed), evaluated, StructType(fields))


def _measured(
    items: list[PlannedItem], layout: Layout, data: DataFrame, number: int, kept: list[str]
) -> DataFrame:
    """The answers of one measure in place of its sums; every other column stays."""
    own = {name for item in layout.items(number) for name in item.columns(layout.parts[number])}
    others = [name for name in data.columns if name not in own and name not in kept]
    program = Program("ids_v")
    answers = Answers(layout, program.column)
    aggregates = {
        item.name: aggregate_text(answers, item)
        for item in items
        if item.kind is ItemKind.AGGREGATE
    }
    asked = [item for item in items if item.kind is not ItemKind.AGGREGATE]
    games = {item.game.name: item.game for item in asked}
    parts = {
        _part(place, name): text_of(part)
        for place, game in enumerate(games.values())
        for name, part in zip(_PARTS, answers.part(game, Item(number, _ANY)), strict=True)
    }
    if asked:
        data = _rows(layout, data, number, [*kept, *others])
    found = [f"cast({text} as double) AS {name}" for name, text in (aggregates | parts).items()]
    number_column = [_NUMBER] if asked else []
    evaluated = applied(data, program).selectExpr(*kept, *others, *number_column, *found)
    if not asked:
        return evaluated
    stay = [F.expr(f"first({name})").alias(name) for name in [*others, *aggregates]]
    folded = [c for item in asked for c in _folded(item, list(games).index(item.game.name))]
    return evaluated.groupBy(*kept).agg(*stay, *folded)


def _rows(layout: Layout, data: DataFrame, number: int, others: list[str]) -> DataFrame:
    """A row a predicate: its number and its sums, beside the window's."""
    parts = layout.parts[number]
    window, *items = layout.items(number)
    structs = []
    for item in items:
        named = zip(Item(number, _ANY).columns(parts), item.columns(parts), strict=True)
        fields = ", ".join(f"{column} AS `{name}`" for name, column in named)
        structs.append(f"struct({item.predicate} AS {_NUMBER}, {fields})")
    each = f"inline(array({', '.join(structs)}))"
    return data.selectExpr(*others, *window.columns(parts), each)


def _part(game: int, part: str) -> str:
    """The column of a part of an attribution under game number ``game``."""
    return f"ids_g{game}_{part}"


def _folded(item: PlannedItem, game: int) -> list[Column]:
    """An item's columns, taken from the row of its predicate."""
    names = {item.name: "value"}
    names |= {f"{item.name}_{part.lower()}": part.lower() for part in item.parts}
    own = f"{_NUMBER} = {item.predicate}"
    return [
        F.expr(f"max(CASE WHEN {own} THEN {_part(game, part)} END)").alias(name)
        for name, part in names.items()
    ]
