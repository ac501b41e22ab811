"""open_table: anything tabular becomes a source, its declared columns in their types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ids.model import ColumnData, Kind, Misread, Table, local_path
from ids.source.declared_schema import converted, fitting_types, kind_of_type, unfit_reason
from ids.source.files import open_files
from ids.source.inferred import misread
from ids.source.memory import Source, TableSource, from_memory, refusal

Rows = npt.NDArray[np.int64]


def with_declared_types(source: Source, columns: Mapping[str, str], place: str) -> Source:
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


class Retyped(Source):
    """A source, its declared columns in their types; a value that does not fit reads NULL."""

    def __init__(self, source: Source, types: Mapping[str, str]) -> None:
        declared = {name: kind_of_type(type_) for name, type_ in types.items()}
        untyped = source.untyped - types.keys()
        super().__init__(source.rows, {**source.schema, **declared}, source.unsupported, untyped)
        self.types, self._source = types, source
        self._unfit: dict[str, dict[int, str]] = {}

    def _columns(self, names: list[str]) -> dict[str, ColumnData]:
        columns = self._source.read(names).columns
        for name in columns.keys() & self.types.keys():
            found = converted(columns[name], self.types[name])
            before, after = unfit_reason(name, self.types[name])
            reasons = [f"{before}{text}{after}" for text in found.texts]
            self._unfit[name] = dict(zip(found.unfit.tolist(), reasons, strict=True))
            columns[name] = found.column
        return columns

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


def open_table(
    data: object, name: str, columns: Mapping[str, str] = {}, nulls: Sequence[str] = ()
) -> Source:
    """The table ``name`` of a script, from a path or from what lies in memory.

    Paths: Parquet, CSV, JSON Lines, or a directory of files of one of these formats (in name
    order). In memory: a pyarrow Table, RecordBatch or RecordBatchReader, a pandas or Polars
    DataFrame, anything that speaks the Arrow C stream, a dict of arrays or lists, a model Table.
    A timestamp without a zone is UTC. NaN is a value, not NULL, except in a pandas DataFrame.
    ``columns`` declares types of some columns, and ``nulls`` texts of text files that mean NULL.

    >>> open_table({"latency": [1.5, None]}, "events").read(["latency"]).columns["latency"].valid
    array([ True, False])
    """
    if isinstance(data, str | Path):
        return with_declared_types(open_files(local_path(data), columns, nulls), columns, str(data))
    source = TableSource(data) if isinstance(data, Table) else from_memory(data, name)
    return with_declared_types(source, columns, f"table {name!r}")
