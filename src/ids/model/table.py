"""Columns in memory, and the five types that a column can have."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from itertools import chain, count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

# Up to here every integer is a double, and int64 -> float64 loses nothing.
DOUBLE_INTEGERS = 2**53
# Event times lie between year 1 and year 9999, as Spark's timestamps do, in µs since 1970: far
# enough from the ends of int64 that no window of at most 2**62 µs reaches them.
FIRST_INSTANT = -62_135_596_800_000_000
LAST_INSTANT = 253_402_300_799_999_999


class Kind(Enum):
    """What a column holds: its value names it, ``noun`` is one value of it, ``plural`` several."""

    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    TIME = "timestamp"

    @property
    def noun(self) -> str:
        """One value of the kind, as a sentence has it."""
        return _NOUNS[self][0]

    @property
    def plural(self) -> str:
        """The values of a column, as a sentence has them."""
        return _NOUNS[self][1]


_NOUNS = {
    Kind.NUMBER: ("a number", "numbers"),
    Kind.TEXT: ("text", "text"),
    Kind.BOOLEAN: ("a Boolean", "Booleans"),
    Kind.TIME: ("a timestamp", "timestamps"),
}


class ColumnType(NamedTuple):
    """One of the five types of columns: ``ids.source`` has Arrow's for each, Spark has its name.

    name     in Spark SQL and in a declared schema
    kind     what the language knows of it: whole numbers and doubles are numbers
    dtype    of ``ColumnData.values``
    noun     one value of it, as an error has it
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

# The one table of types: those of Arrow, of Spark and of declared schemas are derived from it.
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
    """The type of a column of a kind; ``whole`` says that its numbers are integers.

    >>> type_of(Kind.TIME).name, type_of(Kind.NUMBER).name, type_of(Kind.NUMBER, whole=True).name
    ('TIMESTAMP', 'DOUBLE', 'BIGINT')
    """
    if kind is Kind.NUMBER:
        return TYPES["BIGINT" if whole else "DOUBLE"]
    return next(type_ for type_ in TYPES.values() if type_.kind is kind)


class Misread(NamedTuple):
    """A column of text that seems meant to hold another kind, and what to do about it."""

    kind: Kind
    hint: str


@dataclass(frozen=True, slots=True)
class ColumnData:
    """One column as arrays; views of the input where its format allows.

    kind     what it holds
    values   NUMBER float64[n] or int64[n] · BOOLEAN bool[n] · TIME int64[n] (µs since 1970 UTC)
             · TEXT int32[n] codes into ``dictionary``
    valid    bool[n], or None when no row is NULL (a NULL row's value is arbitrary but in range)
    dictionary  object[d] of str for TEXT, else None
    """

    kind: Kind
    values: npt.NDArray[np.generic]
    valid: npt.NDArray[np.bool_] | None = None
    dictionary: npt.NDArray[np.object_] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: npt.NDArray[np.intp] | slice) -> ColumnData:
        """The given rows, in the given order (a slice copies nothing)."""
        valid = None if self.valid is None else self.valid[rows]
        return ColumnData(self.kind, self.values[rows], valid, self.dictionary)


def nulls(kind: Kind, rows: int, *, whole: bool = True) -> ColumnData:
    """A column of NULLs of a kind; ``whole`` says that numbers are integers."""
    words = np.array([""], dtype=object) if kind is Kind.TEXT else None
    values = np.zeros(rows, type_of(kind, whole=whole).dtype)
    return ColumnData(kind, values, np.zeros(rows, np.bool_), words)


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of one length, by name."""

    columns: dict[str, ColumnData]
    rows: int

    def take(self, rows: npt.NDArray[np.intp] | slice) -> Table:
        """The given rows of every column."""
        taken = {name: column.take(rows) for name, column in self.columns.items()}
        if isinstance(rows, slice):
            return Table(taken, len(range(*rows.indices(self.rows))))
        return Table(taken, len(rows))


def unused(name: str, taken: Collection[str]) -> str:
    """``name``, or the first of ``name_2``, ``name_3``, … that differs from every taken one.

    Names that differ only in case count as the same, as they do in a Spark session.

    >>> unused("row", ["Row", "at"])
    'row_2'
    """
    folded = {each.lower() for each in taken}
    candidates = chain([name], (f"{name}_{number}" for number in count(2)))
    return next(each for each in candidates if each.lower() not in folded)
