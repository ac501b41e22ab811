"""A SELECT against a table: what to read, what to keep, and how each item will be answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ids.errors import ScriptError, UnknownNameError
from ids.games import Game, find
from ids.model.expression import And, Expression, Literal, Name, Not, Or, children, columns_of
from ids.model.query import Item, ItemKind, Select
from ids.model.rendering import render
from ids.model.table import Kind
from ids.model.window import CountWindow, TimeWindow
from ids.plan.registry import Registry
from ids.predicates.binding import bind, bind_measure, bind_predicate

__all__ = ["PlannedItem", "SelectPlan", "explain", "mechanism_of", "plan_select", "resolve"]


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """One item: its game over measure number ``measure``, its predicate number ``predicate``."""

    kind: ItemKind
    game: Game
    measure: int
    predicate: int | None
    name: str
    parts: tuple[str, ...]
    mechanism: str


@dataclass(frozen=True, slots=True)
class SelectPlan:
    """Everything a run needs to know before it reads a row.

    measures    bound expressions, None for COUNT(*); each with the highest degree asked of it
    predicates  bound conditions, each one signature bit for the life of the query
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


def plan_select(select: Select, schema: Mapping[str, Kind], registry: Registry) -> SelectPlan:
    """Bind a SELECT to its table's columns and registered predicates."""
    registered = registry.bound(select.table, schema)
    measures: dict[Expression | None, int] = {}
    predicates: dict[Expression, int] = {}
    items = []
    for number, item in enumerate(select.items, start=1):
        items.append(_plan_item(item, number, schema, registered, measures, predicates))
    degrees = [0] * len(measures)
    for planned in items:
        degrees[planned.measure] = max(degrees[planned.measure], planned.game.degree)
    where = select.where
    order_by = tuple(resolve(name, schema, select) for name in select.window.order_by)
    if isinstance(select.window.frame, TimeWindow) and schema[order_by[0]] is not Kind.TIME:
        raise ScriptError(
            f"RANGE needs a timestamp to order by; {order_by[0]!r} is {schema[order_by[0]].value}",
            select.window.at,
            "order by the event time, or use ROWS",
        )
    return SelectPlan(
        table=select.table,
        items=tuple(items),
        measures=tuple(measures),
        degrees=tuple(degrees),
        predicates=tuple(predicates),
        where=None if where is None else bind_predicate(where, schema, registered),
        order_by=order_by,
        partition_by=tuple(resolve(n, schema, select) for n in select.window.partition_by),
        window=select.window.frame,
        final=select.emit.value == "FINAL",
    )


def _plan_item(
    item: Item,
    number: int,
    schema: Mapping[str, Kind],
    registered: Mapping[str, Expression],
    measures: dict[Expression | None, int],
    predicates: dict[Expression, int],
) -> PlannedItem:
    if item.approximate is not None:
        raise ScriptError(
            "APPROXIMATE answers are not available in this version",
            item.approximate.at,
            "leave the clause out: the exact answer costs no more in a continuous query",
        )
    argument = item.aggregate.argument
    # counting asks only whether there is a value, of whatever kind
    binding = bind if item.aggregate.function == "COUNT" else bind_measure
    bound = None if argument is None else binding(argument, schema)
    measure = measures.setdefault(bound, len(measures))
    predicate = None
    mechanism = "aggregate"
    if item.predicate is not None:
        condition = bind_predicate(item.predicate, schema, registered)
        predicate = predicates.setdefault(condition, len(predicates))
        mechanism = mechanism_of(item.predicate, registered)
    return PlannedItem(
        kind=item.kind,
        game=find(item.aggregate.function),
        measure=measure,
        predicate=predicate,
        name=item.alias or f"expr_{number}",
        parts=item.parts,
        mechanism=mechanism,
    )


def mechanism_of(predicate: Expression, registered: Iterable[str]) -> str:
    """How a predicate is answered: ``marginal``, ``compositional`` or ``inline``."""
    known = {name.lower() for name in registered}
    if isinstance(predicate, Name) and predicate.name.lower() in known:
        return "marginal"
    stack = [predicate]
    while stack:
        node = stack.pop()
        if isinstance(node, And | Or | Not):
            stack.extend(children(node))
        elif not (
            (isinstance(node, Name) and node.name.lower() in known)
            or (isinstance(node, Literal) and isinstance(node.value, bool | None))
        ):
            return "inline"
    return "compositional"


def resolve(name: str, schema: Mapping[str, Kind], select: Select) -> str:
    """A column's exact spelling: as written, or the one that differs only in case."""
    if name in schema:
        return name
    folded = [column for column in schema if column.lower() == name.lower()]
    if len(folded) != 1:
        raise UnknownNameError("column", name, schema, select.window.at)
    return folded[0]


def explain(plan: SelectPlan) -> list[str]:
    """The plan in words, one line a step, in the order a row meets them."""
    lines = [f"read {plan.table}: {', '.join(plan.columns)}"]
    if plan.where is not None:
        lines.append(f"keep rows where {render(plan.where)}")
    lines.append(_window_line(plan))
    lines.append(f"refine by {len(plan.predicates)} predicates into atoms")
    lines += [f"  bit {k}: {render(p)}" for k, p in enumerate(plan.predicates)]
    for measure, degree in zip(plan.measures, plan.degrees, strict=True):
        what = "rows" if measure is None else render(measure)
        kept = ["m", "A", "B"][: degree + 1] if degree <= 2 else ["m", f"P_1 … P_{degree}"]
        lines.append(f"sum {what}: {', '.join(kept)} per atom, exactly")
    lines += [_item_line(item, plan) for item in plan.items]
    lines.append("emit the last answer" if plan.final else "emit every answer")
    return lines


def _window_line(plan: SelectPlan) -> str:
    window = plan.window
    if isinstance(window, CountWindow):
        frame = f"the {window.size:,} most recent rows, every {window.slide:,}"
    else:
        frame = f"({window.duration:,} µs] of rows, every {window.slide:,} µs"
    keys = f", for each {', '.join(plan.partition_by)}" if plan.partition_by else ""
    return f"window by {', '.join(plan.order_by)}: {frame}{keys}"


def _item_line(item: PlannedItem, plan: SelectPlan) -> str:
    measure = plan.measures[item.measure]
    over = "*" if measure is None else render(measure)
    line = f"{item.name} = {item.kind.value} {item.game.name}({over})"
    if item.predicate is None:
        return f"{item.name} = {item.game.name}({over}) of the window"
    parts = f" with {', '.join(item.parts).lower()}" if item.parts else ""
    return f"{line}, bit {item.predicate}, {item.mechanism}, exact{parts}"
