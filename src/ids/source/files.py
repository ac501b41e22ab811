"""Tables in files: a Parquet, CSV or JSON Lines file, or a directory of them in name order.

A text file has no schema, so it is read completely when the table is opened, to infer its types.
For a Parquet file only the footer is read then; columns are read on demand.
"""

from __future__ import annotations

import csv
import json
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
from pyarrow import types

from ids.errors import SourceError, closest
from ids.model import ColumnData, Kind
from ids.source.memory import (
    DISAGREEING,
    Source,
    canonical,
    column_data,
    described,
    join,
    kind_of,
    one_line,
)

_AT_ONCE = 16  # parallel requests to a remote file system

T = TypeVar("T")
R = TypeVar("R")

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_KNOWN = "IDS reads .parquet, .csv, .jsonl, .ndjson and .json, or a directory of them"


class FilePath(Protocol):
    """The methods of ``pathlib.Path`` that IDS uses; paths on other file systems have them too."""

    @property
    def name(self) -> str: ...
    @property
    def suffix(self) -> str: ...
    @property
    def parent(self) -> Self: ...
    def exists(self) -> bool: ...
    def is_dir(self) -> bool: ...
    def is_file(self) -> bool: ...
    def iterdir(self) -> Iterator[Self]: ...
    def stat(self) -> Any: ...  # with st_size and st_mtime_ns
    def open(self, mode: Literal["rb"]) -> BinaryIO: ...


P = TypeVar("P", bound=FilePath)


def find_files(path: P) -> tuple[str, list[P]]:
    """Return the format and the files at ``path``, in the order of their rows."""
    if not path.exists():
        raise SourceError(missing(path))
    files = _of_directory(path) if path.is_dir() else [path]
    formats = {file: FORMATS.get(file.suffix.lower()) for file in files}
    for file, format_ in formats.items():
        if format_ is None:
            raise SourceError(f"{file} has an unknown format; {_KNOWN}")
        if format_ != formats[files[0]]:
            raise SourceError(
                f"{path} mixes formats ({files[0].name}, {file.name}); "
                "give a directory of one format"
            )
    return formats[files[0]] or "", files


def _of_directory(path: P) -> list[P]:
    """List the data files; as in Spark, names that begin with ``.`` or ``_`` are skipped."""
    entries = sorted((e for e in path.iterdir() if e.name[0] not in "._"), key=lambda e: e.name)
    for entry in entries:
        if entry.is_dir() and "=" in entry.name:
            raise SourceError(
                f"{path} is partitioned ({entry.name}); give the directory that contains the files"
            )
    files = [entry for entry in entries if not entry.is_dir()]
    if not files:
        raise SourceError(f"{path} contains no data files; {_KNOWN}")
    return files


def has_files(path: FilePath, *, declared: bool) -> bool:
    """Return whether the directory of a stream has files yet; if not, ``declared`` must be true."""
    if path.is_file():
        raise SourceError(
            f"{path} is a file, but a stream reads a directory; "
            f"give {path.parent}/ or run the query without a stream"
        )
    if not path.is_dir() or any(e.name[0] not in "._" and not e.is_dir() for e in path.iterdir()):
        return True
    if not declared:
        raise SourceError(
            f"{path} contains no data files yet; declare their columns with "
            "schema='a STRING, b DOUBLE, t TIMESTAMP', or add a file first"
        )
    return False


