"""Plans scripts: registers predicates, plans each SELECT, and formats EXPLAIN."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from keyword import iskeyword
from typing import Generic, TypeVar

from ids.errors import KindError, ScriptError, SourceError, UnknownNameError, in_script
from ids.games import GAMES, Game, find
from ids.language import parse
from ids.model import (
    Aggregate,
    And,
    Approximate,
    CountWindow,
    Drop,
    Explain,
    Expression,
    Item,
    ItemKind,
    Kind,
    Literal,
    Misread,
    Name,
    Not,
    Or,
    Register,
    Select,
    Show,
    Statement,
    TimeWindow,
    children,
    columns_of,
    extremes_of,
    quoted,
    render,
    span,
)
from ids.predicates import bind, bind_measure, bind_predicate, other_spelling
from ids.source import article, remedy

T = TypeVar("T")
# The kind of each column; None if it has only NULLs.
Kinds = Mapping[str, Kind | None]


def just_text(_: str) -> Misread | None:
    """Return None, because no text column was meant to have another kind."""
    return None


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table.

    kinds        the kind of each column; None if it has only NULLs
    unsupported  columns that cannot be read, and why
    misread      returns which kind a text column was probably meant to have
    """

    kinds: Mapping[str, Kind | None]
    unsupported: Mapping[str, str]
    misread: Callable[[str], Misread | None] = field(default=just_text, compare=False)


@dataclass(frozen=True, slots=True)
class Step:
    """One statement with a result.

    plan        the plan of a SELECT or EXPLAIN
    registered  the predicates registered so far
    """

    statement: Statement
    plan: SelectPlan | None
    registered: tuple[Register, ...]


def planned(script: str, schema_of: Callable[[Register | Select], Schema]) -> Iterator[Step]:
    """Plan a script lazily; yields a step for each SELECT, SHOW and EXPLAIN."""
    with in_script(script):
        yield from _planned(statements_of(script), schema_of)


def statements_of(script: str) -> tuple[Statement, ...]:
    """Parse a script; the currently registered games are available as aggregates."""
    with in_script(script):
        return _parsed(script, tuple(GAMES))


def nothing_asked() -> ScriptError:
    """Return the error for a script without a SELECT, SHOW or EXPLAIN."""
    return ScriptError("the script has no query", hint="end it with a SELECT … EMIT CHANGES")


def _planned(
    statements: Iterable[Statement], schema_of: Callable[[Register | Select], Schema]
) -> Iterator[Step]:
    registry = Registry()
    for statement in statements:
        match statement:
            case Register():
                schema = schema_of(statement)
                registry.register(statement)
                with unsupported_named(schema.unsupported), _misread_named(schema):
                    registry.bound(statement.table, schema.kinds)
            case Drop():
                registry.drop(statement)
            case Show():
                yield Step(statement, None, tuple(registry))
            case Explain(select) | (Select() as select):
                schema = schema_of(select)
                with unsupported_named(schema.unsupported), _misread_named(schema):
                    plan = plan_select(select, schema.kinds, registry)
                _refuse_times_as_text(select, plan.order_by[0], schema)
                yield Step(statement, plan, tuple(registry))


# Parsed scripts are cached, because a service often runs the same few scripts.
_parsed = lru_cache(maxsize=64)(parse)


@contextmanager
def unsupported_named(unsupported: Mapping[str, str]) -> Iterator[None]:
    """Replace the unknown-column error if the column exists but has an unsupported type."""
    try:
        yield
    except UnknownNameError as error:
        for name, what in unsupported.items():
            if error.kind in ("column", "predicate") and name.lower() == error.name.lower():
                raise ScriptError(f"column {name!r} is {what}", error.at, remedy(what)) from error
        raise


@contextmanager
def _misread_named(schema: Schema) -> Iterator[None]:
    """Replace the hint for a text column by one that shows the value that made it text."""
    try:
        yield
    except KindError as error:
        found = [schema.misread(name) for name in error.texts]
        hints = [each.hint for each in found if each is not None]
        if not hints:
            raise
        raise ScriptError(error.fact, error.at, hints[0]) from error


