"""Expressions: the trees of conditions, predicates and measures, and their SQL text.

There are few node types on purpose: the parser rewrites ``BETWEEN`` as two comparisons, ``NOT IN``
as ``Not(In)`` and ``!=`` as ``<>``, so that the evaluation in process and on Spark stays small.
Nodes are frozen and hashable, so a tree can be a dict key. ``render`` returns SQL text that parses
back to the same tree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ids.errors import Position, ScriptError

Value = None | bool | int | float | str | datetime

# The operator to use when the two sides of a comparison are swapped.
MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>", "<=>": "<=>"}


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier before it is resolved to a column or a registered predicate."""

    name: str
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Column:
    """A resolved column, under its exact name in the table."""

    name: str
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; a datetime is aware and in UTC. TRUE and 1 are different literals.

    ``double_quoted`` is set for text in double quotes, which in other databases is a name.
    """

    value: Value
    at: Position | None = field(default=None, compare=False)
    double_quoted: bool = field(default=False, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Literal)
            and type(self.value) is type(other.value)
            and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((type(self.value).__name__, self.value))


@dataclass(frozen=True, slots=True)
class Negative:
    """``-x``."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left op right``; op is one of ``+ - * / %`` (``/`` is double division, as in Spark)."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a scalar function; its name is in upper case."""

    function: str
    arguments: tuple[Expression, ...]
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left op right``; op is one of ``= <> < <= > >= <=>`` (``<=>`` is NULL-safe equality)."""

    op: str
    left: Expression
    right: Expression
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class In:
    """``operand IN (options)``; every option is a literal."""

    operand: Expression
    options: tuple[Literal, ...]
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Like:
    """``operand LIKE pattern`` with ``%``, ``_`` and the escape ``\\``."""

    operand: Expression
    pattern: str
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    """``operand IS NULL``, which is never NULL."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class IsTrue:
    """``operand IS TRUE`` or ``operand IS FALSE``, which is never NULL."""

    operand: Expression
    truth: bool = True


@dataclass(frozen=True, slots=True)
class Not:
    """Three-valued ``NOT``."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class And:
    """Three-valued ``AND`` of two operands or more."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Three-valued ``OR`` of two operands or more."""

    operands: tuple[Expression, ...]


Expression = (
    Name
    | Column
    | Literal
    | Negative
    | Arithmetic
    | Call
    | Comparison
    | In
    | Like
    | IsNull
    | IsTrue
    | Not
    | And
    | Or
)


def children(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands of one node, from left to right."""
    match expression:
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            return (left, right)
        case And(operands) | Or(operands):
            return operands
        case Call(_, arguments):
            return arguments
        case In() | Like() | IsNull() | IsTrue() | Not() | Negative():
            return (expression.operand,)
        case _:
            return ()


def nodes(expression: Expression) -> Iterator[Expression]:
    """Iterate over all nodes of a tree of any depth, from left to right."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def columns_of(expression: Expression) -> Iterator[str]:
    """Iterate over the names of the columns that an expression reads, with repeats."""
    return (node.name for node in nodes(expression) if isinstance(node, Column))


def position_of(expression: Expression) -> Position | None:
    """Return the first known position of a node in the script, if any; O(nodes)."""
    positions = (getattr(node, "at", None) for node in nodes(expression))
    return min((at for at in positions if at is not None), default=None)


RESERVED = frozenset(
    (
        *("AND", "APPROXIMATE", "AS", "BETWEEN", "CASE", "CAST", "DISTINCT", "DIV"),
        *("EMIT", "ESCAPE", "EXISTS", "FALSE", "FROM", "ILIKE", "IN", "INTERVAL"),
        *("IS", "LIKE", "NOT", "NULL", "ON", "OR", "OVER", "REGEXP"),
        *("RLIKE", "SELECT", "TRUE", "WHERE", "WINDOW", "WITH"),
    )
)
"""Keywords, which need backticks when they are used as names."""

_SHOWN = 60
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _SIGN, _ATOM = range(1, 9)


def quoted(name: str, *, always: bool = False) -> str:
    """Quote a name in backticks if it needs them or if ``always`` is set.

    >>> quoted("region"), quoted("my region"), quoted("window")
    ('region', '`my region`', '`window`')
    """
    if not always and _PLAIN.fullmatch(name) and name.upper() not in RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def backtick_hint(name: str) -> str:
    """Return the hint for quoted text where a name is expected (PostgreSQL and DuckDB quote names).

    >>> backtick_hint("region")
    'did you mean `region`? Quotes are for text, backticks for names'
    """
    return f"did you mean {quoted(name, always=True)}? Quotes are for text, backticks for names"


def render(expression: Expression) -> str:
    """Return the SQL text of an expression, with only the necessary parentheses; O(size).

    >>> render(Not(Or((Name("a"), Comparison("=", Name("region"), Literal("EU-West"))))))
    "NOT (a OR region = 'EU-West')"
    """
    return _render(expression)[0]


def brief(expression: Expression) -> str:
    """Return the SQL text, shortened for an error message."""
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
    """Render, with parentheses if the node binds less tightly than ``least``."""
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
            raise ScriptError(f"{value!r} has no SQL literal", hint="use a finite number")
        case _:
            return repr(value)
