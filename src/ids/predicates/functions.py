"""Arithmetic, the scalar functions, letter case and LIKE on vectors, as Spark computes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ids.model import Arithmetic, Call, Column, Expression, Kind, Literal, Negative
from ids.predicates.vector import (
    Array,
    Kleene,
    Mask,
    Objects,
    Vector,
    both_valid,
    kind_of_value,
    objects,
    take_text,
    to_kleene,
)

# Argument and result of each one-argument function; COALESCE takes and gives any one kind.
FUNCTIONS: Mapping[str, tuple[Kind, Kind]] = {
    "ABS": (Kind.NUMBER, Kind.NUMBER),
    "FLOOR": (Kind.NUMBER, Kind.NUMBER),
    "CEIL": (Kind.NUMBER, Kind.NUMBER),
    "SQRT": (Kind.NUMBER, Kind.NUMBER),
    "LOWER": (Kind.TEXT, Kind.TEXT),
    "UPPER": (Kind.TEXT, Kind.TEXT),
    "TRIM": (Kind.TEXT, Kind.TEXT),
    "LENGTH": (Kind.TEXT, Kind.NUMBER),
    "HOUR": (Kind.TIME, Kind.NUMBER),
    "MINUTE": (Kind.TIME, Kind.NUMBER),
    "DAYOFWEEK": (Kind.TIME, Kind.NUMBER),
    "DAY": (Kind.TIME, Kind.NUMBER),
    "MONTH": (Kind.TIME, Kind.NUMBER),
    "YEAR": (Kind.TIME, Kind.NUMBER),
}


def kind_of(expression: Expression, schema: Mapping[str, Kind]) -> Kind | None:
    """The kind of a bound expression; None for NULL. O(depth)."""
    match expression:
        case Column(name):
            return schema[name]
        case Literal(value):
            return kind_of_value(value)
        case Negative() | Arithmetic():
            return Kind.NUMBER
        case Call("COALESCE", arguments):
            kinds = (kind_of(argument, schema) for argument in arguments)
            return next((kind for kind in kinds if kind is not None), None)
        case Call(function, _):
            return FUNCTIONS[function][1]
        case _:
            return Kind.BOOLEAN


# Letter case. Spark does not ask Java: it maps case by the ICU library it comes with, and Spark 4.2
# has that of Unicode 17. Python has the tables of its own release (3.11: Unicode 14, 3.14: Unicode
# 16), to which a letter of a later version is no letter. What came later stands here: the new pairs
# of letters (first upper, first lower, how many in a row), and the characters by which Σ at the end
# of a word becomes ς and not σ.
_PAIRS = [
    (0x1C89, 0x1C8A, 1),
    (0xA7CB, 0x0264, 1),
    (0xA7CC, 0xA7CD, 1),
    (0xA7CE, 0xA7CF, 1),
    (0xA7D2, 0xA7D3, 1),
    (0xA7D4, 0xA7D5, 1),
    (0xA7DA, 0xA7DB, 1),
    (0xA7DC, 0x019B, 1),
    (0x10D50, 0x10D70, 22),
    (0x16EA0, 0x16EBB, 25),
]
_LOWER = {big + n: small + n for big, small, many in _PAIRS for n in range(many)}
_UPPER = {small: big for big, small in _LOWER.items()}
# letters that have no other case, and what stands in or around a word without ending it: accents,
# vowel signs, format controls
_OTHER_LETTERS = "1DF25-1DF2A"
_IGNORED = """
897 ECE 1ACF-1ADD 1AE0-1AEB A7F1 10D4E 10D69-10D6D 10D6F 10EC5 10EFA-10EFF 11241 113BB-113C0 113CE
113D0 113D2 113E1-113E2 11B60 11B62-11B64 11B66 11DD9 11F00-11F01 11F36-11F3A 11F40 11F42
11F5A 13439-13440 13447-13455 1611E-16129 1612D-1612F 16D40-16D42 16D6B-16D6C 16FF2-16FF3
1E030-1E06D 1E08F 1E4EB-1E4EF 1E5EE-1E5EF 1E6E3 1E6E6 1E6EE-1E6EF 1E6F5 1E6FF
"""


def _codes(ranges: str) -> list[int]:
    ends = [each.split("-") for each in ranges.split()]
    return [code for end in ends for code in range(int(end[0], 16), int(end[-1], 16) + 1)]


# Old characters that Σ sees in the same way. U+0295 is no cased letter any more, and U+1171E ends a
# word now; İ is a letter as before, but its lower case is of two characters.
_SEEN = {
    **dict.fromkeys([*_LOWER, *_UPPER, *_codes(_OTHER_LETTERS), ord("İ")], "a"),
    **dict.fromkeys(_codes(_IGNORED), "."),
    **dict.fromkeys([0x0295, 0x1171E], "0"),
}


def lower(text: str) -> str:
    """The text in lower case."""
    if text.isascii():
        return text.lower()
    if "Σ" in text:
        seen = text.translate(_SEEN).lower()
        text = "".join(s if c == "Σ" else c for c, s in zip(text, seen, strict=True))
    return text.translate(_LOWER).lower()


def upper(text: str) -> str:
    """The text in upper case."""
    return text.upper() if text.isascii() else text.translate(_UPPER).upper()


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


def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """A LIKE pattern as a regular expression to ``fullmatch`` with; None when it is no pattern.

    ``%`` is any text, ``_`` any one character; a backslash takes one of the three literally.
    The first occurrence of a piece between two ``%`` is always as good as a later one, so each
    piece is matched atomically: matching stays O(text * pattern), whatever the pattern.
    """
    pieces = [""]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
            if pattern[position : position + 1] not in ("%", "_", "\\"):
                return None
            pieces[-1] += re.escape(pattern[position])
        elif character == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if character == "_" else re.escape(character)
        position += 1
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    return re.compile(f"{pieces[0]}{middle}.*{pieces[-1]}", re.DOTALL)


def like(operand: Vector, pattern: str) -> Kleene:
    """``operand LIKE pattern``; each word is matched once."""
    if operand.kind is not Kind.TEXT or operand.dictionary is None:
        return np.zeros(1, np.int8)
    matcher = compile_pattern(pattern)
    assert matcher is not None, "binding has refused such a pattern"
    matches = [matcher.fullmatch(word) is not None for word in operand.dictionary]
    holds: Mask = take_text(operand, np.array(matches, np.bool_))
    return to_kleene(holds, operand.valid)
