"""Strata: each combination of the declared columns' values has a code, and its rows are counted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ids.errors import UnknownNameError
from ids.model import ColumnData, Kind, Table

Codes = npt.NDArray[np.int32]
Counts = npt.NDArray[np.int64]
Key = tuple[Any, ...]

_FEW = 1024
_NAN = math.nan  # one object: a key is found again by identity where equality says no


class Strata:
    """Combinations of values (NULL is one) and how many rows of the window each has.

    A code is given out in ``codes`` and counted in ``insert``, batch by batch. Codes whose rows
    have all left are given out again once they are most, so a stream of ever new values stays
    small.
    """

    def __init__(self, columns: Sequence[str], kinds: Mapping[str, Kind]) -> None:
        for name in columns:
            if name not in kinds:
                raise UnknownNameError("column", name, kinds)
        self.columns = tuple(columns)
        self._kinds = {name: kinds[name] for name in columns}
        self._code: dict[Key, int] = {}
        self._free: list[int] = []
        self.population: Counts = np.zeros(0 if columns else 1, np.int64)

    def codes(self, table: Table) -> Codes:
        """The stratum of each row; a new combination gets a code. Python only per combination."""
        if not self.columns:
            return np.zeros(table.rows, np.int32)
        if not table.rows:
            return np.zeros(0, np.int32)
        place: Counts = np.zeros(table.rows, np.int64)
        firsts: Counts = np.zeros(1, np.int64)
        for name in self.columns:
            own, width = _numbered(table.columns[name])
            firsts, place = _distinct(place * width + own, len(firsts) * width)
        keys = [self._values(table, int(row)) for row in firsts]
        known = np.array([self._number(key) for key in keys], np.int32)
        return known[place]

    def _values(self, table: Table, row: int) -> Key:
        return tuple(_value(table.columns[name], row) for name in self.columns)

    def _number(self, key: Key) -> int:
        code = self._code.get(key)
        if code is None:
            if self._free:
                code = self._free.pop()
            else:
                code = len(self.population)
                self.population = np.append(self.population, 0)
            self._code[key] = code
        return code

    def insert(self, codes: Codes) -> None:
        """Rows of these strata came in."""
        self.population += self._counted(codes)
        if len(self._code) > _FEW + 2 * int(np.count_nonzero(self.population)):
            gone = [key for key, code in self._code.items() if not self.population[code]]
            self._free += [self._code.pop(key) for key in gone]

    def expire(self, codes: Codes) -> None:
        """Rows of these strata left."""
        self.population -= self._counted(codes)

    def _counted(self, codes: Codes) -> Counts | int:
        if not self.columns:
            return len(codes)
        return np.bincount(codes, minlength=len(self.population))

    def clear(self) -> None:
        """No row is inside; codes keep their meaning."""
        self.population[:] = 0

    def table(self, codes: npt.NDArray[np.int64]) -> Table | None:
        """The values of these strata, one row each; None without strata."""
        if not self.columns:
            return None
        keys: dict[int, Key] = {code: key for key, code in self._code.items()}
        chosen = [keys[int(code)] for code in codes]
        return Table(
            {
                name: _column(self._kinds[name], [key[n] for key in chosen])
                for n, name in enumerate(self.columns)
            },
            len(chosen),
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the counts and of the values' text, roughly."""
        words = sum(len(str(value)) + 8 for key in self._code for value in key)
        return self.population.nbytes + words

    def facts(self) -> list[list[Any]]:
        """Each combination and its code, for a checkpoint."""
        return [[code, *key] for key, code in self._code.items()]

    def restore(self, facts: Sequence[Sequence[Any]], population: Counts) -> None:
        """Take the place of strata that were written to a checkpoint."""
        self._code = {tuple(_one_nan(v) for v in key): code for code, *key in facts}
        self.population = population.copy()
        used = set(self._code.values())
        self._free = [c for c in range(len(population)) if c not in used] if self.columns else []


def _numbered(column: ColumnData) -> tuple[Counts, int]:
    """Equal values as equal numbers below a width; NULL is one of them."""
    if column.kind is Kind.TEXT:
        words = 0 if column.dictionary is None else len(column.dictionary)
        own, width = column.values.astype(np.int64), words
    else:
        distinct, own = np.unique(column.values, return_inverse=True)
        own, width = own.ravel(), len(distinct)
    if column.valid is not None:
        own = np.where(column.valid, own, width)
    return own, width + 1


def _distinct(numbers: Counts, bound: int) -> tuple[Counts, Counts]:
    """A row of each distinct number below ``bound``, and which of those every row equals."""
    if bound > 4 * len(numbers):
        _, firsts, place = np.unique(numbers, return_index=True, return_inverse=True)
        return firsts, place.ravel()
    row = np.full(bound, -1, np.int64)
    row[numbers] = np.arange(len(numbers))
    there = row >= 0
    return row[there], (np.cumsum(there) - 1)[numbers]


def _value(column: ColumnData, row: int) -> Any:
    if column.valid is not None and not column.valid[row]:
        return None
    if column.dictionary is not None:
        return column.dictionary[int(column.values[row])]
    return _one_nan(column.values[row].item())


def _one_nan(value: Any) -> Any:
    return _NAN if isinstance(value, float) and math.isnan(value) else value


def _column(kind: Kind, values: list[Any]) -> ColumnData:
    valid = np.array([value is not None for value in values], np.bool_)
    given = None if valid.all() else valid
    if kind is Kind.TEXT:
        words = [value or "" for value in values]
        dictionary = np.array([*words, ""], dtype=object)
        return ColumnData(kind, np.arange(len(words), dtype=np.int32), given, dictionary)
    dtype = {Kind.BOOLEAN: np.bool_, Kind.TIME: np.int64}.get(kind)
    filled = [0 if value is None else value for value in values]
    if kind is Kind.NUMBER:
        whole = all(isinstance(value, int) for value in filled)
        dtype = np.int64 if whole else np.float64
    return ColumnData(kind, np.array(filled, dtype), given)
