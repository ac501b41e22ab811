"""Tables: columns in memory, the five column types, and the paths of tables in files."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.errors import SourceError

# Up to this limit, converting int64 to float64 is exact.
DOUBLE_INTEGERS = 2**53
# Event times are in µs since 1970, from year 1 to year 9999 as in Spark. Adding or subtracting a
# window of at most 2**62 µs does not overflow int64.
FIRST_INSTANT = -62_135_596_800_000_000
LAST_INSTANT = 253_402_300_799_999_999


class Kind(Enum):
    """The kind of values in a column, as the language distinguishes them."""

    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    TIME = "timestamp"

    @property
    def noun(self) -> str:
        """One value of the kind, for error messages."""
        return _NOUNS[self][0]

    @property
    def plural(self) -> str:
        """Several values of the kind, for error messages."""
        return _NOUNS[self][1]


_NOUNS = {
    Kind.NUMBER: ("a number", "numbers"),
    Kind.TEXT: ("text", "text"),
    Kind.BOOLEAN: ("a Boolean", "Booleans"),
    Kind.TIME: ("a timestamp", "timestamps"),
}


class ColumnType(NamedTuple):
    """One of the five column types; ``ids.source`` maps each to an Arrow type.

    name     the name in Spark SQL and in a declared schema
    kind     its kind in the language: BIGINT and DOUBLE are both numbers
    dtype    the dtype of ``ColumnData.values``
    noun     one value of the type, for error messages
    aliases  other names that a declared schema may use
    """

    name: str
    kind: Kind
    dtype: type[np.generic]
    noun: str
    aliases: tuple[str, ...]


_WHOLE = ("BYTE", "TINYINT", "SHORT", "SMALLINT", "INT", "INTEGER", "LONG")
_BROKEN = ("FLOAT", "REAL", "DECIMAL", "DEC", "NUMERIC")
_TEXTS = ("CHAR", "CHARACTER", "VARCHAR")
_TIMES = ("DATE", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_INSTANT = "a timestamp, such as 2024-01-31 12:00:00"

# The only table of types: Arrow, Spark and declared types are derived from it.
TYPES = {
    type_.name: type_
    for type_ in (
        ColumnType("BIGINT", Kind.NUMBER, np.int64, "a whole number", _WHOLE),
        ColumnType("DOUBLE", Kind.NUMBER, np.float64, "a number", _BROKEN),
        ColumnType("STRING", Kind.TEXT, np.int32, "text", _TEXTS),
        ColumnType("TIMESTAMP", Kind.TIME, np.int64, _INSTANT, _TIMES),
        ColumnType("BOOLEAN", Kind.BOOLEAN, np.bool_, "true or false", ()),
    )
}


def type_of(kind: Kind, *, whole: bool = False) -> ColumnType:
    """Return the column type of a kind; ``whole`` selects BIGINT instead of DOUBLE for numbers.

    >>> type_of(Kind.TIME).name, type_of(Kind.NUMBER).name, type_of(Kind.NUMBER, whole=True).name
    ('TIMESTAMP', 'DOUBLE', 'BIGINT')
    """
    if kind is Kind.NUMBER:
        return TYPES["BIGINT" if whole else "DOUBLE"]
    return next(type_ for type_ in TYPES.values() if type_.kind is kind)


class Misread(NamedTuple):
    """The kind that a text column was probably meant to have, and a hint on how to get it."""

    kind: Kind
    hint: str


@dataclass(frozen=True, slots=True)
class ColumnData:
    """One column as arrays, which are views of the input if its format allows.

    kind     the kind of its values
    values   NUMBER float64[n] or int64[n] · BOOLEAN bool[n] · TIME int64[n] (µs since 1970 UTC)
             · TEXT int32[n] codes into ``dictionary``
    valid    bool[n], or None if no row is NULL (the value of a NULL row is arbitrary but in range)
    dictionary  object[d] of str for TEXT, else None
    """

    kind: Kind
    values: npt.NDArray[np.generic]
    valid: npt.NDArray[np.bool_] | None = None
    dictionary: npt.NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: npt.NDArray[np.intp] | slice) -> ColumnData:
        """Return the given rows, in the given order (a slice is a view)."""
        valid = None if self.valid is None else self.valid[rows]
        return ColumnData(self.kind, self.values[rows], valid, self.dictionary)


def nulls(kind: Kind, rows: int, *, whole: bool = True) -> ColumnData:
    """Return a column of NULLs; ``whole`` selects BIGINT instead of DOUBLE for numbers."""
    words = np.array([""], dtype=object) if kind is Kind.TEXT else None
    values = np.zeros(rows, type_of(kind, whole=whole).dtype)
    return ColumnData(kind, values, np.zeros(rows, np.bool_), words)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of the same length, by name."""

    columns: dict[str, ColumnData]
    rows: int

    def take(self, rows: npt.NDArray[np.intp] | slice) -> Table:
        """Return the given rows of every column."""
        taken = {name: column.take(rows) for name, column in self.columns.items()}
        if isinstance(rows, slice):
            return Table(taken, len(range(*rows.indices(self.rows))))
        return Table(taken, len(rows))


def unused(name: str, taken: Collection[str]) -> str:
    """Return ``name``, or the first of ``name_2``, ``name_3``, … that is not taken.

    Names are compared case-insensitively, as in Spark.

    >>> unused("row", ["Row", "at"])
    'row_2'
    """
    folded = {each.lower() for each in taken}
    candidates = chain([name], (f"{name}_{number}" for number in count(2)))
    return next(each for each in candidates if each.lower() not in folded)


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # a single letter is a Windows drive
_LOCAL = re.compile(r"file:(//(localhost)?)?(?=/)", re.IGNORECASE)


def is_remote(path: object) -> bool:
    """Return whether a path is a URI of another file system, which only Spark can read.

    >>> is_remote("s3a://bucket/out"), is_remote("file:/tmp/out"), is_remote("out:1/")
    (True, False, False)
    """
    found = _SCHEME.match(path) if isinstance(path, str) else None
    return found is not None and found[1].lower() != "file"


def local_path(path: str | Path) -> Path:
    """Convert ``~/out`` or ``file:/tmp/out`` to a Path; raise an error if the path is remote.

    As in Spark, nothing is decoded: ``file:/tmp/a%20b`` has a percent sign in its name.
    """
    if is_remote(path):
        raise SourceError(f"{path} requires Spark; use ids.spark, or a local path")
    return Path(_LOCAL.sub("", str(path), count=1)).expanduser()
