"""A table some of whose columns are declared: read as it is, then converted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from ids.model.table import ColumnData, Kind, Misread, Table
from ids.source.conversion import converted, fitting_types, kind_of_type
from ids.source.declared import unfit_reason
from ids.source.misread import misread
from ids.source.table import Source, refusal

__all__ = ["Retyped", "misread_of", "retyped", "unfit_rows"]

Rows = npt.NDArray[np.int64]


def retyped(source: Source, columns: Mapping[str, str], place: str) -> Source:
    """The table at ``place`` with ``columns`` in their declared types."""
    if not columns:
        return source
    for name in columns.keys() & source.unsupported.keys():
        raise refusal(name, source)
    held = {**source.schema, **dict.fromkeys(source.untyped)}
    return Retyped(source, fitting_types(columns, held, place))


def unfit_rows(source: Source, columns: Iterable[str]) -> tuple[Rows, list[str]]:
    """The rows with a value in one of ``columns`` that is not of its declared type, and why."""
    found = source.unfit(columns) if isinstance(source, Retyped) else {}
    rows = sorted(found)
    return np.array(rows, np.int64), [found[row] for row in rows]


def misread_of(source: Source, name: str) -> Misread | None:
    """What a text column seems to have been meant for; None if it is, or was declared, text."""
    declared = isinstance(source, Retyped) and name in source.types
    if declared or source.schema.get(name) is not Kind.TEXT:
        return None
    column = source.read([name]).columns[name]
    return misread(name, column, source.where, in_csv=source.where(0).endswith(".csv"))


class Retyped:
    """A source, its declared columns in their types; a value that does not fit reads NULL."""

    def __init__(self, source: Source, types: Mapping[str, str]) -> None:
        self._source, self.types = source, types
        self._unfit: dict[str, dict[int, str]] = {}
        declared = {name: kind_of_type(type_) for name, type_ in types.items()}
        self.schema: dict[str, Kind] = {**source.schema, **declared}
        self.unsupported = source.unsupported
        self.untyped = frozenset(source.untyped) - frozenset(types)
        self.rows = source.rows

    def read(self, columns: Iterable[str]) -> Table:
        table = self._source.read(columns)
        for name in table.columns.keys() & self.types.keys():
            table.columns[name] = self._converted(name, table.columns[name])
        return table

    def where(self, row: int) -> str:
        return self._source.where(row)

    def unfit(self, columns: Iterable[str]) -> dict[int, str]:
        """Each row with a value that does not fit in one of ``columns``, and which it is."""
        named = [name for name in dict.fromkeys(columns) if name in self.types]
        self.read(name for name in named if name not in self._unfit)
        found: dict[int, str] = {}
        for name in reversed(named):
            found |= self._unfit[name]
        return found

    def _converted(self, name: str, column: ColumnData) -> ColumnData:
        type_ = self.types[name]
        found = converted(column, type_)
        before, after = unfit_reason(name, type_)
        reasons = [f"{before}{text}{after}" for text in found.texts]
        self._unfit[name] = dict(zip(found.unfit.tolist(), reasons, strict=True))
        return found.column
