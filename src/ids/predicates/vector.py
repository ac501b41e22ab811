"""Vectors: the values of an expression on every row, or one value where it is a constant.

They are compared as Spark compares: integers exactly, NaN above every number, text by code point.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ids.errors import DataError
from ids.model import DOUBLE_INTEGERS, ColumnData, Kind, Literal, Table, Value, microseconds_of

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


def kind_of_value(value: Value) -> Kind | None:
    """The kind of a constant; NULL is of any kind, hence of none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, int | float):
        return Kind.NUMBER
    return Kind.TIME if isinstance(value, datetime) else Kind.TEXT


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


_UFUNC: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def compare(op: str, left: Vector, right: Vector) -> Kleene:
    """``left op right``; both of one kind, or NULL. O(rows), text O(words) more."""
    return to_kleene(*compared(op, left, right))


def compared(op: str, left: Vector, right: Vector) -> tuple[Mask, Mask | None]:
    """The same as a mask, and where it is known (None: everywhere)."""
    valid = both_valid(left.valid, right.valid)
    if left.kind is None or right.kind is None:
        holds: Mask = np.zeros(1, np.bool_)
    elif left.kind is Kind.TEXT:
        holds = _texts("=" if op == "<=>" else op, left, right)
    else:
        holds = _numbers("=" if op == "<=>" else op, left.values, right.values)
    if op != "<=>":
        return holds, valid
    if valid is not None:
        holds = (holds & valid) | ~(_known(left) | _known(right))
    return holds, None


def _known(vector: Vector) -> Mask:
    return np.ones(1, np.bool_) if vector.valid is None else vector.valid


def _numbers(op: str, left: Array, right: Array) -> Mask:
    """Integers, Booleans, instants and doubles, in any mixture."""
    left_double, right_double = left.dtype == np.float64, right.dtype == np.float64
    if left_double and right_double:
        return _doubles(op, left, right)
    if left_double or right_double:
        integers = right if left_double else left
        if _are_doubles(integers):
            as_doubles = (side.astype(np.float64, copy=False) for side in (left, right))
            return _doubles(op, *as_doubles)
        sign = _order(left, right) if right_double else -_order(right, left)
        return cast(Mask, _UFUNC[op](sign, 0))
    return cast(Mask, _UFUNC[op](left, right))


def _are_doubles(integers: Array) -> bool:
    if len(integers) == 0:
        return True
    low, high = int(integers.min()), int(integers.max())
    return low >= -DOUBLE_INTEGERS and high <= DOUBLE_INTEGERS


def _doubles(op: str, left: Array, right: Array) -> Mask:
    """IEEE comparison, mended where NaN stands: NaN = NaN, and NaN is above the rest."""
    if len(right) == 1 and right[0] == right[0]:
        # beside a constant IEEE's own <, <= and = are right: they are false of NaN
        positive = {">": "<=", ">=": "<", "<>": "="}.get(op)
        return cast(Mask, _UFUNC[op](left, right) if positive is None else
                    ~_UFUNC[positive](left, right))  # fmt: skip
    if op in ("<", ">"):
        return ~_doubles(">=" if op == "<" else "<=", left, right)
    if op == "<>":
        return ~_doubles("=", left, right)
    holds = cast(Mask, _UFUNC[op](left, right))
    if op == ">=":
        return holds | np.isnan(left)
    if op == "<=":
        return holds | np.isnan(right)
    return holds | (np.isnan(left) & np.isnan(right))


def _order(integers: Array, doubles: Array) -> Array:
    """-1, 0 or 1 as the integer is below, at or above the double; exact beyond 2**53."""
    floor = np.floor(doubles)
    within = (floor >= -(2.0**63)) & (floor < 2.0**63)
    whole = np.where(within, floor, 0.0).astype(np.int64)
    sign = np.sign((integers > whole) * 1 - (integers < whole) * 1)
    sign = np.where((sign == 0) & (floor != doubles), -1, sign)
    return np.where(within, sign, np.where(floor < 0, 1, -1)).astype(np.int8)


def _texts(op: str, left: Vector, right: Vector) -> Mask:
    assert left.dictionary is not None
    assert right.dictionary is not None
    if len(right.dictionary) == 1:
        return take_text(left, _UFUNC[op](left.dictionary, right.dictionary))
    if len(left.dictionary) == 1:
        return take_text(right, _UFUNC[op](left.dictionary, right.dictionary))
    words = sorted({*left.dictionary, *right.dictionary})
    rank = {word: position for position, word in enumerate(words)}
    ranks = [
        take_text(side, np.array([rank[word] for word in cast(Array, side.dictionary)]))
        for side in (left, right)
    ]
    return cast(Mask, _UFUNC[op](*ranks))


def within(vector: Vector, options: tuple[Literal, ...]) -> Kleene:
    """``x IN (options)``: not found beside a NULL option is NULL."""
    values = [option.value for option in options if option.value is not None]
    if vector.kind is None:
        return np.zeros(1, np.int8)
    if vector.kind is Kind.TEXT:
        assert vector.dictionary is not None
        wanted = set(values)
        by_word = np.array([word in wanted for word in vector.dictionary], np.bool_)
        found: Mask = take_text(vector, by_word)
    else:
        found = np.isin(vector.values, _alike(values, vector))
        if any(isinstance(value, float) and value != value for value in values):
            found = found | np.isnan(vector.values)
    truth = to_kleene(found, vector.valid)
    if len(values) < len(options):
        np.maximum(truth, 0, out=truth)
    return truth


def _alike(values: list[Any], vector: Vector) -> Array:
    """The options that a value of the vector's type can equal at all, in that type."""
    if vector.kind is Kind.TIME:
        return np.array([microseconds_of(value) for value in values], np.int64)
    if vector.kind is Kind.BOOLEAN:
        return np.array(values, np.bool_)
    numbers = [exact_number(value) for value in values]
    if vector.values.dtype == np.float64:
        return np.array([float(n) for n in numbers if float(n) == n], np.float64)
    whole = [int(n) for n in numbers if abs(n) < 2**64 and n == int(n)]
    return np.array([n for n in whole if -(2**63) <= n < 2**63], np.int64)