def _refuse_times_as_text(select: Select, name: str, schema: Schema) -> None:
    """Reject ORDER BY on a text column with timestamps, which would sort as text."""
    found = schema.misread(name) if schema.kinds[name] is Kind.TEXT else None
    if found is not None and found.kind is Kind.TIME:
        window = select.window
        at = window.columns_at.get(window.order_by[0], window.at)
        raise ScriptError(f"{name!r} has timestamps as text, which sort as text", at, found.hint)


# The options of ids.sql, ids.spark.sql and ids.spark.start: no keyword table can have these names.
OPTIONS = frozenset(
    {
        *("available_now", "bad_rows", "checkpoint", "lateness", "max_ahead", "null"),
        *("on_progress", "output", "progress", "retain", "schema", "seed", "spark", "tables"),
        *("trigger", "value_range"),
    }
)


def merged_tables(tables: object, named_tables: Mapping[str, object]) -> dict[str, object]:
    """Merge the argument ``tables`` (a dict or None) with tables passed as keyword arguments.

    Raises SourceError if ``tables`` is not a dict, if a number is passed as a table (which is most
    likely a misspelled option), or if a table is passed twice.
    """
    given = {} if tables is None else tables
    if not isinstance(given, Mapping):
        what = article(type(tables).__name__)
        raise SourceError(f"tables is {what}, not a dict by name; give tables={{'events': …}}")
    merged: dict[str, object] = {}
    for name, data in (*given.items(), *named_tables.items()):
        if isinstance(data, bool | int | float):
            raise SourceError(f"{name}={data!r} is neither an option nor a table")
        if name.lower() in map(str.lower, merged):
            raise SourceError(f"table {name!r} is given twice; give it once")
        merged[name] = data
    return merged


class Tables(Generic[T]):
    """The tables of a script, opened on first use; table names are case-insensitive."""

    def __init__(self, tables: Mapping[str, object], opening: Callable[[object, str], T]) -> None:
        self._tables = {name.lower(): (name, data) for name, data in tables.items()}
        self._opening = opening
        self._open: dict[str, T] = {}

    def of(self, statement: Register | Select) -> T:
        """Return the table that a statement uses; raise an error if it was not passed."""
        folded = statement.table.lower()
        if folded not in self._tables:
            known = [given for given, _ in self._tables.values()]
            name = statement.table
            plain = name.isidentifier() and not iskeyword(name) and name not in OPTIONS
            given = f"{name}=…" if plain else f"tables={{{name!r}: …}}"
            raise UnknownNameError("table", name, known, statement.table_at, f"pass it as {given}")
        if folded not in self._open:
            given, data = self._tables[folded]
            self._open[folded] = self._opening(data, given)
        return self._open[folded]


class Registry:
    """The registered predicates of each table, in order; names are case-insensitive."""

    def __init__(self) -> None:
        self._by_table: dict[str, dict[str, Register]] = {}
        self._bound: dict[str, dict[str, Expression]] = {}

    def register(self, statement: Register) -> None:
        """Register a predicate, whose name must be unique within its table."""
        names = self._by_table.setdefault(statement.table.lower(), {})
        if statement.name.lower() in names:
            raise ScriptError(
                f"predicate {statement.name!r} is already registered on {statement.table}",
                statement.at,
                f"DROP PREDICATE {statement.name} ON {statement.table} first",
            )
        names[statement.name.lower()] = statement

    def drop(self, statement: Drop) -> None:
        """Drop the predicate that the statement names."""
        names = self._by_table.get(statement.table.lower(), {})
        if statement.name.lower() not in names:
            known = [r.name for r in names.values()]
            raise UnknownNameError("predicate", statement.name, known, statement.at)
        del names[statement.name.lower()]
        self._bound.pop(statement.table.lower(), None)  # other predicates of the table may use it

    def bound(self, table: str, schema: Kinds) -> Mapping[str, Expression]:
        """Bind the predicates of a table; each may use those registered before it.

        The schema does not change during a script, so only new predicates are bound.
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
    """One item of a SELECT, with the numbers of its measure and predicate in the plan.

    ``asked`` is the predicate as written in the query, before registered names are replaced by
    their conditions. ``approximate`` is the requested sample, if any. If ``tells_spread`` is set,
    the output includes the standard error of the estimate.
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
        """How many of the largest (and of the smallest) values are included exactly."""
        if self.approximate is None or self.game.degree == 0:
            return 0
        return extremes_of(self.approximate.size)

    @property
    def confidence(self) -> float:
        """The confidence level per window that results in the requested level for the item."""
        assert self.approximate is not None
        asked = self.approximate.confidence
        # a change is computed from two windows, and the bounds of both must hold
        return 1.0 - (1.0 - asked) / 2.0 if self.kind is ItemKind.DELTA else asked


