"""An expression as a person would type it, for messages and plans."""

from __future__ import annotations

from datetime import datetime

from ids.errors import Position
from ids.model.expression import (
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
    Name,
    Negative,
    Not,
    Or,
    Value,
    children,
)

__all__ = ["position_of", "spell"]


def spell(expression: Expression) -> str:
    """The expression in SQL.

    >>> spell(Not(Comparison("=", Column("region"), Literal("EU-West"))))
    "NOT (region = 'EU-West')"
    """
    match expression:
        case Name(name) | Column(name):
            return name if name.isidentifier() else f"`{name}`"
        case Literal(value):
            return _spell_value(value)
        case Negative(operand):
            return f"-{_nested(operand)}"
        case Arithmetic(op, left, right) | Comparison(op, left, right):
            return f"{_nested(left)} {op} {_nested(right)}"
        case Call(function, arguments):
            return f"{function}({', '.join(map(spell, arguments))})"
        case In(operand, options):
            return f"{_nested(operand)} IN ({', '.join(map(spell, options))})"
        case Like(operand, pattern):
            return f"{_nested(operand)} LIKE {_spell_value(pattern)}"
        case IsNull(operand):
            return f"{_nested(operand)} IS NULL"
        case IsTrue(operand, truth):
            return f"{_nested(operand)} IS {'TRUE' if truth else 'FALSE'}"
        case Not(operand):
            return f"NOT {_nested(operand)}"
        case And(operands):
            return " AND ".join(map(_nested, operands))
        case Or(operands):
            return " OR ".join(map(_nested, operands))


def _nested(expression: Expression) -> str:
    text = spell(expression)
    return text if isinstance(expression, Name | Column | Literal | Call) else f"({text})"


def _spell_value(value: Value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.replace(tzinfo=None).isoformat(' ')}'"
    return repr(value)


def position_of(expression: Expression) -> Position | None:
    """Where the expression begins in the script, as far as its nodes know; O(nodes)."""
    found: list[Position] = []
    stack: list[Expression] = [expression]
    while stack:
        node = stack.pop()
        at = getattr(node, "at", None)
        if at is not None:
            found.append(at)
        stack.extend(children(node))
    return min(found, default=None)
