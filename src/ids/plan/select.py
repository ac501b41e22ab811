"""A SELECT against a table: what to read, what to keep, and how each item will be answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ids.errors import KindError, ScriptError, UnknownNameError
from ids.games import Game, find
from ids.model.expression import And, Expression, Literal, Name, Not, Or, children, columns_of
from ids.model.query import Aggregate, Approximate, Item, ItemKind, Select
from ids.model.rendering import quoted, render
from ids.model.sampling import extremes_of
from ids.model.table import Kind
from ids.model.window import CountWindow, TimeWindow
from ids.plan.registry import Registry
from ids.predicates.binding import bind, bind_measure, bind_predicate
from ids.predicates.kinds import noun

__all__ = ["PlannedItem", "SelectPlan", "mechanism_of", "plan_select", "registered_as", "resolve"]

Schema = Mapping[str, Kind | None]


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """One item: its game over measure number ``measure``, its predicate number ``predicate``.

    ``asked`` is the predicate as the query names it, before registered names are written out;
    ``approximate`` the sample it is answered from, if the query says so; ``tells_spread`` whether
    the estimate's standard error is wanted beside the bound.
    """

    kind: ItemKind
    game: Game
    measure: int
    predicate: int | None
    name: str
    parts: tuple[str, ...]
    mechanism: str
    asked: str = ""
    approximate: Approximate | None = None
    tells_spread: bool = False

    @property
    def extremes(self) -> int:
        """How many rows of the largest values, and of the smallest, a sample takes whole."""
        if self.approximate is None or self.game.degree == 0:
            return 0
        return extremes_of(self.approximate.size)

    @property
    def confidence(self) -> float:
        """At which one window's bound must hold, so that the item's bound holds as asked."""
        assert self.approximate is not None
        asked = self.approximate.confidence
        # a change is of two windows, and neither may be out of its bound
        return 1.0 - (1.0 - asked) / 2.0 if self.kind is ItemKind.DELTA else asked


@dataclass(frozen=True, slots=True)
class SelectPlan:
    """Everything a run needs to know before it reads a row.

    measures    bound expressions, None for COUNT(*); each with the highest degree asked of it
    predicates  bound conditions, each one signature bit for the life of the query
    seed        what samples are drawn by, where an item asks for one
    """

    table: str
    items: tuple[PlannedItem, ...]
    measures: tuple[Expression | None, ...]
    degrees: tuple[int, ...]
    predicates: tuple[Expression, ...]
    where: Expression | None
    order_by: tuple[str, ...]
    partition_by: tuple[str, ...]
    window: CountWindow | TimeWindow
    final: bool
    seed: int = 0

    @property
    def sampled(self) -> tuple[PlannedItem, ...]:
        """The items that are answered from samples."""
        return tuple(item for item in self.items if item.approximate is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read, each once."""
        conditions = [*self.predicates, *(m for m in self.measures if m is not None)]
        if self.where is not None:
            conditions.append(self.where)
        read = [*self.order_by, *self.partition_by]
        for condition in conditions:
            read.extend(columns_of(condition))
        return tuple(dict.fromkeys(read))


def plan_select(select: Select, schema: Schema, registry: Registry) -> SelectPlan:
    """Bind a SELECT to its table's columns and registered predicates.

    A column without a kind holds nothing, and may stand wherever NULL may.
    """
    planner = _Planner(select, schema, registry.bound(select.table, schema))
    items = tuple(planner.item(item, number) for number, item in enumerate(select.items, start=1))
    degrees = [0] * len(planner.measures)
    for planned in items:
        degrees[planned.measure] = max(degrees[planned.measure], planned.game.degree)
    return SelectPlan(
        table=select.table,
        items=items,
        measures=tuple(planner.measures),
        degrees=tuple(degrees),
        predicates=tuple(planner.predicates),
        where=None if select.where is None else planner.condition(select.where),
        order_by=planner.order_by(),
        partition_by=tuple(resolve(n, schema, select) for n in select.window.partition_by),
        window=select.window.frame,
        final=select.emit.value == "FINAL",
    )


