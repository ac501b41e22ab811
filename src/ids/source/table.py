"""Source: a table whose columns are read when they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from ids.errors import DataError, IdsError, UnknownNameError
from ids.model.table import Kind, Table

__all__ = ["DISAGREEING", "INDEX", "REPEATED", "Source", "TableSource", "refusal", "remedy"]

DISAGREEING = ", but "  # between what a column holds in one file and in another
INDEX = "the index of the DataFrame"
REPEATED = "there more than once"


class Source(Protocol):
    """What the engine knows of a table before, and while, it reads it.

    schema       the columns IDS can read, under their exact names
    unsupported  the others, each with what it is instead (``list<string>``)
    untyped      those of the schema that hold nothing and are of no type: only NULLs, or no rows
    rows         how many there are
    """

    @property
    def schema(self) -> Mapping[str, Kind]: ...

    @property
    def unsupported(self) -> Mapping[str, str]: ...

    @property
    def untyped(self) -> Collection[str]: ...

    @property
    def rows(self) -> int: ...

    def read(self, columns: Iterable[str]) -> Table:
        """These columns only; what is not asked for is not converted."""
        ...

    def where(self, row: int) -> str:
        """The name a person has for ``row`` (an index from 0): counted from 1, with its file."""
        ...


class TableSource:
    """A table that is columns already: nothing is converted."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.schema = {name: column.kind for name, column in table.columns.items()}
        self.unsupported: dict[str, str] = {}
        self.untyped: frozenset[str] = frozenset()
        self.rows = table.rows

    def read(self, columns: Iterable[str]) -> Table:
        names = list(dict.fromkeys(columns))
        for name in names:
            if name not in self.schema:
                raise refusal(name, self)
        return Table({name: self._table.columns[name] for name in names}, self.rows)

    def where(self, row: int) -> str:
        return f"row {row + 1}"


def refusal(name: str, source: Source) -> IdsError:
    """Why ``source`` cannot give the column ``name``."""
    if name in source.unsupported:
        what = source.unsupported[name]
        return DataError(f"column {name!r} is {what}; {remedy(what)}")
    return UnknownNameError("column", name, source.schema)


def remedy(what: str) -> str:
    """What to do about a column that IDS does not read."""
    if what == INDEX:
        return "pass df.reset_index()"
    if what == REPEATED:
        return "rename all but one"
    if DISAGREEING in what:
        return "write it the same way in all files"
    return "IDS reads numbers, text, booleans and timestamps"
