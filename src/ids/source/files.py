"""Tables in files: each column is read from every file and joined in file order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
from pyarrow import types

from ids.errors import SourceError
from ids.model.table import Kind, Table
from ids.source.arrow import canonical, column_data, join
from ids.source.declared import plain_type
from ids.source.folder import FilePath, find_files
from ids.source.memory import described, one_line
from ids.source.parts import ParquetPart, Part, TextPart
from ids.source.table import DISAGREEING, refusal
from ids.source.text import read_csv, read_jsonl

__all__ = ["FileSource", "open_files", "text_parts"]

_SPELLED_OUT = ("STRING", "TIMESTAMP")  # in JSON, which has numbers and Booleans of its own


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


def open_files(
    path: Path, columns: Mapping[str, str] = {}, nulls: Sequence[str] = ()
) -> FileSource:
    """A file, or a directory of them; in text files ``columns`` are declared, ``nulls`` are NULL.

    Declared columns come as they stand in the files, to be converted.
    """
    format_, files = find_files(path)
    if format_ == "parquet":
        return FileSource([ParquetPart(file) for file in files])
    # an engine that writes in parallel leaves empty files where a worker had no rows
    files = [file for file in files if file.stat().st_size > 0] or files[:1]
    return FileSource(text_parts({file: file for file in files}, format_, columns, nulls))


def text_parts(
    files: Mapping[FilePath, Path], format_: str, columns: Mapping[str, str], nulls: Sequence[str]
) -> list[TextPart]:
    """Text files, each by its name and where to read it, of one ``format_``: csv or jsonl."""
    if format_ == "jsonl":
        texts = [n for n, type_ in columns.items() if plain_type(type_) in _SPELLED_OUT]
        return [
            TextPart(file, _named(read_jsonl, file, place, texts, nulls), absent_is_null=True)
            for file, place in files.items()
        ]

    def parts(texts: Iterable[str]) -> list[TextPart]:
        return [
            TextPart(file, _named(read_csv, file, place, texts, nulls), absent_is_null=False)
            for file, place in files.items()
        ]

    found = parts(columns)
    clashing = [name for name, kinds in _kinds(found).items() if len(kinds) > 1]
    # one file alone would have become text as well
    return parts([*columns, *clashing]) if clashing else found


def _named(
    read: Callable[[Path, Iterable[str], Sequence[str]], pa.Table],
    file: FilePath,
    place: Path,
    texts: Iterable[str],
    nulls: Sequence[str],
) -> pa.Table:
    """A file read where it lies; what is wrong with it is told under its name."""
    try:
        return read(place, texts, nulls)
    except SourceError as error:
        raise SourceError(str(error).replace(str(place), str(file))) from error


def _column(name: str, part: Part, table: pa.Table) -> pa.ChunkedArray:
    if name not in table.column_names:
        return pa.chunked_array([pa.nulls(part.rows, pa.float64())])
    try:
        return canonical(table.column(name))
    except pa.ArrowException as error:
        raise SourceError(
            f"cannot read column {name!r} of {part.path}: {one_line(error)}"
        ) from error


def _kinds(parts: Sequence[Part]) -> dict[str, dict[Kind, FilePath]]:
    """What each column holds, and the first file that does; an empty column has no say."""
    kinds: dict[str, dict[Kind, FilePath]] = {}
    for part in parts:
        for name, kind in described(part.schema)[0].items():
            held = kinds.setdefault(name, {})
            if not types.is_null(part.schema.field(name).type):
                held.setdefault(kind, part.path)
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
            held = DISAGREEING.join(f"{kind.value} in {file.name}" for kind, file in kinds.items())
            unsupported.setdefault(name, held)
        elif name not in unsupported:
            schema[name] = next(iter(kinds), Kind.NUMBER)
    return schema, unsupported
