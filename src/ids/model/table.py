"""Columns in memory: what every source becomes before a predicate looks at it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from itertools import chain, count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "DOUBLE_INTEGERS",
    "FIRST_INSTANT",
    "LAST_INSTANT",
    "ColumnData",
    "Kind",
    "Misread",
    "Table",
    "unused",
]

# Up to here every integer is a double, and int64 -> float64 loses nothing.
DOUBLE_INTEGERS = 2**53
# Event times lie between year 1 and year 9999, as Spark's timestamps do, in µs since 1970: far
# enough from the ends of int64 that no window of at most 2**62 µs reaches them.
FIRST_INSTANT = -62_135_596_800_000_000
LAST_INSTANT = 253_402_300_799_999_999


class Kind(Enum):
    """What a column holds."""

    NUMBER = "number"
    TEXT = "text"
    BOOLEAN = "boolean"
    TIME = "timestamp"


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
