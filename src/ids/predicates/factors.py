"""Factors: what the conditions on one column (or one value) can tell apart.

A factor holds *units*, conditions that read one thing, and sorts rows into *classes*: rows of one
class agree on every unit. A class follows from one look-up a row, however many units there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ids.kernels.cells import add_coded, add_ranged
from ids.model.expression import Column, Expression
from ids.model.table import ColumnData, Kind, Table
from ids.predicates.cuts import cuts_of, representatives
from ids.predicates.interning import Numbers
from ids.predicates.truth import kleene, truth, vector
from ids.predicates.vector import from_kleene, objects, spread

__all__ = [
    "VALUE",
    "Dictionary",
    "Factor",
    "Flag",
    "Range",
    "Reading",
    "Truth",
    "null_of",
    "rows_as_bytes",
]

Classes = npt.NDArray[np.int32]

# The name under which units read the value of an expression.
VALUE = Column("value")

_ALL_VALID = np.empty(0, np.bool_)
# Words remembered with their class before they are forgotten and judged anew.
_REMEMBERED = 2**20


@dataclass(frozen=True, slots=True)
class Reading:
    """One batch seen by one factor: what to look up, and where. ``cuts`` only for a range."""

    look: npt.NDArray[Any]
    valid: npt.NDArray[np.bool_]
    class_of: Classes
    null_class: int
    cuts: npt.NDArray[Any] | None = None

    def add(self, cell: Numbers, rows: slice, stride: int) -> None:
        """Add the classes of the rows, times the stride, to their cells. O(rows)."""
        valid = self.valid[rows] if len(self.valid) else self.valid
        class_of = self.class_of.view(np.uint32)
        missing, weight = np.uint64(self.null_class), np.uint64(stride)
        if self.cuts is None:
            add_coded(cell, self.look[rows], valid, class_of, missing, weight)
        else:
            add_ranged(cell, self.look[rows], valid, self.cuts, class_of, missing, weight)


class Factor(Protocol):
    """Units over one thing, and the classes they make; ``truths`` is int8[classes, units]."""

    units: list[Expression]

    @property
    def classes(self) -> int:
        """How many classes it has met so far."""

    @property
    def truths(self) -> npt.NDArray[np.int8]:
        """What each unit is on each class met so far."""

    def read(self, table: Table) -> Reading:
        """The classes of a batch; may meet new ones."""


class _Judged:
    """Classes by what the units say: equal rows of truth are one class."""

    def __init__(self, units: list[Expression]) -> None:
        self.units = units
        self._known: dict[bytes, int] = {}
        self._rows: list[npt.NDArray[np.int8]] = []

    @property
    def classes(self) -> int:
        return len(self._rows)

    @property
    def truths(self) -> npt.NDArray[np.int8]:
        return np.array(self._rows, np.int8).reshape(len(self._rows), len(self.units))

    def judge(self, name: str, values: ColumnData) -> Classes:
        """The class of each value of the thing the units read. O(values * units)."""
        table = Table({name: values}, len(values))
        said = np.stack([truth(unit, table) for unit in self.units], axis=1)
        classes = np.empty(len(values), np.int32)
        for position, row in enumerate(rows_as_bytes(said)):
            number = self._known.setdefault(row, len(self._rows))
            if number == len(self._rows):
                self._rows.append(said[position].copy())
            classes[position] = number
        return classes


def rows_as_bytes(matrix: npt.NDArray[np.int8]) -> list[bytes]:
    """Each row of a matrix as a key; a matrix without columns has empty ones."""
    rows, width = matrix.shape
    if width == 0:
        return [b""] * rows
    packed: Any = np.ascontiguousarray(matrix).view(np.dtype((np.void, width)))
    keys: list[bytes] = packed.ravel().tolist()
    return keys


def _valid(mask: npt.NDArray[np.bool_] | None, rows: int) -> npt.NDArray[np.bool_]:
    return _ALL_VALID if mask is None else np.ascontiguousarray(spread(mask, rows))


def null_of(kind: Kind) -> ColumnData:
    """One NULL of a kind."""
    words = objects([""]) if kind is Kind.TEXT else None
    dtype = {Kind.TEXT: np.int32, Kind.BOOLEAN: np.bool_}.get(kind, np.int64)
    return ColumnData(kind, np.zeros(1, dtype), np.zeros(1, np.bool_), words)


class Dictionary(_Judged):
    """A TEXT column: each word is judged once, and remembered from batch to batch."""

    def __init__(self, name: str, units: list[Expression]) -> None:
        super().__init__(units)
        self.name = name
        self._null_class = int(self.judge(name, null_of(Kind.TEXT))[0])
        self._class_of_word: dict[str, int] = {}
        self._words: npt.NDArray[np.object_] | None = None
        self._class_of: Classes = np.empty(0, np.int32)
        self._complete = False

    def read(self, table: Table) -> Reading:
        """O(rows), and O(words) of Python when the dictionary is not the last batch's own."""
        column = table.columns[self.name]
        assert column.dictionary is not None
        if column.dictionary is not self._words:
            self._words = column.dictionary
            self._class_of = np.full(len(column.dictionary), -1, np.int32)
            self._complete = False
        codes = np.ascontiguousarray(column.values)
        if not self._complete:
            self._look_up(column.dictionary, codes)
        return Reading(
            codes.view(np.uint32),
            _valid(column.valid, table.rows),
            self._class_of,
            self._null_class,
        )

    def _look_up(self, dictionary: npt.NDArray[np.object_], codes: npt.NDArray[Any]) -> None:
        self._complete = len(codes) >= len(dictionary)
        used = np.arange(len(dictionary)) if self._complete else np.unique(codes)
        used = used[self._class_of[used] < 0]
        words = dictionary[used].tolist()
        if len(self._class_of_word) > _REMEMBERED:
            self._class_of_word.clear()
        known = self._class_of_word
        fresh = list(dict.fromkeys(word for word in words if word not in known))
        if fresh:
            codes = np.arange(len(fresh), dtype=np.int32)
            column = ColumnData(Kind.TEXT, codes, None, objects(fresh))
            known.update(zip(fresh, self.judge(self.name, column).tolist(), strict=True))
        self._class_of[used] = [known[word] for word in words]


