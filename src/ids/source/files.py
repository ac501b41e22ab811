"""Tables in files: each column is read from every file and joined in file order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
from pyarrow import types

from ids.errors import SourceError
from ids.model.table import Kind, Table
from ids.source.arrow import canonical, column_data, join
from ids.source.folder import find_files
from ids.source.memory import described, one_line
from ids.source.parts import ParquetPart, Part, TextPart
from ids.source.table import refusal
from ids.source.text import read_csv, read_jsonl

__all__ = ["FileSource", "open_files"]


class FileSource:
    """The rows of one or more files of one format.

    Parquet reads the footers at once and, later, the columns asked for; text is parsed at once.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._ends = list(accumulate(part.rows for part in parts))
        self.rows = self._ends[-1]
        self.schema, self.unsupported = _unified(parts)
        self.untyped = frozenset(name for name, kinds in _kinds(parts).items() if not kinds)
        if not self.schema and not self.unsupported:
            raise SourceError(f"{parts[0].path} holds no columns")

    def read(self, columns: Iterable[str]) -> Table:
        names = list(dict.fromkeys(columns))
        for name in names:
            if name not in self.schema:
                raise refusal(name, self)
        tables = [part.read([n for n in names if n in part.schema.names]) for part in self._parts]
        data = {}
        for name in names:
            pieces = zip(self._parts, tables, strict=True)
            data[name] = column_data(join([_column(name, part, table) for part, table in pieces]))
        return Table(data, self.rows)

    def where(self, row: int) -> str:
        part = bisect_right(self._ends, row)
        start = self._ends[part - 1] if part else 0
        return f"row {row - start + 1} of {self._parts[part].path.name}"


def open_files(path: Path) -> FileSource:
    """A file, or a directory of them."""
    format_, files = find_files(path)
    if format_ == "parquet":
        return FileSource([ParquetPart(file) for file in files])
    # an engine that writes in parallel leaves empty files where a worker had no rows
    files = [file for file in files if file.stat().st_size > 0] or files[:1]
    if format_ == "jsonl":
        return FileSource([TextPart(f, read_jsonl(f), absent_is_null=True) for f in files])
    parts = [TextPart(file, read_csv(file), absent_is_null=False) for file in files]
    clashing = [name for name, kinds in _kinds(parts).items() if len(kinds) > 1]
    if clashing:  # one file alone would have become text as well
        parts = [TextPart(f, read_csv(f, clashing), absent_is_null=False) for f in files]
    return FileSource(parts)


def _column(name: str, part: Part, table: pa.Table) -> pa.ChunkedArray:
    if name not in table.column_names:
        return pa.chunked_array([pa.nulls(part.rows, pa.float64())])
    try:
        return canonical(table.column(name))
    except pa.ArrowException as error:
        raise SourceError(
            f"cannot read column {name!r} of {part.path}: {one_line(error)}"
        ) from error


def _kinds(parts: Sequence[Part]) -> dict[str, set[Kind]]:
    """What each column holds, in whichever file; a file in which it is empty has no say."""
    kinds: dict[str, set[Kind]] = {}
    for part in parts:
        for name, kind in described(part.schema)[0].items():
            held = kinds.setdefault(name, set())
            if not types.is_null(part.schema.field(name).type):
                held.add(kind)
    return kinds


def _unified(parts: Sequence[Part]) -> tuple[dict[str, Kind], dict[str, str]]:
    """One schema for all files; a column on which they disagree is no column IDS can read."""
    unsupported: dict[str, str] = {}
    for part in parts:
        unsupported = described(part.schema)[1] | unsupported
    schema: dict[str, Kind] = {}
    for name, kinds in _kinds(parts).items():
        lacking = [p for p in parts if name not in p.schema.names and not p.absent_is_null]
        if lacking:
            unsupported.setdefault(name, f"missing from {lacking[0].path.name}")
        elif len(kinds) > 1:
            names = " and ".join(sorted(kind.value for kind in kinds))
            unsupported.setdefault(name, f"{names} in different files")
        elif name not in unsupported:
            schema[name] = next(iter(kinds), Kind.NUMBER)
    return schema, unsupported
