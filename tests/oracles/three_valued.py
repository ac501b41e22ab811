"""Three-valued logic the slow way: one expression, one row, None for NULL.

Integers are exact and must fit in 64 bits (OverflowError where they do not and the row needs them),
doubles are Spark's: NaN equals itself and is above every number.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from ids.model import (
    And,
    Arithmetic,
    Call,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    columns_of,
)

Row = Mapping[str, Any]
OVERFLOW = object()


def evaluate(node: Expression, row: Row) -> Any:
    """The value of a bound expression on one row."""
    match node:
        case Column(name):
            return row[name]
        case Literal(value):
            return value
        case Negative() | Arithmetic() | Call("ABS"):
            value = number(node, row)
            if value is OVERFLOW:
                raise OverflowError(node)
            return value
        case Call("COALESCE", arguments):
            for argument in arguments:
                value = evaluate(argument, row)
                if value is not None:
                    return value
            return None
        case Call(function, (argument,)):
            return strict(FUNCTIONS[function], evaluate(argument, row))
    return condition(node, row)


def condition(node: Expression, row: Row) -> bool | None:
    match node:
        case And(operands):
            return connected(operands, row, False)
        case Or(operands):
            return connected(operands, row, True)
        case Not(operand):
            value = evaluate(operand, row)
            return None if value is None else not value
        case IsTrue(operand, truth):
            return evaluate(operand, row) is truth
        case IsNull(operand):
            return evaluate(operand, row) is None
        case Comparison("<=>", left, right):
            return compared("<=>", evaluate(left, row), evaluate(right, row))
        case Comparison(op, left, right):
            if nothing(left) or nothing(right):
                return None
            value = evaluate(left, row)
            return None if value is None else compared(op, value, evaluate(right, row))
        case In(operand, options):
            if all(option.value is None for option in options):
                return None
            value = evaluate(operand, row)
            said = [compared("=", value, option.value) for option in options]
            return True if True in said else None if None in said else False
        case Like(operand, pattern):
            text = evaluate(operand, row)
            return None if text is None else like(text, pattern)
    raise AssertionError(node)


def connected(operands: Iterable[Expression], row: Row, decides: bool) -> bool | None:
    """AND and OR: from left to right, constants first, until the answer is sure."""
    known = True
    for operand in sorted(operands, key=lambda each: any(columns_of(each))):
        value: bool | None = evaluate(operand, row)
        if value is decides:
            return decides
        known = known and value is not None
    return not decides if known else None


def number(node: Expression, row: Row) -> Any:
    """A number, or OVERFLOW where its integers leave 64 bits and nothing in it is NULL."""
    match node:
        case Negative(operand) if whole(operand, row):
            return number(Arithmetic("-", Literal(0), operand), row)
        case Negative(operand):
            return strict(lambda x: -x, evaluate(operand, row))
        case Call("ABS", (argument,)):
            return fitted(abs, number(argument, row))
        case Arithmetic(op, left, right):
            if nothing(left) or nothing(right):
                return None
            part = number if whole(node, row) else evaluate
            if op in "/%":  # the divisor first
                divisor = part(right, row)
                if divisor is None or divisor == 0:
                    return None
                return fitted(ARITHMETIC[op], part(left, row), divisor)
            first = part(left, row)
            return None if first is None else fitted(ARITHMETIC[op], first, part(right, row))
    return evaluate(node, row)


def fitted(function: Callable[..., Any], *values: Any) -> Any:
    if None in values:
        return None
    if OVERFLOW in values:
        return OVERFLOW
    value = function(*values)
    return OVERFLOW if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def whole(node: Expression, row: Row) -> bool:
    """Whether a number is an integer; of NULLs, i and j are (tests/predicates/strategies.py)."""
    match node:
        case Column(name):
            return isinstance(row[name], int) or (row[name] is None and name in "ij")
        case Literal(value):
            return isinstance(value, int)
        case Arithmetic(op, left, right):
            return op != "/" and all(nothing(x) or whole(x, row) for x in (left, right))
        case Negative(operand) | Call("ABS", (operand,)):
            return nothing(operand) or whole(operand, row)
        case Call("COALESCE", arguments):
            return all(whole(each, row) for each in arguments if not nothing(each))
    return isinstance(node, Call) and node.function != "SQRT"


def nothing(node: Expression) -> bool:
    """Whether it is the constant NULL, of no type."""
    match node:
        case Literal(value):
            return value is None
        case Call(_, arguments):
            return all(map(nothing, arguments))
    return False


def strict(function: Callable[..., Any], *values: Any) -> Any:
    return None if any(value is None for value in values) else function(*values)


def compared(op: str, a: Any, b: Any) -> bool | None:
    if op == "<=>":
        return order(a, b) == 0 if a is not None and b is not None else a is b
    if a is None or b is None:
        return None
    sign = order(a, b)
    return {
        "=": sign == 0,
        "<>": sign != 0,
        "<": sign < 0,
        "<=": sign <= 0,
        ">": sign > 0,
        ">=": sign >= 0,
    }[op]


def order(a: Any, b: Any) -> int:
    """-1, 0 or 1; Python compares an int with a float exactly, and str by code point."""
    if nan(a) or nan(b):
        return int(nan(a)) - int(nan(b))
    return int(a > b) - int(a < b)


def nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def divide(a: Any, b: Any) -> float | None:
    if b == 0:
        return None
    return float(a) / float(b)


def remainder(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) % abs(b) * (1 if a >= 0 else -1)
    a, b = float(a), float(b)
    if nan(a) or nan(b) or math.isinf(a):
        return math.nan
    return math.fmod(a, b)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
    "%": remainder,
}


def to_long(value: Any, rounded: Callable[[Any], int]) -> int:
    """As Java does: NaN is 0, what does not fit is the nearest that does."""
    if nan(value):
        return 0
    if math.isinf(value):
        return 2**63 - 1 if value > 0 else -(2**63)
    return max(-(2**63), min(2**63 - 1, rounded(value)))


def day_of_week(instant: datetime) -> int:
    return (instant + timedelta(days=1)).isoweekday()


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "FLOOR": lambda x: to_long(x, math.floor),
    "CEIL": lambda x: to_long(x, math.ceil),
    "SQRT": lambda x: math.nan if nan(x) or x < 0 else math.sqrt(x),
    "LOWER": str.lower,
    "UPPER": str.upper,
    "LENGTH": len,
    "TRIM": lambda text: text.strip(" "),
    "HOUR": lambda instant: instant.hour,
    "MINUTE": lambda instant: instant.minute,
    "DAYOFWEEK": day_of_week,
    "DAY": lambda instant: instant.day,
    "MONTH": lambda instant: instant.month,
    "YEAR": lambda instant: instant.year,
}


def like(text: str, pattern: str) -> bool:
    """By the definition: the first character of the pattern says what the text may begin with."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return any(like(text[start:], rest) for start in range(len(text) + 1))
    if first == "\\":
        first, rest = rest[0], rest[1:]
    elif first == "_":
        return bool(text) and like(text[1:], rest)
    return text[:1] == first and like(text[1:], rest)
