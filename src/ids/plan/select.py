"""The plan of a SELECT: what to read, what to keep, how each item is answered; and EXPLAIN."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from ids.errors import KindError, ScriptError, UnknownNameError
from ids.games import Game, find
from ids.model import (
    Aggregate,
    And,
    Approximate,
    CountWindow,
    Drop,
    Expression,
    Item,
    ItemKind,
    Kind,
    Literal,
    Name,
    Not,
    Or,
    Register,
    Select,
    TimeWindow,
    children,
    columns_of,
    extremes_of,
    quoted,
    render,
    span,
)
from ids.predicates import bind, bind_measure, bind_predicate, other_spelling

# What each column holds; None for nothing.
Kinds = Mapping[str, Kind | None]


class Registry:
    """Registered predicates by table, in the order they were registered; names fold case."""

    def __init__(self) -> None:
        self._by_table: dict[str, dict[str, Register]] = {}
        self._bound: dict[str, dict[str, Expression]] = {}

    def register(self, statement: Register) -> None:
        """Add a predicate; a name is taken once per table."""
        names = self._by_table.setdefault(statement.table.lower(), {})
        if statement.name.lower() in names:
            raise ScriptError(
                f"predicate {statement.name!r} is already registered on {statement.table}",
                statement.at,
                f"DROP PREDICATE {statement.name} ON {statement.table} first",
            )
        names[statement.name.lower()] = statement

    def drop(self, statement: Drop) -> None:
        """Forget a predicate."""
        names = self._by_table.get(statement.table.lower(), {})
        if statement.name.lower() not in names:
            known = [r.name for r in names.values()]
            raise UnknownNameError("predicate", statement.name, known, statement.at)
        del names[statement.name.lower()]
        self._bound.pop(statement.table.lower(), None)  # others may have been written with it

    def bound(self, table: str, schema: Kinds) -> Mapping[str, Expression]:
        """The table's predicates, bound to its columns; each may use those before it.

        A table keeps its schema while a script runs: only what is new since the last call is bound.
        """
        bound = self._bound.setdefault(table.lower(), {})
        registered = self._by_table.get(table.lower(), {}).values()
        for statement in islice(registered, len(bound), None):
            bound[statement.name] = bind_predicate(
                statement.condition, schema, bound, columns_first=True, table=table
            )
        return bound

    def __iter__(self) -> Iterator[Register]:
        for names in self._by_table.values():
            yield from names.values()


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


def plan_select(select: Select, schema: Kinds, registry: Registry) -> SelectPlan:
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
    schema: Kinds
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
                f"RANGE needs a timestamp to order by, {names[0]!r} is {kind.noun}",
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
    columns = tuple(schema)
    if name in columns:
        return name
    at = select.window.columns_at.get(name, select.window.at)
    found = other_spelling(name, columns, at, select.table)
    if found is None:
        raise UnknownNameError("column", name, columns, at)
    return found


# What the state holds for every power sum up to the degree, in the paper's letters.
_SUMS = ("m rows", "A = Σ y", "B = Σ y²")
_MECHANISMS = {
    "marginal": "marginal (registered)",
    "compositional": "compositional (of registered predicates)",
    "inline": "inline (a condition of this query)",
}


def explain(plan: SelectPlan) -> list[str]:
    """The plan in words; O(size of the plan)."""
    lines = [f"read {quoted(plan.table)}: {', '.join(map(quoted, plan.columns))}"]
    if plan.where is not None:
        lines.append(f"keep the rows where {render(plan.where)}")
    lines += _window_lines(plan)
    if plan.predicates:
        several = _counted(len(plan.predicates), "predicate")
        lines.append(f"refine into atoms by {several}, a bit each")
        lines += [f"  bit {bit}: {render(p)}" for bit, p in enumerate(plan.predicates)]
    lines += _sum_lines(plan)
    for item in plan.items:
        lines += [f"{quoted(item.name)} = {_item(item, plan)}"]
    lines.append(f"emit {_emitted(plan)}")
    return lines


def _window_lines(plan: SelectPlan) -> list[str]:
    window = plan.window
    keys = f" of each {', '.join(map(quoted, plan.partition_by))}" if plan.partition_by else ""
    order = ", ".join(map(quoted, plan.order_by))
    if isinstance(window, CountWindow):
        newest = "row" if window.size == 1 else f"{window.size:,} rows"
        return [f"window: the newest {newest}{keys}, ordered by {order}"]
    held = f"the rows{keys} in (t - {span(window.duration)}, t], ordered by {order}"
    assert window.slide is not None
    return [f"window: {held}", f"  t: every whole {_each(span(window.slide))} since 1970 UTC"]


def _sum_lines(plan: SelectPlan) -> list[str]:
    lines = []
    for measure, degree in zip(plan.measures, plan.degrees, strict=True):
        kept = _SUMS[: degree + 1] if degree <= 2 else (_SUMS[0], f"Σ y … Σ y^{degree}")
        of = "" if measure is None else f" of y = {render(measure)}"
        lines.append(f"keep exactly, for each atom: {', '.join(kept)}{of}")
    return lines


def _item(item: PlannedItem, plan: SelectPlan) -> str:
    measure = plan.measures[item.measure]
    aggregate = f"{item.game.name}({'*' if measure is None else render(measure)})"
    if item.predicate is None:
        return aggregate
    parts = f" with {' and '.join(item.parts).lower()}" if item.parts else ""
    asked = f"{item.kind.value}({aggregate}, {item.asked}){parts}"
    change = "the change since one slide before, " if item.kind is ItemKind.DELTA else ""
    if item.approximate is not None:
        size, percent = item.approximate.size, 100.0 * item.approximate.confidence
        rows = _counted(size, "row")
        return f"{asked}: {change}sample of {rows}, bound at {percent:.12g} %"
    return f"{asked}: {change}bit {item.predicate}, {_MECHANISMS[item.mechanism]}, exact"


def _emitted(plan: SelectPlan) -> str:
    each = " of each key" if plan.partition_by else ""
    if plan.final:
        return f"the last answer{each}"
    if isinstance(plan.window, CountWindow):
        slide = plan.window.slide
        return f"an answer after every {_each(_counted(slide, 'row'))}{each}"
    return f"an answer{each} at every t whose window is not empty"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _each(counted: str) -> str:
    """``1 row`` as it stands after "every"."""
    return counted.removeprefix("1 ")
