"""Inferred column types: from a sample of text files, and hints for text that is not meant as text.

Text files within the budget are read completely, so small tables have the same types on Spark as in
process. For larger tables the first records decide; a later value that does not fit is an error.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ids.errors import SourceError
from ids.model import ColumnData, Kind, Misread, quoted, type_of
from ids.source.declared_schema import BLANKS, SPELLINGS, Retyped, plain_type
from ids.source.files import FilePath, FileSource, TextPart, at_once, text_parts
from ids.source.memory import Source

Versions = tuple[tuple[FilePath, int, int], ...]

_BUDGET = 64 << 20  # bytes that the driver reads per table
_LEAST = 64 << 10  # bytes that it reads per file, at least


@dataclass(frozen=True)
class Sampled:
    """The columns of a table in text files.

    types        column → BIGINT, DOUBLE, STRING, BOOLEAN or TIMESTAMP; only columns IDS can read
    headers      file → all its columns, in file order
    multiline    whether a quoted field contains a line break
    unsupported  columns IDS cannot read, each with its type
    untyped      columns without a type: the files, read completely, have no value in them
    """

    types: dict[str, str]
    headers: dict[FilePath, tuple[str, ...]]
    multiline: bool
    unsupported: Mapping[str, str]
    untyped: frozenset[str] = frozenset()


def sample(
    files: Sequence[FilePath],
    format_: str,
    columns: Mapping[str, str] = {},
    nulls: Sequence[str] = (),
) -> Sampled:
    """Infer the columns of ``files`` (``csv`` or ``jsonl``); empty files are skipped.

    Declared columns get the type that they have in the files.
    """
    return _sampled(_versions(files), format_, tuple(columns.items()), tuple(nulls))


def sampled_source(
    files: Sequence[FilePath], format_: str, columns: Mapping[str, str], nulls: Sequence[str]
) -> FileSource:
    """Open the rows from which ``sample`` infers types."""
    types = {name: plain_type(type_) for name, type_ in columns.items()}
    with _beginnings(_versions(files), format_) as beginnings:
        return FileSource(text_parts(beginnings, format_, types, nulls))


def _versions(files: Sequence[FilePath]) -> Versions:
    held = [file for file in files if file.stat().st_size > 0] or files[:1]
    seen = [(file, file.stat()) for file in held]
    return tuple((file, s.st_size, s.st_mtime_ns) for file, s in seen)


@lru_cache(maxsize=8)  # called before Java starts, and again when Spark reads
def _sampled(
    versions: Versions,
    format_: str,
    columns: tuple[tuple[str, str], ...],
    nulls: tuple[str, ...],
) -> Sampled:
    with _beginnings(versions, format_) as beginnings:
        types = {name: plain_type(type_) for name, type_ in columns}
        parts = text_parts(beginnings, format_, types, nulls)
        multiline = format_ == "csv" and any(map(_breaks_lines, beginnings.values()))
        whole = all(beginnings[file].stat().st_size == size for file, size, _ in versions)
    source = FileSource(parts)
    sql_types = {
        name: type_of(kind, whole=_is_integer(name, parts)).name
        for name, kind in source.schema.items()
    }
    headers = {part.path: tuple(part.schema.names) for part in parts}
    untyped = source.untyped if whole else frozenset()
    return Sampled(sql_types, headers, multiline, source.unsupported, untyped)


@contextmanager
def _beginnings(versions: Versions, format_: str) -> Iterator[dict[FilePath, Path]]:
    """Yield a local file with the sampled records of each file."""
    files = [file for file, *_ in versions]
    share = max(_LEAST, _BUDGET // len(files))
    with tempfile.TemporaryDirectory(prefix="ids-sample-") as scratch:
        found = at_once(lambda file: _beginning(file, format_, share, Path(scratch)), files)
        yield dict(zip(files, found, strict=True))


def _beginning(file: FilePath, format_: str, share: int, scratch: Path) -> Path:
    """Return the file itself if it is small and local, else a copy of its first records."""
    try:
        small = file.stat().st_size <= share
        if small and isinstance(file, Path):
            return file
        with file.open("rb") as stream:
            data = stream.read(share)
            end = 0 if small else _last_record(np.frombuffer(data, np.uint8), format_)
            if end == 0 and isinstance(file, Path):
                return file  # its first record is longer than the sample
            content = data[:end] if end else data + stream.read()
    except OSError as error:
        raise SourceError(f"cannot read {file}: {error.strerror or error}") from error
    copy = scratch / file.name
    copy.write_bytes(content)
    return copy


def _last_record(data: np.ndarray, format_: str) -> int:
    """Return the end of the last complete record: after a line end outside quotes."""
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


def _is_integer(name: str, parts: Sequence[TextPart]) -> bool:
    """Return whether a column is of an integer type in every file that has values in it."""
    held = [part.schema.field(name).type for part in parts if name in part.schema.names]
    valued = [type_ for type_ in held if not types.is_null(type_)]
    return bool(valued) and all(map(types.is_integer, valued))


# Common date formats, with or without a time.
_MONTH = r"[A-Za-z]{3,9}\.?"
_TIME = r"([T ,]+[0-9]{1,2}[:.][0-9]{2}\b.*)?$"
_DATES = (
    rf"^[0-9]{{1,4}}[-/. ]([0-9]{{1,2}}|{_MONTH})[-/. ],? ?[0-9]{{1,4}}{_TIME}"
    rf"|^({_MONTH},? )?([0-9]{{1,2}} {_MONTH},?|{_MONTH} [0-9]{{1,2}},?) [0-9]{{4}}{_TIME}"
    r"|^[0-9]{8}T[0-9]{4,6}"
)
_ASIDE = "set such rows aside with bad_rows='DIR'"
_SHOWN = 40

Mask = npt.NDArray[np.bool_]
Where = Callable[[int], str]


def misread_of(source: Source, name: str) -> Misread | None:
    """Guess what a text column was meant to contain; None for text, declared or apparent."""
    declared = isinstance(source, Retyped) and name in source.types
    if declared or source.schema.get(name) is not Kind.TEXT:
        return None
    column, where = source.read([name]).columns[name], source.where
    assert column.dictionary is not None
    texts = pc.ascii_trim(pa.array(column.dictionary, pa.string()), BLANKS)
    words = ~_like(texts, "^$")
    local, zoned, number = (_like(texts, SPELLINGS[n]) for n in ("LOCAL", "ZONED", "DOUBLE"))
    if _most(words & (local | zoned | _like(texts, _DATES)), words):
        return Misread(Kind.TIME, _for_times(name, column, where, local, zoned, words))
    if _most(words & number, words):
        in_csv = where(0).endswith(".csv")
        return Misread(Kind.NUMBER, _for_numbers(name, column, where, words & ~number, in_csv))
    return None


def _for_times(
    name: str, column: ColumnData, where: Where, local: Mask, zoned: Mask, words: Mask
) -> str:
    declare = f"declare schema='{quoted(name)} TIMESTAMP'"
    odd = _first(column, words & ~local & ~zoned)
    if odd is not None:
        fact = f"{where(odd[0])} contains '{odd[1]}', which is not a timestamp"
        return f"{fact}; write it as 2024-01-31 12:00:00, or {declare} and {_ASIDE}"
    few, has = (local, "no") if local.sum() <= zoned.sum() else (zoned, "a")
    odd = _first(column, few)
    if odd is None:
        return declare
    fact = f"{where(odd[0])} contains '{odd[1]}', which has {has} zone, unlike the others"
    return f"{fact}; {declare}"


def _for_numbers(name: str, column: ColumnData, where: Where, odd: Mask, in_csv: bool) -> str:
    declare = f"declare schema='{quoted(name)} DOUBLE'"
    found = _first(column, odd)
    if found is None:
        return declare
    fact = f"{where(found[0])} contains '{found[1]}', which is not a number"
    null = f"read it as NULL with null='{found[1]}', or " if in_csv else ""
    return f"{fact}; {null}{declare} and {_ASIDE}"


def _first(column: ColumnData, odd: Mask) -> tuple[int, str] | None:
    """Return the first row with one of the ``odd`` words, and the word."""
    rows = odd[column.values]
    if column.valid is not None:
        rows &= column.valid
    if not rows.any():
        return None
    row = int(rows.argmax())
    assert column.dictionary is not None
    text = str(column.dictionary[column.values[row]])
    return row, text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _like(texts: pa.Array, pattern: str) -> Mask:
    found: Mask = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return found


def _most(some: Mask, words: Mask) -> bool:
    return bool(some.any()) and 2 * int(some.sum()) >= int(words.sum())
