"""Arithmetic and scalar functions on vectors, as Spark computes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ids.model.table import Kind
from ids.predicates.letter_case import lower, upper
from ids.predicates.vector import (
    Array,
    Mask,
    Objects,
    Vector,
    both_valid,
    objects,
    take_text,
)

__all__ = [
    "NOWHERE",
    "Overflow",
    "absolute",
    "arithmetic",
    "call",
    "coalesce",
    "computed",
    "negative",
]

NOWHERE: Mask = np.zeros(1, np.bool_)

_HOUR = 3_600_000_000
_MINUTE = 60_000_000
_DAY = 24 * _HOUR
_WORDS: dict[str, Callable[[str], str]] = {
    "LOWER": lower,
    "UPPER": upper,
    "TRIM": lambda word: word.strip(" "),
}


class Overflow(Exception):
    """Integers leave 64 bits on some row; whether that row needs them is for others to say."""


def arithmetic(op: str, left: Vector, right: Vector) -> Vector:
    """``left op right``: integers stay integers (but for ``/``), division by zero is NULL."""
    return _within_bits(*computed(op, left, right))


def _within_bits(value: Vector, wrapped: Mask) -> Vector:
    if wrapped.any():
        raise Overflow
    return value


def computed(op: str, left: Vector, right: Vector) -> tuple[Vector, Mask]:
    """The same, and where the integers wrapped around."""
    valid = both_valid(left.valid, right.valid)
    a, b = left.values, right.values
    if op == "/" or a.dtype != b.dtype:
        a, b = a.astype(np.float64), b.astype(np.float64)
    if op in "/%":
        divides = b != 0
        if not divides.all():
            b = np.where(divides, b, np.ones(1, b.dtype))
            valid = both_valid(valid, divides)
    with np.errstate(all="ignore"):
        values = _combine(op, a, b)
    wrapped = NOWHERE
    if values.dtype == np.int64 and op in "+-*":
        wrapped = _wrapped(op, a, b, values)
        wrapped = wrapped if valid is None else wrapped & valid
    return Vector(Kind.NUMBER, values, valid), wrapped


def _combine(op: str, a: Array, b: Array) -> Array:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b
    # The smallest integer % -1 traps on some processors; modulo 1 it is 0 as well.
    return np.fmod(a, np.where(b == -1, -b, b)) if a.dtype == np.int64 else np.fmod(a, b)


def _wrapped(op: str, a: Array, b: Array, result: Array) -> Mask:
    """Where a 64-bit result wrapped around."""
    if op == "+":
        return ((a ^ result) & (b ^ result)) < 0
    if op == "-":
        return ((a ^ b) & (a ^ result)) < 0
    if _reach(a) * _reach(b) < 2**63:
        return np.zeros(1, np.bool_)
    divisor = np.where((a == 0) | (a == -1), 1, a)
    dividend = np.where((a == 0) | (a == -1), 0, result)
    lost = (dividend // divisor != b) | (dividend % divisor != 0)
    negated = (a == -1) & (b == -(2**63))
    wrapped: Mask = np.where((a == 0) | (a == -1), negated, lost)
    return wrapped


def _reach(integers: Array) -> int:
    return max(-int(integers.min()), int(integers.max())) if len(integers) else 0


def negative(operand: Vector) -> Vector:
    """``-x``."""
    zero = Vector(Kind.NUMBER, np.zeros(1, operand.values.dtype))
    if operand.values.dtype == np.int64:
        return arithmetic("-", zero, operand)
    return operand._replace(kind=Kind.NUMBER, values=-operand.values)


def coalesce(operands: list[Vector]) -> Vector:
    """The first that is not NULL; integers beside doubles become doubles."""
    result = operands[0]
    for other in operands[1:]:
        if result.kind is None:
            result = other
        elif other.kind is None or result.valid is None:
            result = _promote(result, other)
        else:
            result = _fill(result, result.valid, other)
    return result


def _promote(result: Vector, other: Vector) -> Vector:
    """The type must not depend on whether a batch happens to hold a NULL."""
    mixed = result.kind is Kind.NUMBER and other.kind is Kind.NUMBER
    if mixed and result.values.dtype != other.values.dtype:
        return result._replace(values=result.values.astype(np.float64))
    return result


def _fill(result: Vector, valid: Mask, other: Vector) -> Vector:
    known = None if other.valid is None else valid | other.valid
    if result.kind is not Kind.TEXT:
        return Vector(result.kind, np.where(valid, result.values, other.values), known)
    assert result.dictionary is not None
    assert other.dictionary is not None
    codes = np.where(valid, result.values, other.values + len(result.dictionary))
    words: Objects = np.concatenate([result.dictionary, other.dictionary])
    return Vector(Kind.TEXT, codes, known, words)


def call(function: str, operand: Vector) -> Vector:
    """A function of one argument; NULL of NULL. Text functions cost O(words), not rows."""
    if operand.kind is None:
        return operand
    if operand.kind is Kind.TEXT:
        return _of_text(function, operand)
    if operand.kind is Kind.TIME:
        return Vector(Kind.NUMBER, _of_time(function, operand.values), operand.valid)
    return _of_number(function, operand)


def _of_text(function: str, operand: Vector) -> Vector:
    assert operand.dictionary is not None
    if function == "LENGTH":
        lengths = np.array([len(word) for word in operand.dictionary], np.int64)
        return Vector(Kind.NUMBER, take_text(operand, lengths), operand.valid)
    change = _WORDS[function]
    return operand._replace(dictionary=objects([change(word) for word in operand.dictionary]))


def _of_number(function: str, operand: Vector) -> Vector:
    values = operand.values
    if function == "SQRT":
        with np.errstate(invalid="ignore"):
            return operand._replace(values=np.sqrt(values.astype(np.float64)))
    if function == "ABS":
        return _within_bits(*absolute(operand))
    if values.dtype == np.int64:
        return operand
    return operand._replace(
        values=_whole(np.floor(values) if function == "FLOOR" else np.ceil(values))
    )


def absolute(operand: Vector) -> tuple[Vector, Mask]:
    """ABS, and where the integers wrapped around."""
    wrapped = NOWHERE
    if operand.values.dtype == np.int64:
        wrapped = operand.values == -(2**63)
        wrapped = wrapped if operand.valid is None else wrapped & operand.valid
    with np.errstate(over="ignore"):
        return operand._replace(values=np.abs(operand.values)), wrapped


def _whole(doubles: Array) -> Array:
    """As Java casts a double to a long: NaN is 0, what is too large is the nearest long."""
    low, high = doubles < -(2.0**63), doubles >= 2.0**63
    inside = np.where(low | high | np.isnan(doubles), 0.0, doubles).astype(np.int64)
    return np.where(high, 2**63 - 1, np.where(low, -(2**63), inside))


def _of_time(function: str, instants: Array) -> Array:
    match function:
        case "HOUR":
            return (instants // _HOUR) % 24
        case "MINUTE":
            return (instants // _MINUTE) % 60
        case "DAYOFWEEK":  # 1970-01-01 was a Thursday, and 1 is Sunday
            return (instants // _DAY + 4) % 7 + 1
    days: Any = instants.astype("datetime64[us]").astype("datetime64[D]")
    months: Any = days.astype("datetime64[M]")
    part: Array
    if function == "DAY":
        part = (days - months).astype(np.int64) + 1
    elif function == "MONTH":
        part = months.astype(np.int64) % 12 + 1
    else:
        part = months.astype("datetime64[Y]").astype(np.int64) + 1970
    return part