@dataclass(frozen=True, slots=True)
class SelectPlan:
    """The plan of one SELECT.

    measures    bound expressions, None for COUNT(*)
    degrees     the highest degree that each measure needs
    predicates  bound conditions, in the order of their signature bits
    seed        the random seed for samples
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
        """The items that are estimated from samples."""
        return tuple(item for item in self.items if item.approximate is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The distinct columns to read."""
        conditions = [*self.predicates, *(m for m in self.measures if m is not None)]
        if self.where is not None:
            conditions.append(self.where)
        read = [*self.order_by, *self.partition_by]
        for condition in conditions:
            read.extend(columns_of(condition))
        return tuple(dict.fromkeys(read))


def plan_select(select: Select, schema: Kinds, registry: Registry) -> SelectPlan:
    """Bind a SELECT to its table's columns and registered predicates."""
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
    """Binds one SELECT, numbering its measures and predicates in order of appearance."""

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
            # COUNT accepts values of any kind
            binding = bind if aggregate.function == "COUNT" else bind_measure
            bound = binding(aggregate.argument, self.schema, table=self.select.table)
        return self.measures.setdefault(bound, len(self.measures))

    def order_by(self) -> tuple[str, ...]:
        window = self.select.window
        names = tuple(resolve(name, self.schema, self.select) for name in window.order_by)
        kind = self.schema[names[0]]
        if isinstance(window.frame, TimeWindow) and kind not in (Kind.TIME, None):
            raise KindError(
                f"RANGE must be ordered by a timestamp, {names[0]!r} is {kind.noun}",
                window.columns_at.get(window.order_by[0], window.at),
                _way_to_order(names[0], kind),
                [names[0]] if kind is Kind.TEXT else [],
            )
        return names


def _way_to_order(name: str, kind: Kind | None) -> str:
    if kind is Kind.NUMBER:
        return f"declare schema='{quoted(name)} EPOCH_SECONDS' if it is a time, or use ROWS"
    return "order by the event time, or use ROWS"


def mechanism_of(
    predicate: Expression, registered: Iterable[str], schema: Iterable[str] = ()
) -> str:
    """Return how a predicate is evaluated: ``marginal``, ``compositional`` or ``inline``."""
    known, columns = tuple(registered), frozenset(schema)
    for node in leaves(predicate):
        if isinstance(node, Name):
            composed = registered_as(node.name, known, columns) is not None
        else:
            composed = isinstance(node, Literal) and isinstance(node.value, bool | None)
        if not composed:
            return "inline"
    return "marginal" if isinstance(predicate, Name) else "compositional"


def leaves(predicate: Expression) -> Iterator[Expression]:
    """Iterate over the operands that a predicate combines with AND, OR and NOT."""
    stack = [predicate]
    while stack:
        node = stack.pop()
        if isinstance(node, And | Or | Not):
            stack.extend(children(node))
        else:
            yield node


def registered_as(name: str, registered: Iterable[str], schema: Iterable[str]) -> str | None:
    """Return the registered predicate that a name refers to, if any.

    As in the binder, a predicate with this exact name is preferred. Otherwise, if a column has this
    exact name, the result is None. Otherwise case is ignored.
    """
    known = tuple(registered)
    if name in known:
        return name
    if name in schema:
        return None
    return next((each for each in known if each.lower() == name.lower()), None)