def at_once(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Map an I/O-bound function over ``items`` in parallel threads."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(function, items))


def missing(path: FilePath, what: str = "file or directory") -> str:
    """Return the error text for a path that does not exist, with a similar name if there is one."""
    folder = path.parent
    if not folder.is_dir():
        return f"no such {what}: {path}"
    near = closest(path.name, [e.name for e in folder.iterdir() if e.name[0] not in "._"])
    return f"no such {what}: {path}" + (f"; {near}" if near else "")


class Part(ABC):
    """A file of a table; with ``absent_is_null`` a missing column is NULL (a key in JSON)."""

    def __init__(
        self, path: FilePath, schema: pa.Schema, rows: int, *, absent_is_null: bool = False
    ) -> None:
        self.path, self.schema, self.rows = path, schema, rows
        self.absent_is_null = absent_is_null
        repeated = [name for name, times in Counter(schema.names).items() if times > 1]
        if repeated:
            raise SourceError(f"{path} has two columns {repeated[0]!r}; rename one")

    @abstractmethod
    def read(self, columns: list[str]) -> pa.Table:
        """Read the given columns of the file."""


class TextPart(Part):
    """A CSV or JSON Lines file, already in memory."""

    def __init__(self, path: FilePath, table: pa.Table, *, absent_is_null: bool) -> None:
        super().__init__(path, table.schema, table.num_rows, absent_is_null=absent_is_null)
        self._table = table

    def read(self, columns: list[str]) -> pa.Table:
        return self._table.select(columns)


class ParquetPart(Part):
    """A Parquet file: the footer is read when it is opened, columns are read on demand."""

    def __init__(self, path: FilePath) -> None:
        self.path = path
        try:
            with self._open() as file:
                schema, self.footer = file.schema_arrow, file.metadata
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from error
        super().__init__(path, schema, self.footer.num_rows)

    def read(self, columns: list[str]) -> pa.Table:
        texts = [name for name in columns if kind_of(self.schema.field(name).type) is Kind.TEXT]
        try:
            try:
                return self._columns(columns, texts)
            except OSError as error:
                # Arrow cannot read delta-encoded text, which newer writers use, as a dictionary
                if "Not yet implemented" not in str(error):
                    raise
                return self._columns(columns, ())
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(self.path, error) from error

    def _columns(self, columns: list[str], dictionaries: Iterable[str]) -> pa.Table:
        with self._open(dictionaries) as file:
            # Arrow treats a name as a path prefix: 'a' would also read 'a.b'
            return file.read(columns).select(columns)

    @contextmanager
    def _open(self, dictionaries: Iterable[str] = ()) -> Iterator[pq.ParquetFile]:
        """Open the file; text columns in ``dictionaries`` keep their dictionary from the file."""
        # Arrow opens a local file itself, which is faster than a Python file object
        opening = nullcontext(self.path) if isinstance(self.path, Path) else self.path.open("rb")
        with (
            opening as file,
            pq.ParquetFile(
                file, read_dictionary=list(dictionaries), coerce_int96_timestamp_unit="us"
            ) as opened,
        ):
            yield opened


def _unreadable(path: FilePath, error: BaseException) -> SourceError:
    if "footer" in str(error) or "Parquet file size is" in str(error):
        return SourceError(f"{path} is not a complete Parquet file; write it again")
    return SourceError(f"cannot read {path}: {one_line(error)}")


_BLOCK = 1 << 23  # bytes; the longest record that Arrow can parse
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")


def read_csv(path: Path, as_text: Iterable[str] = (), nulls: Sequence[str] = ()) -> pa.Table:
    """Read a CSV file with a header; an empty field is NULL, and ``""`` is the empty text.

    Columns in ``as_text`` stay text; the types of the others are inferred. Texts in ``nulls`` are
    NULL, too.
    """
    try:
        table = _parse_csv(path, as_text, nulls, threads=True)
    except pa.ArrowInvalid as error:
        raise SourceError(_csv_fault(path, error)) from error
    except OSError as error:
        raise SourceError(f"cannot read {path}: {one_line(error)}") from error
    if _quote_left_open(path):
        raise SourceError(f"{path} ends inside a quoted field; write the file again")
    return _without(table, nulls)


def _parse_csv(
    path: Path, as_text: Iterable[str], nulls: Sequence[str], *, threads: bool
) -> pa.Table:
    return pa.csv.read_csv(
        _ended(path),
        read_options=pa.csv.ReadOptions(use_threads=threads, block_size=_BLOCK),
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            null_values=["", *nulls],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            column_types={name: pa.string() for name in as_text},
        ),
    )


def _ended(path: Path) -> Path | pa.BufferReader:
    """Return the file; one that ends with a comma gets a final line end.

    Otherwise Arrow would treat its last, empty field as quoted if the field before it is quoted.
    """
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1))
        if file.read(1) != b",":
            return path
        file.seek(0)
        return pa.BufferReader(file.read() + b"\n")


def _without(table: pa.Table, nulls: Sequence[str]) -> pa.Table:
    """Replace each of ``nulls`` in text columns with NULL, even if it was quoted."""
    if not nulls:
        return table
    meant = pa.array(nulls, pa.string())
    for i, field in enumerate(table.schema):
        if types.is_string(field.type):
            column = table.column(i)
            kept = pc.if_else(pc.is_in(column, meant), pa.scalar(None, pa.string()), column)
            table = table.set_column(i, field.name, kept)
    return table


def _csv_fault(path: Path, error: pa.ArrowInvalid) -> str:
    if "Empty CSV" in str(error):
        return f"{path} is empty; a CSV file starts with a line of column names"
    try:
        _parse_csv(path, (), (), threads=False)  # slower, but its errors have row numbers
    except pa.ArrowInvalid as counted:
        error = counted
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
    if ragged:
        row, expected, got = (int(group) for group in ragged.groups())
        return (
            f"row {row - 1} of {path} has {got} fields, but the header has {expected}; "
            "correct the row, or write the file again"
        )
    return f"cannot read {path}: {one_line(error)}"


def _quote_left_open(path: Path) -> bool:
    """Return whether the last quote is never closed, which Arrow does not report.

    The file is read a second time only if its number of quotes is odd.
    """
    with pa.memory_map(str(path)) as mapped:
        quotes = np.count_nonzero(np.frombuffer(mapped.read_buffer(), np.uint8) == ord('"'))
    if quotes % 2 == 0:
        return False
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        try:
            for _ in csv.reader(file, strict=True):
                pass
        except csv.Error as error:
            return "unexpected end of data" in str(error)
    return False


