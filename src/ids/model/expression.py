"""Expressions: what stands in a condition, a predicate, or under an aggregate.

The tree is small on purpose. The parser desugars (``BETWEEN`` is two comparisons, ``NOT IN`` is
``Not(In)``, ``!=`` is ``<>``), so that membership in process and on Spark each handle few nodes.
Every node is frozen and hashable: equal trees are equal keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from ids.errors import Position

__all__ = [
    "MIRROR",
    "And",
    "Arithmetic",
    "Call",
    "Column",
    "Comparison",
    "Expression",
    "In",
    "IsNull",
    "IsTrue",
    "Like",
    "Literal",
    "Name",
    "Negative",
    "Not",
    "Or",
    "children",
    "columns_of",
    "position_of",
]

Value = None | bool | int | float | str | datetime

# What a comparison becomes when its sides change places.
MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>", "<=>": "<=>"}


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier not yet resolved: a column or a registered predicate."""

    name: str
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table, resolved to its exact spelling."""

    name: str
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant; a datetime is aware and in UTC. TRUE and 1 are different literals.

    ``double_quoted`` says that a text was written as "text", which elsewhere quotes a name.
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
    """A scalar function, its name in upper case."""

    function: str
    arguments: tuple[Expression, ...]
    at: Position | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left op right``; op is one of ``= <> < <= > >= <=>`` (the last: NULL-safe equality)."""

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
    """``operand IS NULL``: never NULL itself."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class IsTrue:
    """``operand IS TRUE`` (or IS FALSE): never NULL itself."""

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
    """The operands of one node, left to right."""
    match expression:
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            return (left, right)
        case And(operands) | Or(operands):
            return operands
        case Call(_, arguments):
            return arguments
        case In(operand) | Like(operand) | IsNull(operand) | IsTrue(operand):
            return (operand,)
        case Not(operand) | Negative(operand):
            return (operand,)
        case _:
            return ()


def columns_of(expression: Expression) -> Iterator[str]:
    """The names of the columns an expression reads, left to right, with repeats."""
    stack = [expression]
    while stack:
        node = stack.pop()
        if isinstance(node, Column):
            yield node.name
        stack.extend(reversed(children(node)))


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
