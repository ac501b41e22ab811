"""Rendering: an expression as the SQL text that parses back to it."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from ids.errors import ScriptError
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
)

__all__ = ["RESERVED", "backtick_hint", "brief", "quoted", "render"]

RESERVED = frozenset(
    (
        *("AND", "APPROXIMATE", "AS", "BETWEEN", "CASE", "CAST", "DISTINCT", "DIV"),
        *("EMIT", "ESCAPE", "EXISTS", "FALSE", "FROM", "ILIKE", "IN", "INTERVAL"),
        *("IS", "LIKE", "NOT", "NULL", "ON", "OR", "OVER", "REGEXP"),
        *("RLIKE", "SELECT", "TRUE", "WHERE", "WINDOW", "WITH"),
    )
)
"""Words that are names only in backticks."""

_SHOWN = 60
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _ATOM = range(1, 9)


def quoted(name: str) -> str:
    """The name as the script writes it: in backticks if it needs them.

    >>> quoted("region"), quoted("my region"), quoted("window")
    ('region', '`my region`', '`window`')
    """
    if _PLAIN.fullmatch(name) and name.upper() not in RESERVED:
        return name
    return _backticked(name)


def _backticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def backtick_hint(name: str) -> str:
    """The hint for text that stands where a name is meant, as PostgreSQL and DuckDB quote names.

    >>> backtick_hint("region")
    'did you mean `region`? Quotes write text, backticks a name'
    """
    return f"did you mean {_backticked(name)}? Quotes write text, backticks a name"


def render(expression: Expression) -> str:
    """SQL text of an expression, parentheses only where they are needed; O(size).

    >>> from ids.model.expression import Literal, Name
    >>> render(Not(Or((Name("a"), Comparison("=", Name("region"), Literal("EU-West"))))))
    "NOT (a OR region = 'EU-West')"
    """
    return _render(expression)[0]


def brief(expression: Expression) -> str:
    """The same for an error message: not too long."""
    text = render(expression)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _render(expression: Expression) -> tuple[str, int]:
    match expression:
        case Name(name) | Column(name):
            return quoted(name), _ATOM
        case Literal(value):
            return _literal(value), _ATOM
        case Call(function, arguments):
            return f"{function}({', '.join(map(render, arguments))})", _ATOM
        case Negative(operand):
            # A signed operand needs parentheses too: "--" would begin a comment.
            text, level = _render(operand)
            return f"-({text})" if level < _ATOM or text.startswith("-") else f"-{text}", _SIGN
        case Arithmetic(op, left, right):
            level = _SUM if op in "+-" else _PRODUCT
            return f"{_above(left, level)} {op} {_above(right, level + 1)}", level
        case And(operands):
            return " AND ".join(_above(operand, _NOT) for operand in operands), _AND
        case Or(operands):
            return " OR ".join(_above(operand, _AND) for operand in operands), _OR
        case Not(operand):
            return _negated(operand)
        case _:
            return _comparison(expression, ""), _COMPARISON


def _negated(operand: Expression) -> tuple[str, int]:
    if isinstance(operand, In | Like | IsNull | IsTrue):
        return _comparison(operand, "NOT "), _COMPARISON
    return f"NOT {_above(operand, _SUM)}", _NOT


def _comparison(expression: Expression, negation: str) -> str:
    match expression:
        case Comparison(op, left, right):
            return f"{_above(left, _SUM)} {op} {_above(right, _SUM)}"
        case In(operand, options):
            listed = ", ".join(_literal(option.value) for option in options)
            return f"{_above(operand, _SUM)} {negation}IN ({listed})"
        case Like(operand, pattern):
            return f"{_above(operand, _SUM)} {negation}LIKE {_literal(pattern)}"
        case IsNull(operand):
            return f"{_above(operand, _SUM)} IS {negation}NULL"
        case IsTrue(operand, truth):
            return f"{_above(operand, _SUM)} IS {negation}{'TRUE' if truth else 'FALSE'}"
        case _:
            raise TypeError(f"not an expression: {expression!r}")


def _above(expression: Expression, least: int) -> str:
    """The text, in parentheses if the node binds less tightly than ``least``."""
    text, level = _render(expression)
    return text if level >= least else f"({text})"


def _literal(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case datetime():
            return f"TIMESTAMP '{value.astimezone(UTC).isoformat(sep=' ')}'"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0")
            return f"'{escaped}'"
        case float() if not math.isfinite(value):
            raise ScriptError(f"{value!r} has no SQL literal", hint="only finite numbers do")
        case _:
            return repr(value)
