"""A script, statement by statement: what is registered, and the plan of every SELECT."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from keyword import iskeyword
from typing import Generic, TypeVar

from ids.errors import KindError, ScriptError, SourceError, UnknownNameError, in_script
from ids.games import GAMES
from ids.language import parse
from ids.model import Drop, Explain, Kind, Misread, Register, Select, Show, Statement
from ids.plan.select import Registry, SelectPlan, plan_select
from ids.source import article, remedy

T = TypeVar("T")


def just_text(_: str) -> Misread | None:
    """No column of text was meant for anything else."""
    return None


@dataclass(frozen=True, slots=True)
class Schema:
    """A table's columns: what each holds (None: nothing), and why others are not read.

    ``misread`` tells of a column of text what it seems to have been meant for.
    """

    kinds: Mapping[str, Kind | None]
    unsupported: Mapping[str, str]
    misread: Callable[[str], Misread | None] = field(default=just_text, compare=False)


@dataclass(frozen=True, slots=True)
class Step:
    """One statement that gives something.

    plan        of a SELECT, or of the one EXPLAIN asks about
    registered  the predicates that are registered by then
    """

    statement: Statement
    plan: SelectPlan | None
    registered: tuple[Register, ...]


def planned(script: str, schema_of: Callable[[Register | Select], Schema]) -> Iterator[Step]:
    """Plan a script; yields a step for each SELECT, SHOW and EXPLAIN, when it is asked for."""
    with in_script(script):
        yield from _planned(statements_of(script), schema_of)


def statements_of(script: str) -> tuple[Statement, ...]:
    """The statements of a script, with the aggregates that are known now."""
    with in_script(script):
        return _parsed(script, tuple(GAMES))


def nothing_asked() -> ScriptError:
    """The error for a script without a SELECT, SHOW or EXPLAIN."""
    return ScriptError("the script asks for nothing", hint="end it with a SELECT … EMIT CHANGES")


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


# A service runs the same few scripts again and again.
_parsed = lru_cache(maxsize=64)(parse)


@contextmanager
def unsupported_named(unsupported: Mapping[str, str]) -> Iterator[None]:
    """A column that is there, but of a type IDS does not read, is no unknown column."""
    try:
        yield
    except UnknownNameError as error:
        for name, what in unsupported.items():
            if error.kind in ("column", "predicate") and name.lower() == error.name.lower():
                raise ScriptError(f"column {name!r} is {what}", error.at, remedy(what)) from error
        raise


@contextmanager
def _misread_named(schema: Schema) -> Iterator[None]:
    """A column of text where another kind is needed: say which value made it text."""
    try:
        yield
    except KindError as error:
        found = [schema.misread(name) for name in error.texts]
        hints = [each.hint for each in found if each is not None]
        if not hints:
            raise
        raise ScriptError(error.fact, error.at, hints[0]) from error


def _refuse_times_as_text(select: Select, name: str, schema: Schema) -> None:
    """Times that were read as text would sort as text."""
    found = schema.misread(name) if schema.kinds[name] is Kind.TEXT else None
    if found is not None and found.kind is Kind.TIME:
        window = select.window
        at = window.columns_at.get(window.order_by[0], window.at)
        raise ScriptError(f"{name!r} holds times as text, which sort as text", at, found.hint)


# The options of ids.sql, ids.spark.sql and ids.spark.start: no keyword table can have these names.
OPTIONS = frozenset(
    {
        *("available_now", "bad_rows", "checkpoint", "lateness", "max_ahead", "null"),
        *("on_progress", "once", "output", "progress", "reach", "retain", "schema", "seed"),
        *("spark", "tables", "trigger"),
    }
)


def merged_tables(tables: object, named_tables: Mapping[str, object]) -> dict[str, object]:
    """Merge the argument ``tables`` (a dict or None) with the tables given as keyword arguments.

    Raises SourceError if ``tables`` is not a dict, or if a table is given twice.
    """
    given = {} if tables is None else tables
    if not isinstance(given, Mapping):
        what = article(type(tables).__name__)
        raise SourceError(f"tables is {what}, not a dict by name; give tables={{'events': …}}")
    merged: dict[str, object] = {}
    for name, data in (*given.items(), *named_tables.items()):
        if name.lower() in map(str.lower, merged):
            raise SourceError(f"table {name!r} is given twice; give it once")
        merged[name] = data
    return merged


class Tables(Generic[T]):
    """The tables of a script, opened when first asked for; names fold case."""

    def __init__(self, tables: Mapping[str, object], opening: Callable[[object, str], T]) -> None:
        self._tables = {name.lower(): (name, data) for name, data in tables.items()}
        self._opening = opening
        self._open: dict[str, T] = {}

    def of(self, statement: Register | Select) -> T:
        """The table a statement speaks of; one nobody gave is refused."""
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