class Flag(_Judged):
    """A BOOLEAN column: at most three classes."""

    def __init__(self, name: str, units: list[Expression]) -> None:
        super().__init__(units)
        self.name = name
        self._class_of = self.judge(name, ColumnData(Kind.BOOLEAN, np.array([False, True])))
        self._null_class = int(self.judge(name, null_of(Kind.BOOLEAN))[0])

    def read(self, table: Table) -> Reading:
        """O(1)."""
        column = table.columns[self.name]
        codes = np.ascontiguousarray(column.values).view(np.uint8)
        return Reading(codes, _valid(column.valid, table.rows), self._class_of, self._null_class)


class Range(_Judged):
    """A number or an instant compared with constants: which interval between them it is in.

    The units read ``VALUE``; ``subject`` is the expression they speak of.
    """

    def __init__(self, subject: Expression, units: list[Expression]) -> None:
        super().__init__(units)
        self.subject = subject
        self._intervals: dict[np.dtype[Any], tuple[npt.NDArray[Any], Classes, int]] = {}

    def read(self, table: Table) -> Reading:
        """The cost of the subject's value."""
        value = vector(self.subject, table)
        assert value.kind is not None
        dtype = value.values.dtype
        if dtype not in self._intervals:
            self._intervals[dtype] = self.divide(value.kind, dtype)
        cuts, class_of, null_class = self._intervals[dtype]
        look = np.ascontiguousarray(spread(value.values, table.rows))
        return Reading(look, _valid(value.valid, table.rows), class_of, null_class, cuts)

    def divide(self, kind: Kind, dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], Classes, int]:
        """The cuts, the class of each interval between them, and the class of NULL."""
        cuts = cuts_of(self.units, dtype)
        class_of = self.judge(VALUE.name, ColumnData(kind, representatives(cuts)))
        needed = class_of[1:] != class_of[:-1]
        kept = np.concatenate([class_of[:1], class_of[1:][needed]])
        null_class = int(self.judge(VALUE.name, null_of(kind))[0])
        return cuts[needed], kept, null_class


class Truth(_Judged):
    """Any other condition, tested on every row: FALSE, NULL or TRUE, and no more classes.

    The units read ``VALUE``; ``subject`` is the condition they speak of.
    """

    def __init__(self, subject: Expression, units: list[Expression]) -> None:
        super().__init__(units)
        self.subject = subject
        outcomes = from_kleene(np.array([-1, 0, 1], np.int8))
        data = ColumnData(Kind.BOOLEAN, outcomes.values, outcomes.valid)
        self.class_of = self.judge(VALUE.name, data)

    def read(self, table: Table) -> Reading:
        """The cost of the condition's truth."""
        codes = (kleene(self.subject, table) + np.int8(1)).view(np.uint8)
        return Reading(spread(codes, table.rows), _ALL_VALID, self.class_of, 0)
