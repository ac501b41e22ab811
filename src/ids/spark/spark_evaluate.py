"""Compute the items of each window from its sums, with the closed forms of ``ids.games``.

For few predicates, the closed forms are SQL columns. Many predicates would require thousands of
columns, and Spark would spend more time planning than computing. In this case each predicate
becomes a row, and the closed form is written only once:

    one emit, K predicates ─▶ K rows ─▶ the same columns computed for each ─▶ one emit again

Sums that are too wide for SQL are evaluated in the Python workers, on NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from ids.exact import (
    LIMB_BITS,
    Parts,
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
from ids.spark.expression_sql import Typed, spell
from ids.spark.frame import applied, mapped
from ids.spark.spark_prepare import COUNT

_FEW_PREDICATES = 8
_ANY = -1  # stands for the predicate in each row, if there is one row per predicate
_PREDICATE = "ids_item"
_TOO_WIDE = spell(
    f"a window has more than {MAX_ROWS:,} rows, the most that are summed exactly; choose a shorter "
    "window"
)


@dataclass(frozen=True, slots=True)
class Item:
    """The sums of measure ``number`` over the window, or over the rows where ``predicate`` holds.

    A negative number stands for the predicate in each row, if there is one row per predicate.
    """

    number: int
    predicate: int | None

    @property
    def _tag(self) -> str:
        item = "w" if self.predicate is None else "any" if self.predicate < 0 else self.predicate
        return f"{self.number}_{item}"

    @property
    def count(self) -> str:
        """The name of the column with the row count."""
        return f"ids_m{self._tag}"

    def first(self, level: int) -> str:
        """Return the name of the column with the sum of the values' parts at ``level``."""
        return f"ids_a{self._tag}_{level}"

    def second(self, level: int) -> str:
        """Return the name of the column with the sum of the squares' parts at ``level``."""
        return f"ids_b{self._tag}_{level}"

    def columns(self, parts: Parts) -> list[str]:
        """Return the names of all columns with sums of this item."""
        first = [self.first(k) for k in range(parts.levels)]
        return [self.count, *first, *(self.second(k) for k in range(parts.squares))]


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a pane table: the partial sums and the predicates of each measure."""

    parts: tuple[Parts, ...]
    predicates: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, plan: SelectPlan, parts: Sequence[Parts]) -> Layout:
        """Return the layout for the panes of a plan."""
        asked = [
            sorted({i.predicate for i in plan.items if i.measure == n and i.predicate is not None})
            for n in range(len(plan.measures))
        ]
        return cls(tuple(parts), tuple(tuple(each) for each in asked))

    def items(self, number: int) -> list[Item]:
        """Return a measure's item for the window, then one for each predicate."""
        return [Item(number, None), *(Item(number, p) for p in self.predicates[number])]

    def columns(self) -> Iterator[tuple[str, str, int | None]]:
        """Yield the name of each sum, of the same sum over the whole window, and the predicate."""
        for number, parts in enumerate(self.parts):
            window, *_ = items = self.items(number)
            for item in items:
                for name, whole in zip(item.columns(parts), window.columns(parts), strict=True):
                    yield name, whole, item.predicate

    @property
    def sums(self) -> list[str]:
        """The names of all columns with sums."""
        return [COUNT, *(name for name, _, _ in self.columns())]


class Answers:
    """Computes the exact values of the items, each on first use.

    ``column`` returns the sums of a layout by name, as arrays or as SQL operands.
    """

    def __init__(self, layout: Layout, column: Callable[[str], Any]) -> None:
        self._layout, self._column = layout, column
        self._windows: dict[int, Window] = {}
        self._powers: dict[Item, Powers] = {}
        self._attributed: dict[tuple[str, Item], Attributed] = {}

    def columns(self, item: PlannedItem) -> dict[str, tuple[Any, Any]]:
        """Return the columns of an item, each as its values and a mask of NULLs (None: no NULL).

        A SHAPLEY_DELTA is returned as the window's attribution; the caller subtracts the previous
        window's.
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
        """Return the sums as Python integers; works only if the sums are arrays."""
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
    """Return the items' exact values as Arrow columns; works only if the sums are arrays."""
    return {
        name: pa.array(np.broadcast_to(value, windows), mask=missing)
        for item in plan.items
        for name, (value, missing) in answers.columns(item).items()
    }


def evaluate(plan: SelectPlan, layout: Layout, data: DataFrame, kept: list[str]) -> DataFrame:
    """Compute the exact values of a ``nameless`` plan's items from the sums of each window.

    ``data`` has one row per window, with its sums. The ``kept`` columns identify a window and are
    kept in the result.
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
    """Compute the exact values of the items as SQL columns.

    ``before`` is the prefix of the columns with the previous window's sums, which SHAPLEY_DELTA
    requires. If it is None, the column of a SHAPLEY_DELTA contains the window's attribution, from
    which the caller subtracts the previous window's.
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
    """Add a check that raises an error if a window has more rows than can be summed exactly."""
    wide = f"{COUNT} > {MAX_ROWS}L"
    return data.filter(f"CASE WHEN {wide} THEN raise_error({_TOO_WIDE}) IS NULL ELSE true END")


def _texts(answers: Answers, items: Iterable[PlannedItem]) -> dict[str, str]:
    """Return the items' exact values as SQL; works only if the sums are SQL operands."""
    texts = {}
    for item in items:
        for name, (value, missing) in answers.columns(item).items():
            # a constant is a plain number
            text = getattr(value, "text", None) or f"double('{float(value)!r}')"
            if missing is not None:
                text = f"CASE WHEN {missing.text} THEN NULL ELSE {text} END"
            texts[name] = text
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
    """Replace the sums of one measure by its items' values, computed with one row per predicate."""
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
    """Return one row per window and predicate, with the sums of the window and the predicate."""
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
    """Replace the aliases of a plan with numbered names, which cannot clash with other columns."""
    items = [replace(item, name=f"ids_e{number}") for number, item in enumerate(plan.items)]
    return replace(plan, items=tuple(items))


def item_names(item: PlannedItem) -> list[str]:
    """Return the column names of an item's exact values."""
    return [item.name, *(f"{item.name}_{part.lower()}" for part in item.parts)]


def exact_names(plan: SelectPlan) -> list[str]:
    """Return the column names of all items' exact values."""
    return [name for item in plan.items for name in item_names(item)]


def output_fields(plan: SelectPlan) -> list[StructField]:
    """Return the output columns of the items with their types, in the order of the query."""
    fields: list[StructField] = []
    for item in plan.items:
        fields += [StructField(name, DoubleType()) for name in item_names(item)]
        if item.approximate is not None:
            names = ("error", "standard_error") if item.tells_spread else ("error",)
            fields += [StructField(f"{item.name}_{each}", DoubleType()) for each in names]
            fields.append(StructField(f"{item.name}_mechanism", StringType()))
    return fields


def named_output(
    plan: SelectPlan, answers: DataFrame, keys: dict[str, Typed], emit_at: str
) -> DataFrame:
    """Select the output columns: keys, emit_at, n, then the items.

    ``answers`` has the columns of the ``nameless`` plan.
    """
    columns = []
    for name, (column, typed) in zip(plan.partition_by, keys.items(), strict=True):
        text = f"timestamp_micros({column})" if typed.kind is Kind.TIME else column
        columns.append(F.expr(text).alias(name))
    columns += [F.expr(emit_at).alias("emit_at"), F.col(COUNT).alias("n")]
    for inner, outer in zip(output_fields(nameless(plan)), output_fields(plan), strict=True):
        columns.append(F.col(inner.name).alias(outer.name))
    return answers.select(*columns)
