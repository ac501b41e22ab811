"""Comparison as Spark compares: exact integers, NaN above every number, text by code point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ids.model.expression import Literal
from ids.model.table import DOUBLE_INTEGERS, Kind
from ids.predicates.instants import microseconds_of
from ids.predicates.vector import (
    Array,
    Kleene,
    Mask,
    Vector,
    both_valid,
    exact_number,
    take_text,
    to_kleene,
)

__all__ = ["compare", "compared", "within"]

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