@dataclass(frozen=True, slots=True)
class _Planner:
    """One SELECT being bound; measures and predicates are numbered as they are met."""

    select: Select
    schema: Schema
    registered: Mapping[str, Expression]
    measures: dict[Expression | None, int] = field(default_factory=dict)
    predicates: dict[Expression, int] = field(default_factory=dict)

    def condition(self, expression: Expression) -> Expression:
        return bind_predicate(expression, self.schema, self.registered, table=self.select.table)

    def item(self, item: Item, number: int) -> PlannedItem:
        predicate, mechanism, asked = None, "aggregate", ""
        if item.predicate is not None:
            condition = self.condition(item.predicate)
            predicate = self.predicates.setdefault(condition, len(self.predicates))
            mechanism = mechanism_of(item.predicate, self.registered, self.schema)
            asked = render(item.predicate)
        return PlannedItem(
            kind=item.kind,
            game=find(item.aggregate.function),
            measure=self._measure(item.aggregate),
            predicate=predicate,
            name=item.alias or f"expr_{number}",
            parts=item.parts,
            mechanism=mechanism,
            asked=asked,
            approximate=item.approximate,
        )

    def _measure(self, aggregate: Aggregate) -> int:
        bound = None
        if aggregate.argument is not None:
            # counting asks only whether there is a value, of whatever kind
            binding = bind if aggregate.function == "COUNT" else bind_measure
            bound = binding(aggregate.argument, self.schema, table=self.select.table)
        return self.measures.setdefault(bound, len(self.measures))

    def order_by(self) -> tuple[str, ...]:
        window = self.select.window
        names = tuple(resolve(name, self.schema, self.select) for name in window.order_by)
        kind = self.schema[names[0]]
        if isinstance(window.frame, TimeWindow) and kind not in (Kind.TIME, None):
            raise KindError(
                f"RANGE needs a timestamp to order by, {names[0]!r} is {noun(kind)}",
                window.columns_at.get(window.order_by[0], window.at),
                _way_to_order(names[0], kind),
                [names[0]] if kind is Kind.TEXT else [],
            )
        return names


def _way_to_order(name: str, kind: Kind | None) -> str:
    if kind is Kind.NUMBER:
        return f"declare schema='{quoted(name)} EPOCH_SECONDS' if it is one, or use ROWS"
    return "order by the event time, or use ROWS"


def mechanism_of(
    predicate: Expression, registered: Iterable[str], schema: Iterable[str] = ()
) -> str:
    """How a predicate is answered: ``marginal``, ``compositional`` or ``inline``."""
    known, columns = tuple(registered), frozenset(schema)
    if isinstance(predicate, Name) and registered_as(predicate.name, known, columns):
        return "marginal"
    stack = [predicate]
    while stack:
        node = stack.pop()
        if isinstance(node, And | Or | Not):
            stack.extend(children(node))
        elif not (
            (isinstance(node, Name) and registered_as(node.name, known, columns))
            or (isinstance(node, Literal) and isinstance(node.value, bool | None))
        ):
            return "inline"
    return "compositional"


def registered_as(name: str, registered: Iterable[str], schema: Iterable[str]) -> str | None:
    """The registered predicate a name means, if it means one.

    Binding's own order: spelled exactly, a column spelled exactly, then whatever the case.
    """
    known = tuple(registered)
    if name in known:
        return name
    if name in schema:
        return None
    return next((each for each in known if each.lower() == name.lower()), None)


def resolve(name: str, schema: Iterable[str], select: Select) -> str:
    """A column's exact spelling: as written, or the one that differs only in case."""
    columns, window = tuple(schema), select.window
    if name in columns:
        return name
    at = window.columns_at.get(name, window.at)
    alike = [column for column in columns if column.lower() == name.lower()]
    if len(alike) > 1:
        hint = "write " + " or ".join(sorted(alike))
        raise ScriptError(f"{name!r} is ambiguous in {select.table}", at, hint)
    if not alike:
        raise UnknownNameError("column", name, columns, at)
    return alike[0]
