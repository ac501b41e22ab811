"""CSV and JSON Lines files as Arrow tables.

A text file has no schema: its types are known only when all of it has been read, so it is read
whole, once, when the table is opened.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
from pyarrow import types

from ids.errors import SourceError
from ids.source.memory import one_line

__all__ = ["read_csv", "read_jsonl"]

_BLOCK = 1 << 23  # a record must fit into a block
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d")


def read_csv(path: Path, as_text: Iterable[str] = (), nulls: Sequence[str] = ()) -> pa.Table:
    """A CSV file with a header; an empty field is NULL, and ``""`` is the empty text.

    The columns of ``as_text`` are not guessed at. The texts of ``nulls`` are NULL, too.
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
    """The file; one that ends in a comma gets its last line end.

    Arrow takes an empty field at the very end of a file for quoted if the one before it was.
    """
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1))
        if file.read(1) != b",":
            return path
        file.seek(0)
        return pa.BufferReader(file.read() + b"\n")


def _without(table: pa.Table, nulls: Sequence[str]) -> pa.Table:
    """NULL for each of ``nulls`` in a column of text, also where it was quoted."""
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
        return f"{path} is empty; a CSV file begins with a line of column names"
    try:
        _parse_csv(path, (), (), threads=False)  # slower, but it counts rows
    except pa.ArrowInvalid as counted:
        error = counted
    ragged = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", str(error))
    if ragged:
        row, expected, got = (int(group) for group in ragged.groups())
        return (
            f"row {row - 1} of {path} has {got} fields where the header has {expected}; "
            "mend the row, or write the file again"
        )
    return f"cannot read {path}: {one_line(error)}"


def _quote_left_open(path: Path) -> bool:
    """Arrow takes a quote that is never closed for one that closes at the end of the file.

    An odd number of quotes is the only sign; only then is the file read a second time.
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
    """A file of one JSON object a line; a missing key is NULL, and so are the texts of ``nulls``.

    The columns of ``as_text`` hold text, and no guess is made at its meaning.
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
        return f"{path} is empty; a JSON Lines file holds one object a line"
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip() and not _is_object(line):
                return f"line {number} of {path} is not one JSON object; write one on each line"
    # Arrow counts rows within a block of its own, which helps nobody
    fault = re.sub(r"\.? in row \d+$", "", one_line(error)).removeprefix("JSON parse error: ")
    return f"cannot read {path}: {fault}"


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _timestamps(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A text column as timestamps if every value is one: Arrow's own guess stops at seconds."""
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
