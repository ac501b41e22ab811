"""Vectors of values, and the operators and functions on them, as Spark computes them.

A vector has the values of an expression on every row, or one value if it is a constant. Comparisons
are exact for integers, order NaN above every number, and compare text by code point.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ids.errors import DataError
from ids.model import (
    DOUBLE_INTEGERS,
    Arithmetic,
    Call,
    Column,
    ColumnData,
    Expression,
    Kind,
    Literal,
    Negative,
    Table,
    Value,
    microseconds_of,
)

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Objects = npt.NDArray[np.object_]
# -1 FALSE, 0 NULL, 1 TRUE: AND is the minimum, OR the maximum, NOT the negation.
Kleene = npt.NDArray[np.int8]

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class Vector(NamedTuple):
    """Like ``ColumnData``, but ``kind`` is None for NULL, and one value may represent all rows."""

    kind: Kind | None
    values: Array
    valid: Mask | None = None
    dictionary: Objects | None = None


def column(table: Table, name: str) -> Vector:
    """Return a column; if it has more words than rows, its dictionary is reduced to those used."""
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
    if len(words) == 0:  # every row is NULL, but its code must be valid
        empty = np.zeros(len(data), np.int32)
        return Vector(Kind.TEXT, empty, np.zeros(len(data), np.bool_), objects([""]))
    if len(words) <= len(data):
        return Vector(Kind.TEXT, data.values, data.valid, words)
    used, codes = np.unique(data.values, return_inverse=True)
    return Vector(Kind.TEXT, codes, data.valid, words[cast(Array, used)])


def kind_of_value(value: Value) -> Kind | None:
    """Return the kind of a constant; NULL has none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, int | float):
        return Kind.NUMBER
    return Kind.TIME if isinstance(value, datetime) else Kind.TEXT


def constant(value: Value) -> Vector:
    """Return a vector of one value, for every row."""
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
    """Return an integer of 64 bits unchanged, and a larger one as the nearest double."""
    if isinstance(value, float) or _SMALLEST <= value <= _LARGEST:
        return value
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def objects(words: list[str]) -> Objects:
    """Return strings as an object array (NumPy would otherwise pad them to equal width)."""
    array = np.empty(len(words), np.object_)
    array[:] = words
    return array


def take_text(vector: Vector, by_word: Array) -> Array:
    """Look up each row's entry in an array with one entry per word."""
    if by_word.dtype == np.bool_ and np.count_nonzero(by_word) == 1:
        # comparing codes is many times faster than looking them up
        return cast(Array, vector.values == np.argmax(by_word))
    taken: Array = by_word[vector.values]
    return taken


def spread(array: Array, rows: int) -> Array:
    """Repeat a single value for every row; an array with all rows is returned as it is."""
    return array if len(array) == rows else np.repeat(array, rows)


def both_valid(*valid: Mask | None) -> Mask | None:
    """Return where all are valid; None if that is everywhere."""
    joint: Mask | None = None
    for mask in valid:
        if mask is not None:
            joint = mask if joint is None else joint & mask
    return joint


def to_kleene(holds: Mask, valid: Mask | None) -> Kleene:
    """Convert a mask, and where it is not NULL, to truth values."""
    truth: Kleene = (holds.view(np.int8) << 1) - np.int8(1)
    return truth if valid is None else truth * valid


def from_kleene(truth: Kleene) -> Vector:
    """Convert truth values to a BOOLEAN vector."""
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
    """Evaluate ``left op right`` for the same kind or NULL; O(rows), plus O(words) for text."""
    return to_kleene(*compared(op, left, right))


def compared(op: str, left: Vector, right: Vector) -> tuple[Mask, Mask | None]:
    """Evaluate ``left op right`` to a mask, and where it is not NULL (None: everywhere)."""
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
    """Compare integers, Booleans, timestamps and doubles, in any combination."""
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
    """Compare as in IEEE 754, except that NaN equals NaN and is greater than all numbers."""
    if len(right) == 1 and right[0] == right[0]:
        # with a constant on the right, IEEE's <, <= and = are correct: they are false for NaN
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
    """Compare exactly; return the sign of each integer minus its double."""
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
    """Evaluate ``x IN (options)``; it is NULL if x is not found and an option is NULL."""
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
    """Convert the options to the vector's type, without those that no value can equal."""
    if vector.kind is Kind.TIME:
        return np.array([microseconds_of(value) for value in values], np.int64)
    if vector.kind is Kind.BOOLEAN:
        return np.array(values, np.bool_)
    numbers = [exact_number(value) for value in values]
    if vector.values.dtype == np.float64:
        return np.array([float(n) for n in numbers if float(n) == n], np.float64)
    whole = [int(n) for n in numbers if abs(n) < 2**64 and n == int(n)]
    return np.array([n for n in whole if -(2**63) <= n < 2**63], np.int64)


# Kinds of the argument and of the result; COALESCE is not here, as it takes every kind.
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
    """Return the kind of a bound expression, None for NULL; O(depth)."""
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


