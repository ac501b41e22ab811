"""Plan a script, statement by statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Generic, TypeVar

from ids.errors import KindError, ScriptError, UnknownNameError, in_script
from ids.games import GAMES
from ids.language import parse
from ids.model import Drop, Explain, Kind, Misread, Register, Select, Show, Statement
from ids.plan.select import Registry, SelectPlan, plan_select
from ids.source import remedy

T = TypeVar("T")


def just_text(_: str) -> Misread | None:
    """Return None: no text column was meant to have another kind."""
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
    """Parse a script, with the games that are registered now as aggregates."""
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


# A service often runs the same few scripts.
_parsed = lru_cache(maxsize=64)(parse)


@contextmanager
def unsupported_named(unsupported: Mapping[str, str]) -> Iterator[None]:
    """Replace the error for an unknown column if the column exists, but has an unsupported type."""
    try:
        yield
    except UnknownNameError as error:
        for name, what in unsupported.items():
            if error.kind in ("column", "predicate") and name.lower() == error.name.lower():
                raise ScriptError(f"column {name!r} is {what}", error.at, remedy(what)) from error
        raise


@contextmanager
def _misread_named(schema: Schema) -> Iterator[None]:
    """Replace the hint for a text column by one that names the value that made it text."""
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


class Tables(Generic[T]):
    """The tables of a script, opened on first use; their names are case-insensitive."""

    def __init__(self, tables: Mapping[str, object], opening: Callable[[object, str], T]) -> None:
        self._tables = {name.lower(): (name, data) for name, data in tables.items()}
        self._opening = opening
        self._open: dict[str, T] = {}

    def of(self, statement: Register | Select) -> T:
        """Return the table of a statement; raise an error if it was not passed."""
        folded = statement.table.lower()
        if folded not in self._tables:
            known = [given for given, _ in self._tables.values()]
            name = statement.table
            given = f"{name}=…" if name.isidentifier() else f"**{{{name!r}: …}}"
            raise UnknownNameError("table", name, known, statement.table_at, f"pass it as {given}")
        if folded not in self._open:
            given, data = self._tables[folded]
            self._open[folded] = self._opening(data, given)
        return self._open[folded]
