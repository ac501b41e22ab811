"""The predicate registry: names, the tables they speak of, and their conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from ids.errors import ScriptError, UnknownNameError
from ids.model.expression import Expression
from ids.model.query import Drop, Register
from ids.model.table import Kind
from ids.predicates.binding import bind_predicate

__all__ = ["Registry"]


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

    def bound(self, table: str, schema: Mapping[str, Kind | None]) -> Mapping[str, Expression]:
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
