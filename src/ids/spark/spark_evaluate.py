"""Sums to answers: the closed forms of ``ids.games`` over a layout's sums.

They are written out as SQL columns where there are few predicates. Many beside each other would be
thousands of columns, which Spark takes longer to plan than to compute; so there each predicate gets
a row, and the closed form is written once for all:

    one emit, K predicates ─▶ K rows ─▶ the same columns worked out on each ─▶ one emit again

Sums too wide for SQL are evaluated in the workers, on NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from ids.exact import (
    LIMB_BITS,
    Powers,
    Program,
    Sums,
    Window,
    attribution,
    big_attribution,
    big_worth,
    from_limbs,
    item_of,
    window_of,
    worth,
)
from ids.games import Attributed, Game
from ids.model import MAX_ROWS, ItemKind, Kind
from ids.plan import PlannedItem, SelectPlan
from ids.spark.arrow_map import mapped
from ids.spark.frame import applied
from ids.spark.panes import COUNT, Item, Layout
from ids.spark.typed_column import spell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ids.spark.typed_column import Typed

_FEW_PREDICATES = 8
_ANY = -1  # stands for whichever predicate a row is of
_PREDICATE = "ids_item"
_TOO_WIDE = spell(
    f"a window has more than the {MAX_ROWS:,} rows that are summed exactly; choose a shorter window"
)


class Answers:
    """The exact answers of some windows, each worked out when first asked for.

    ``column`` gives the sums of a layout by their names, as arrays or as symbols of SQL.
    """

    def __init__(self, layout: Layout, column: Callable[[str], Any]) -> None:
        self._layout, self._column = layout, column
        self._windows: dict[int, Window] = {}
        self._powers: dict[Item, Powers] = {}
        self._attributed: dict[tuple[str, Item], Attributed] = {}

    def columns(self, item: PlannedItem) -> dict[str, tuple[Any, Any]]:
        """The columns of an item: values, and where they are NULL (None: nowhere).

        A SHAPLEY_DELTA has this window's attribution, for the caller to subtract the one before.
        """
        if item.kind is ItemKind.AGGREGATE:
            return {item.name: self._aggregate(item)}
        found = self._attribution(item.game, Item(item.measure, item.predicate))
        parts = {"SHARE": found.share, "LIFT": found.lift}
        values = [found.value, *(parts[part] for part in item.parts)]
        return {name: (value, None) for name, value in zip(item_names(item), values, strict=True)}

    def _aggregate(self, item: PlannedItem) -> tuple[Any, Any]:
        parts = self._layout.parts[item.measure]
        if parts.wide:
            window = self._integers(Item(item.measure, None))
            return big_worth(item.game, window), window.rows < item.game.nulls
        return worth(item.game, self._window(item.measure), parts)

    def _attribution(self, game: Game, item: Item) -> Attributed:
        key, parts = (game.name, item), self._layout.parts[item.number]
        if key not in self._attributed and parts.wide:
            whole = self._integers(Item(item.number, None))
            self._attributed[key] = big_attribution(game, whole, self._integers(item))
        elif key not in self._attributed:
            window = self._window(item.number)
            own = item_of(window, self._sums(item), parts)
            self._attributed[key] = attribution(game, window, own, parts)
        return self._attributed[key]

    def _integers(self, item: Item) -> Powers:
        """The sums as Python integers; only of arrays."""
        if item not in self._powers:
            parts, sums = self._layout.parts[item.number], self._sums(item)
            powers = [from_limbs(limbs) for limbs in (sums.first, sums.second) if limbs]
            unit = parts.exponent - LIMB_BITS * parts.levels
            self._powers[item] = Powers(sums.count, powers, unit)
        return self._powers[item]

    def _window(self, number: int) -> Window:
        if number not in self._windows:
            sums = self._sums(Item(number, None))
            self._windows[number] = window_of(sums, self._layout.parts[number])
        return self._windows[number]

    def _sums(self, item: Item) -> Sums:
        parts = self._layout.parts[item.number]
        count, *rest = (self._column(name) for name in item.columns(parts))
        return Sums(count, rest[: parts.levels], rest[parts.levels :])


def exact_columns(plan: SelectPlan, answers: Answers, windows: int) -> dict[str, pa.Array]:
    """The items' exact answers as columns, of a layout whose sums are arrays."""
    return {
        name: pa.array(np.broadcast_to(value, windows), mask=missing)
        for item in plan.items
        for name, (value, missing) in answers.columns(item).items()
    }


def evaluate(plan: SelectPlan, layout: Layout, data: DataFrame, kept: list[str]) -> DataFrame:
    """A column for each exact answer of a ``nameless`` plan beside the ``kept`` ones.

    ``data`` holds the sums of each window; ``kept`` tell one window from another.
    """
    if any(parts.wide for parts in layout.parts):
        return _in_workers(plan, layout, _narrow(data), kept)
    if max(map(len, layout.predicates), default=0) <= _FEW_PREDICATES:
        return sql_answers(plan, layout, data, kept)
    data = _narrow(data)
    for number in range(len(layout.parts)):
        items = [item for item in plan.items if item.measure == number]
        data = _by_predicate(items, layout, data, number, kept)
    return data.select(*kept, *exact_names(plan))