# Letter case. Spark maps case with its own ICU library, which has Unicode 17 in Spark 4.2. Python
# has the tables of its own release (Unicode 14 in 3.11, Unicode 16 in 3.14). These tables add later
# characters: pairs of letters (first upper, first lower, how many in a row), and the characters
# that decide whether a Σ is at the end of a word, where it becomes ς instead of σ.
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
# letters without another case, and characters that do not end a word: accents, vowel signs, format
# controls
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


# Each character replaced by an old one that has the same effect on Σ. U+0295 is not a cased letter
# any more, and U+1171E now ends a word; İ is still a letter, but has two characters in lower case.
_SEEN = {
    **dict.fromkeys([*_LOWER, *_UPPER, *_codes(_OTHER_LETTERS), ord("İ")], "a"),
    **dict.fromkeys(_codes(_IGNORED), "."),
    **dict.fromkeys([0x0295, 0x1171E], "0"),
}


def lower(text: str) -> str:
    """Convert text to lower case."""
    if text.isascii():
        return text.lower()
    if "Σ" in text:
        seen = text.translate(_SEEN).lower()
        text = "".join(s if c == "Σ" else c for c, s in zip(text, seen, strict=True))
    return text.translate(_LOWER).lower()


def upper(text: str) -> str:
    """Convert text to upper case."""
    return text.upper() if text.isascii() else text.translate(_UPPER).upper()


NO_ROWS: Mask = np.zeros(1, np.bool_)

_HOUR = 3_600_000_000
_MINUTE = 60_000_000
_DAY = 24 * _HOUR
_WORDS: dict[str, Callable[[str], str]] = {
    "LOWER": lower,
    "UPPER": upper,
    "TRIM": lambda word: word.strip(" "),
}


class Overflow(Exception):
    """Integers overflow 64 bits on some row, which is an error only if Spark computes them."""


def arithmetic(op: str, left: Vector, right: Vector) -> Vector:
    """Compute ``left op right``; integers stay integers except for ``/``; x / 0 is NULL."""
    return _within_bits(*computed(op, left, right))


def _within_bits(value: Vector, wrapped: Mask) -> Vector:
    if wrapped.any():
        raise Overflow
    return value


def computed(op: str, left: Vector, right: Vector) -> tuple[Vector, Mask]:
    """Compute ``left op right``, and where the integers wrapped around."""
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
    wrapped = NO_ROWS
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
    """Return where a 64-bit result wrapped around."""
    if op == "+":
        return ((a ^ result) & (b ^ result)) < 0
    if op == "-":
        return ((a ^ b) & (a ^ result)) < 0
    if _magnitude(a) * _magnitude(b) < 2**63:
        return np.zeros(1, np.bool_)
    divisor = np.where((a == 0) | (a == -1), 1, a)
    dividend = np.where((a == 0) | (a == -1), 0, result)
    lost = (dividend // divisor != b) | (dividend % divisor != 0)
    negated = (a == -1) & (b == -(2**63))
    wrapped: Mask = np.where((a == 0) | (a == -1), negated, lost)
    return wrapped


def _magnitude(integers: Array) -> int:
    return max(-int(integers.min()), int(integers.max())) if len(integers) else 0


def negative(operand: Vector) -> Vector:
    """Compute ``-x``."""
    zero = Vector(Kind.NUMBER, np.zeros(1, operand.values.dtype))
    if operand.values.dtype == np.int64:
        return arithmetic("-", zero, operand)
    return operand._replace(kind=Kind.NUMBER, values=-operand.values)


def coalesce(operands: list[Vector]) -> Vector:
    """Return the first value that is not NULL; integers become doubles if others are doubles."""
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
    """Convert integers to doubles even if no NULL is replaced: types must not depend on data."""
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
    """Apply a function of one argument; functions of text cost O(words), not O(rows)."""
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
    """Compute ABS, and where the integers wrapped around."""
    wrapped = NO_ROWS
    if operand.values.dtype == np.int64:
        wrapped = operand.values == -(2**63)
        wrapped = wrapped if operand.valid is None else wrapped & operand.valid
    with np.errstate(over="ignore"):
        return operand._replace(values=np.abs(operand.values)), wrapped


def _whole(doubles: Array) -> Array:
    """Cast doubles to integers like Java: NaN is 0, too large a double is the nearest integer."""
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
    """Convert a LIKE pattern to a regular expression for ``fullmatch``; None if it is invalid.

    ``%`` matches any text, ``_`` any one character; a backslash escapes these and itself. Each
    piece between two ``%`` is matched atomically at its first occurrence, because a later one
    cannot match more: so every match takes at most O(text * pattern).
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
    """Evaluate ``operand LIKE pattern``, matching each word once."""
    if operand.kind is not Kind.TEXT or operand.dictionary is None:
        return np.zeros(1, np.int8)
    matcher = compile_pattern(pattern)
    assert matcher is not None, "the binder rejects invalid patterns"
    matches = [matcher.fullmatch(word) is not None for word in operand.dictionary]
    holds: Mask = take_text(operand, np.array(matches, np.bool_))
    return to_kleene(holds, operand.valid)
