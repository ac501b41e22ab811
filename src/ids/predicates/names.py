"""Names: which column or registered predicate an identifier means, as Spark resolves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ids.errors import ScriptError, UnknownNameError
from ids.model.expression import Column, Expression, Literal, Name
from ids.model.rendering import quoted
from ids.model.table import Kind

__all__ = ["Scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns of one table and the predicates registered on it.

    The exact spelling comes first, then a spelling that differs only in case. Among equals a
    registered predicate hides the column of its name, unless ``columns_first``. A column without
    a kind holds nothing: it is NULL, and as such of any kind.
    """

    schema: Mapping[str, Kind | None]
    registered: Mapping[str, Expression]
    columns_first: bool
    table: str

    @property
    def names(self) -> list[str]:
        """Every name that has a meaning here."""
        return [*self.schema, *self.registered]

    def resolve(self, name: Name, *, condition: bool = False) -> tuple[Expression, Kind | None]:
        """What the name stands for, and its kind. O(1) when spelled exactly, else O(names).

        ``condition`` says that it stands where a condition is meant, so it may be a predicate.
        """
        rooms: list[Mapping[str, object]] = [self.registered, self.schema]
        if self.columns_first:
            rooms.reverse()
        for room in rooms:
            if name.name in room:
                return self._found(name, name.name, room is self.schema)
        for room in rooms:
            spelling = self._other_case(name, room)
            if spelling is not None:
                return self._found(name, spelling, room is self.schema)
        prefix = f"{self.table}."
        if self.table and name.name.lower().startswith(prefix.lower()):
            bare = Name(name.name[len(prefix) :], name.at)
            return Scope(self.schema, {}, True, "").resolve(bare)
        if condition:
            raise self._unknown_predicate(name)
        raise UnknownNameError("column", name.name, self.names, name.at)

    def _unknown_predicate(self, name: Name) -> UnknownNameError:
        """The error of a name that is no condition; only a script's table has a name."""
        conditions = [n for n, kind in self.schema.items() if kind in (Kind.BOOLEAN, None)]
        register = f"register({name.name!r}, …) first"
        if self.table:
            register = f"REGISTER PREDICATE {quoted(name.name)} AS (…) ON {self.table} first"
        known = [*conditions, *self.registered]
        return UnknownNameError("predicate", name.name, known, name.at, register)

    def _found(self, name: Name, spelling: str, column: bool) -> tuple[Expression, Kind | None]:
        if column and self.schema[spelling] is None:
            return Literal(None, name.at), None
        if column:
            return Column(spelling, name.at), self.schema[spelling]
        return self.registered[spelling], Kind.BOOLEAN

    def _other_case(self, name: Name, room: Mapping[str, object]) -> str | None:
        wanted = name.name.lower()
        alike = [known for known in room if known.lower() == wanted]
        if len(alike) > 1:
            where = f" in {self.table}" if self.table else ""
            raise ScriptError(
                f"{name.name!r} is ambiguous{where}", name.at, "write " + " or ".join(sorted(alike))
            )
        return alike[0] if alike else None
