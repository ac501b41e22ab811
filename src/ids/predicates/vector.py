"""Vectors: the values of an expression on every row, or on one row when it is a constant."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ids.errors import DataError
from ids.model.expression import Value
from ids.model.table import ColumnData, Kind, Table
from ids.predicates.instants import microseconds_of
from ids.predicates.kinds import kind_of_value

__all__ = [
    "Array",
    "Kleene",
    "Mask",
    "Objects",
    "Vector",
    "both_valid",
    "column",
    "constant",
    "exact_number",
    "from_kleene",
    "objects",
    "spread",
    "take_text",
    "to_kleene",
]

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Objects = npt.NDArray[np.object_]
# -1 FALSE, 0 NULL, 1 TRUE: AND is the minimum, OR the maximum, NOT the negation.
Kleene = npt.NDArray[np.int8]

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Vector(NamedTuple):
    """As ``ColumnData``, but ``kind`` is None for NULL, and length 1 stands for any length."""

    kind: Kind | None
    values: Array
    valid: Mask | None = None
    dictionary: Objects | None = None


def column(table: Table, name: str) -> Vector:
    """A column as it is; a TEXT column longer in words than in rows keeps the words in use."""
    try:
        data = table.columns[name]
    except KeyError:
        raise DataError(f"the rows have no column {name!r}") from None
    if data.kind is not Kind.TEXT:
        return Vector(data.kind, data.values, data.valid)
    return _text(data)


def _text(data: ColumnData) -> Vector:
    assert data.dictionary is not None
    words = data.dictionary
    if len(words) == 0:  # every row is NULL, and still needs a word to point at
        empty = np.zeros(len(data), np.int32)
        return Vector(Kind.TEXT, empty, np.zeros(len(data), np.bool_), objects([""]))
    if len(words) <= len(data):
        return Vector(Kind.TEXT, data.values, data.valid, words)
    used, codes = np.unique(data.values, return_inverse=True)
    return Vector(Kind.TEXT, codes, data.valid, words[cast(Array, used)])


def constant(value: Value) -> Vector:
    """One value for every row."""
    kind = kind_of_value(value)
    if value is None:
        return Vector(None, np.zeros(1, np.int64), np.zeros(1, np.bool_))
    if isinstance(value, str):
        return Vector(kind, np.zeros(1, np.int32), None, objects([value]))
    if kind is Kind.NUMBER:
        return Vector(kind, np.array([exact_number(cast(float, value))]))
    if kind is Kind.TIME:
        return Vector(kind, np.array([microseconds_of(cast(Any, value))], np.int64))
    return Vector(kind, np.array([value], np.bool_))


def exact_number(value: int | float) -> int | float:
    """An integer that 64 bits hold stays one; a larger one is the nearest double."""
    if isinstance(value, float) or _SMALLEST <= value <= _LARGEST:
        return value
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def objects(words: list[str]) -> Objects:
    """Strings as an object array (NumPy would otherwise pad them to one width)."""
    array = np.empty(len(words), np.object_)
    array[:] = words
    return array


def take_text(vector: Vector, by_word: Array) -> Array:
    """What holds of each word of the dictionary, for each row."""
    if by_word.dtype == np.bool_ and np.count_nonzero(by_word) == 1:
        # comparing codes is many times faster than looking each of them up
        return cast(Array, vector.values == np.argmax(by_word))
    taken: Array = by_word[vector.values]
    return taken


def spread(array: Array, rows: int) -> Array:
    """An array of every row, where length 1 stands for any length; not copied when it is one."""
    return array if len(array) == rows else np.repeat(array, rows)


def both_valid(*valid: Mask | None) -> Mask | None:
    """Where none is NULL; None when that is everywhere."""
    joint: Mask | None = None
    for mask in valid:
        if mask is not None:
            joint = mask if joint is None else joint & mask
    return joint


def to_kleene(holds: Mask, valid: Mask | None) -> Kleene:
    """Truth values from a mask and where it is known."""
    truth: Kleene = (holds.view(np.int8) << 1) - np.int8(1)
    return truth if valid is None else truth * valid


def from_kleene(truth: Kleene) -> Vector:
    """Truth values as a BOOLEAN vector."""
    return Vector(Kind.BOOLEAN, truth > 0, truth != 0)