def sql_answers(
    plan: SelectPlan, layout: Layout, data: DataFrame, kept: list[str], before: str | None = None
) -> DataFrame:
    """``evaluate`` by columns of SQL.

    A SHAPLEY_DELTA is the difference from the sums whose names begin with ``before``; without
    these it is this window's attribution, for the caller to subtract the one before.
    """
    program = Program("ids_v")
    texts = _texts(Answers(layout, program.column), plan.items)
    if before is not None:
        then = Answers(layout, lambda name: program.column(f"{before}{name}"))
        changes = [item for item in plan.items if item.kind is ItemKind.DELTA]
        earlier = _texts(then, changes)
        texts |= {i.name: f"({texts[i.name]} - {earlier[i.name]})" for i in changes}
    columns = [f"cast({texts[name]} as double) AS {name}" for name in exact_names(plan)]
    return applied(_narrow(data), program).selectExpr(*kept, *columns)


def _narrow(data: DataFrame) -> DataFrame:
    """The same windows, none of them with more rows than are summed exactly."""
    wide = f"{COUNT} > {MAX_ROWS}L"
    return data.filter(f"CASE WHEN {wide} THEN raise_error({_TOO_WIDE}) IS NULL ELSE true END")


def _texts(answers: Answers, items: Iterable[PlannedItem]) -> dict[str, str]:
    """The items' exact answers as SQL, of a layout whose sums are symbols."""
    texts = {}
    for item in items:
        for name, (value, missing) in answers.columns(item).items():
            # a number that no column takes part in stands for itself
            text = getattr(value, "text", None) or f"double('{float(value)!r}')"
            null = (
                None if missing is None else f"CASE WHEN {missing.text} THEN NULL ELSE {text} END"
            )
            texts[name] = null or text
    return texts


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


def _by_predicate(
    items: list[PlannedItem], layout: Layout, data: DataFrame, number: int, kept: list[str]
) -> DataFrame:
    """The answers of one measure in place of its sums, a row a predicate; other columns stay."""
    parts = layout.parts[number]
    own = {name for item in layout.items(number) for name in item.columns(parts)}
    others = [name for name in data.columns if name not in own and name not in kept]
    program = Program("ids_v")
    answers = Answers(layout, program.column)
    aggregates = _texts(answers, [item for item in items if item.kind is ItemKind.AGGREGATE])
    asked = [item for item in items if item.kind is not ItemKind.AGGREGATE]
    games = {item.game.name: item for item in asked}
    for place, (name, item) in enumerate(games.items()):
        every = ("SHARE", "LIFT")
        games[name] = replace(item, name=f"ids_g{place}", predicate=_ANY, parts=every)
    found = aggregates | _texts(answers, games.values())
    columns = [f"cast({text} as double) AS {name}" for name, text in found.items()]
    if not asked:
        return applied(data, program).selectExpr(*kept, *others, *columns)
    rows = _predicate_rows(layout, data, number, [*kept, *others])
    evaluated = applied(rows, program).selectExpr(*kept, *others, _PREDICATE, *columns)
    folded = [F.expr(f"first({name})").alias(name) for name in [*others, *aggregates]]
    for item in asked:
        sources = item_names(replace(item, name=games[item.game.name].name))
        for name, source in zip(item_names(item), sources, strict=True):
            its = f"max(CASE WHEN {_PREDICATE} = {item.predicate} THEN {source} END)"
            folded.append(F.expr(its).alias(name))
    return evaluated.groupBy(*kept).agg(*folded)


def _predicate_rows(layout: Layout, data: DataFrame, number: int, others: list[str]) -> DataFrame:
    """A row a predicate: its number and its sums, beside the window's."""
    parts = layout.parts[number]
    window, *items = layout.items(number)
    structs = []
    for item in items:
        named = zip(Item(number, _ANY).columns(parts), item.columns(parts), strict=True)
        fields = ", ".join(f"{column} AS `{name}`" for name, column in named)
        structs.append(f"struct({item.predicate} AS {_PREDICATE}, {fields})")
    each = f"inline(array({', '.join(structs)}))"
    return data.selectExpr(*others, *window.columns(parts), each)


def nameless(plan: SelectPlan) -> SelectPlan:
    """The plan with numbers for aliases: inside of Spark no alias meets a column of ours."""
    items = [replace(item, name=f"ids_e{number}") for number, item in enumerate(plan.items)]
    return replace(plan, items=tuple(items))


def item_names(item: PlannedItem) -> list[str]:
    """The columns of an item's exact answer."""
    return [item.name, *(f"{item.name}_{part.lower()}" for part in item.parts)]


def exact_names(plan: SelectPlan) -> list[str]:
    """The columns of the items' exact answers."""
    return [name for item in plan.items for name in item_names(item)]


def output_fields(plan: SelectPlan) -> list[StructField]:
    """The columns of the items with their types, in the order they were asked."""
    fields: list[StructField] = []
    for item in plan.items:
        fields += [StructField(name, DoubleType()) for name in item_names(item)]
        if item.approximate is not None:
            told = ("error", "standard_error") if item.tells_spread else ("error",)
            fields += [StructField(f"{item.name}_{each}", DoubleType()) for each in told]
            fields.append(StructField(f"{item.name}_mechanism", StringType()))
    return fields


def named_output(
    plan: SelectPlan, answers: DataFrame, keys: dict[str, Typed], emit_at: str
) -> DataFrame:
    """The output as users see it: keys, emit_at, n, then the items.

    ``answers`` are those of the ``nameless`` plan.
    """
    columns = []
    for name, (column, typed) in zip(plan.partition_by, keys.items(), strict=True):
        text = f"timestamp_micros({column})" if typed.kind is Kind.TIME else column
        columns.append(F.expr(text).alias(name))
    columns += [F.expr(emit_at).alias("emit_at"), F.col(COUNT).alias("n")]
    for inner, outer in zip(output_fields(nameless(plan)), output_fields(plan), strict=True):
        columns.append(F.col(inner.name).alias(outer.name))
    return answers.select(*columns)