def resolve(name: str, schema: Iterable[str], select: Select) -> str:
    """Return the exact name of a column, which may differ in case from the name in the query."""
    columns = tuple(schema)
    if name in columns:
        return name
    at = select.window.columns_at.get(name, select.window.at)
    found = other_spelling(name, columns, at, select.table)
    if found is None:
        raise UnknownNameError("column", name, columns, at)
    return found


# The sums kept for each degree, in the paper's notation.
_SUMS = ("m rows", "A = Σ y", "B = Σ y²")
_MECHANISMS = {
    "marginal": "marginal (registered)",
    "compositional": "compositional (combines registered predicates)",
    "inline": "inline (a condition of this query)",
}


def explain(plan: SelectPlan) -> list[str]:
    """Return the output lines of EXPLAIN. O(size of the plan)."""
    lines = [f"read {quoted(plan.table)}: {', '.join(map(quoted, plan.columns))}"]
    if plan.where is not None:
        lines.append(f"keep the rows where {render(plan.where)}")
    lines += _window_lines(plan)
    if plan.predicates:
        several = _counted(len(plan.predicates), "predicate")
        lines.append(f"refine into atoms by {several}, one bit each")
        lines += [f"  bit {bit}: {render(p)}" for bit, p in enumerate(plan.predicates)]
    lines += _sum_lines(plan)
    for item in plan.items:
        lines += [f"{quoted(item.name)} = {_item(item, plan)}"]
    lines.append(f"emit {_emitted(plan)}")
    return lines


def _window_lines(plan: SelectPlan) -> list[str]:
    window = plan.window
    keys = f" per {', '.join(map(quoted, plan.partition_by))}" if plan.partition_by else ""
    order = ", ".join(map(quoted, plan.order_by))
    if isinstance(window, CountWindow):
        newest = "row" if window.size == 1 else f"{window.size:,} rows"
        return [f"window: the newest {newest}{keys}, ordered by {order}"]
    rows = f"the rows in (t - {span(window.duration)}, t]{keys}, ordered by {order}"
    assert window.slide is not None
    return [f"window: {rows}", f"  t: every multiple of {span(window.slide)} since 1970 UTC"]


def _sum_lines(plan: SelectPlan) -> list[str]:
    lines = []
    for measure, degree in zip(plan.measures, plan.degrees, strict=True):
        kept = _SUMS[: degree + 1] if degree <= 2 else (_SUMS[0], f"Σ y … Σ y^{degree}")
        of = "" if measure is None else f" of y = {render(measure)}"
        lines.append(f"keep exact sums per atom: {', '.join(kept)}{of}")
    return lines


def _item(item: PlannedItem, plan: SelectPlan) -> str:
    measure = plan.measures[item.measure]
    aggregate = f"{item.game.name}({'*' if measure is None else render(measure)})"
    if item.predicate is None:
        return aggregate
    parts = f" with {' and '.join(item.parts).lower()}" if item.parts else ""
    asked = f"{item.kind.value}({aggregate}, {item.asked}){parts}"
    change = "change since the previous slide, " if item.kind is ItemKind.DELTA else ""
    if item.approximate is not None:
        size, percent = item.approximate.size, 100.0 * item.approximate.confidence
        rows = _counted(size, "row")
        return f"{asked}: {change}sample of {rows}, bound at {percent:.12g} %"
    return f"{asked}: {change}bit {item.predicate}, {_MECHANISMS[item.mechanism]}, exact"


def _emitted(plan: SelectPlan) -> str:
    answer = "answer per key" if plan.partition_by else "answer"
    if plan.final:
        return f"only the last {answer}"
    if isinstance(plan.window, CountWindow):
        slide = plan.window.slide
        return f"one {answer} after every {'row' if slide == 1 else f'{slide:,} rows'}"
    return f"one {answer} at every t whose window is not empty"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