def read_jsonl(path: Path, as_text: Iterable[str] = (), nulls: Sequence[str] = ()) -> pa.Table:
    """Read a file with one JSON object per line; a missing key is NULL, and so are ``nulls``.

    Columns in ``as_text`` contain text and stay text, even if it looks like timestamps.
    """
    explicit = pa.schema([(name, pa.string()) for name in as_text])
    try:
        table = pa.json.read_json(
            path,
            read_options=pa.json.ReadOptions(block_size=_BLOCK),
            parse_options=pa.json.ParseOptions(explicit_schema=explicit),
        )
    except pa.ArrowInvalid as error:
        raise SourceError(_jsonl_fault(path, error)) from error
    except OSError as error:
        raise SourceError(f"cannot read {path}: {one_line(error)}") from error
    table = _without(table, nulls)
    for i, field in enumerate(table.schema):
        if types.is_string(field.type) and field.name not in explicit.names:
            table = table.set_column(i, field.name, _timestamps(table.column(i)))
    return table


def _jsonl_fault(path: Path, error: pa.ArrowInvalid) -> str:
    if "Empty JSON" in str(error):
        return f"{path} is empty; a JSON Lines file has one object per line"
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip() and not _is_object(line):
                return f"line {number} of {path} is not one JSON object; write one on each line"
    # Arrow's row number is relative to one of its blocks, so it would mislead
    fault = re.sub(r"\.? in row \d+$", "", one_line(error)).removeprefix("JSON parse error: ")
    return f"cannot read {path}: {fault}"


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _timestamps(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a text column to timestamps if every value parses; Arrow infers only seconds."""
    texts = column.drop_null()
    if len(texts) == 0 or not _TIMESTAMP.match(texts[0].as_py()):
        return column
    zone = "UTC" if pc.match_substring_regex(texts[0], r"(Z|[+-]\d\d:?\d\d)$").as_py() else None
    for unit in ("us", "ns"):
        try:
            return column.cast(pa.timestamp(unit, zone))
        except pa.ArrowInvalid:
            continue
    return column


_TEXT_IN_JSON = ("STRING", "TIMESTAMP")  # JSON has types for numbers and Booleans


class FileSource(Source):
    """The rows of one or more files of one format, in the order of the files."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._ends = list(accumulate(part.rows for part in parts))
        schema, unsupported = _unified(parts)
        untyped = [name for name, kinds in _kinds(parts).items() if not kinds]
        super().__init__(self._ends[-1], schema, unsupported, untyped)
        if not schema and not unsupported:
            raise SourceError(f"{parts[0].path} has no columns")

    def _columns(self, names: list[str]) -> dict[str, ColumnData]:
        tables = [part.read([n for n in names if n in part.schema.names]) for part in self._parts]
        data = {}
        for name in names:
            pieces = zip(self._parts, tables, strict=True)
            data[name] = column_data(join([_column(name, part, table) for part, table in pieces]))
        return data

    def where(self, row: int) -> str:
        part = bisect_right(self._ends, row)
        start = self._ends[part - 1] if part else 0
        return f"row {row - start + 1} of {self._parts[part].path.name}"


def open_files(
    path: Path, columns: Mapping[str, str | None] = {}, nulls: Sequence[str] = ()
) -> FileSource:
    """Open a file or a directory of files.

    ``columns`` are declared with their types; the caller converts them. In text files ``nulls``
    mean NULL.
    """
    format_, files = find_files(path)
    if format_ == "parquet":
        return FileSource([ParquetPart(file) for file in files])
    # a parallel writer leaves empty files for workers without rows
    files = [file for file in files if file.stat().st_size > 0] or files[:1]
    return FileSource(text_parts({file: file for file in files}, format_, columns, nulls))


def text_parts(
    files: Mapping[FilePath, Path],
    format_: str,
    columns: Mapping[str, str | None],
    nulls: Sequence[str],
) -> list[TextPart]:
    """Read text files of one ``format_``, csv or jsonl; ``files`` maps each to its local copy."""
    is_json = format_ == "jsonl"

    def parts(texts: Iterable[str]) -> list[TextPart]:
        found = []
        for file, copy in files.items():
            try:
                table = (read_jsonl if is_json else read_csv)(copy, texts, nulls)
            except SourceError as error:  # name the file, not its copy
                raise SourceError(str(error).replace(str(copy), str(file))) from error
            found.append(TextPart(file, table, absent_is_null=is_json))
        return found

    if is_json:
        return parts([name for name, type_ in columns.items() if type_ in _TEXT_IN_JSON])
    found = parts(columns)
    clashing = [name for name, kinds in _kinds(found).items() if len(kinds) > 1]
    # in a single file, such a column would be text as well
    return parts([*columns, *clashing]) if clashing else found


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
    """Return the kinds of each column, each with the first file that has it; skip empty columns."""
    kinds: dict[str, dict[Kind, FilePath]] = {}
    for part in parts:
        for name, kind in described(part.schema)[0].items():
            held = kinds.setdefault(name, {})
            if not types.is_null(part.schema.field(name).type):
                held.setdefault(kind, part.path)
    return kinds


def _unified(parts: Sequence[Part]) -> tuple[dict[str, Kind], dict[str, str]]:
    """Return one schema for all files; columns on which they disagree are unsupported."""
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
