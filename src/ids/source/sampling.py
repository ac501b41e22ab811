"""What the columns of text files hold, as the in-process reader would say, from a bounded sample.

Files that fit into the budget are read whole, so small tables have exactly the types they have in
process. Of larger ones the beginning decides, and a later value that does not fit is an error.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from pyarrow import types

from ids.errors import SourceError
from ids.model.table import Kind
from ids.source.files import FileSource, text_parts
from ids.source.folder import FilePath, at_once
from ids.source.parts import TextPart

__all__ = ["Sampled", "sample", "sampled_source"]

Versions = tuple[tuple[FilePath, int, int], ...]

_BUDGET = 64 << 20  # bytes the driver reads of a whole table
_LEAST = 64 << 10  # bytes it reads of every file
_SQL_TYPES = {Kind.TEXT: "STRING", Kind.BOOLEAN: "BOOLEAN", Kind.TIME: "TIMESTAMP"}


@dataclass(frozen=True)
class Sampled:
    """The columns of a table in text files.

    types        column → BIGINT, DOUBLE, STRING, BOOLEAN or TIMESTAMP; only those IDS can read
    headers      file → all its columns, in the order in which they stand there
    multiline    whether a quoted field runs over the end of a line
    unsupported  columns IDS cannot read, and what they hold
    untyped      columns of no type: there is no value in any of the files, which were read whole
    """

    types: dict[str, str]
    headers: dict[FilePath, tuple[str, ...]]
    multiline: bool
    unsupported: dict[str, str]
    untyped: frozenset[str] = frozenset()


def sample(
    files: Sequence[FilePath],
    format_: str,
    columns: Mapping[str, str] = {},
    nulls: Sequence[str] = (),
) -> Sampled:
    """What ``files`` (``csv`` or ``jsonl``) hold; empty ones, if there are others, say nothing.

    Columns that are declared have the type in which they stand in the files.
    """
    return _sampled(_versions(files), format_, tuple(columns.items()), tuple(nulls))


def sampled_source(
    files: Sequence[FilePath], format_: str, columns: Mapping[str, str], nulls: Sequence[str]
) -> FileSource:
    """The rows that are looked at, to be looked at again."""
    with tempfile.TemporaryDirectory(prefix="ids-sample-") as scratch:
        beginnings = _beginnings([file for file, *_ in _versions(files)], format_, Path(scratch))
        return FileSource(text_parts(beginnings, format_, columns, nulls))


def _versions(files: Sequence[FilePath]) -> Versions:
    held = [file for file in files if file.stat().st_size > 0] or files[:1]
    seen = [(file, file.stat()) for file in held]
    return tuple((file, s.st_size, s.st_mtime_ns) for file, s in seen)


@lru_cache(maxsize=8)  # a run asks before Java starts, and once more when Spark reads
def _sampled(
    versions: Versions,
    format_: str,
    columns: tuple[tuple[str, str], ...],
    nulls: tuple[str, ...],
) -> Sampled:
    with tempfile.TemporaryDirectory(prefix="ids-sample-") as scratch:
        beginnings = _beginnings([file for file, *_ in versions], format_, Path(scratch))
        parts = text_parts(beginnings, format_, dict(columns), nulls)
        multiline = format_ == "csv" and any(map(_breaks_lines, beginnings.values()))
        whole = all(beginnings[file].stat().st_size == size for file, size, _ in versions)
    source = FileSource(parts)
    sql_types = {
        name: _SQL_TYPES.get(kind) or _number_type(name, parts)
        for name, kind in source.schema.items()
    }
    headers = {part.path: tuple(part.schema.names) for part in parts}
    untyped = source.untyped if whole else frozenset()
    return Sampled(sql_types, headers, multiline, source.unsupported, untyped)


def _beginnings(files: Sequence[FilePath], format_: str, scratch: Path) -> dict[FilePath, Path]:
    share = max(_LEAST, _BUDGET // len(files))
    found = at_once(lambda file: _beginning(file, format_, share, scratch), files)
    return dict(zip(files, found, strict=True))


def _beginning(file: FilePath, format_: str, share: int, scratch: Path) -> Path:
    """The file itself if it is small and of this machine, else a copy of its first records."""
    try:
        small = file.stat().st_size <= share
        if small and isinstance(file, Path):
            return file
        with file.open("rb") as stream:
            data = stream.read(share)
            end = 0 if small else _last_record(np.frombuffer(data, np.uint8), format_)
            if end == 0 and isinstance(file, Path):
                return file  # one record longer than the sample: there is nothing to cut
            content = data[:end] if end else data + stream.read()
    except OSError as error:
        raise SourceError(f"cannot read {file}: {error.strerror or error}") from error
    copy = scratch / file.name
    copy.write_bytes(content)
    return copy


def _last_record(data: np.ndarray, format_: str) -> int:
    """Where the last whole record ends: after a line's end that stands in no quotes."""
    ends = data == ord("\n")
    if format_ == "csv":
        ends &= ~_inside_quotes(data)
    found = np.flatnonzero(ends)
    return int(found[-1]) + 1 if len(found) else 0


def _inside_quotes(data: np.ndarray) -> np.ndarray:
    quotes = data == ord('"')
    inside: np.ndarray = np.logical_xor.accumulate(quotes) if quotes.any() else quotes
    return inside


def _breaks_lines(file: Path) -> bool:
    data = np.fromfile(file, np.uint8)
    inside = _inside_quotes(data)
    return bool(inside.any() and np.isin(data[inside], (ord("\n"), ord("\r"))).any())


def _number_type(name: str, parts: Sequence[TextPart]) -> str:
    """Whole only if every file that holds numbers holds whole ones."""
    held = [part.schema.field(name).type for part in parts if name in part.schema.names]
    valued = [type_ for type_ in held if not types.is_null(type_)]
    return "BIGINT" if valued and all(map(types.is_integer, valued)) else "DOUBLE"
