"""Folding: parts of a condition that read no column are worked out before it is read."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ids.errors import DataError
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
    Negative,
    Not,
    Or,
    children,
)
from ids.model.table import Kind, Table
from ids.predicates.truth import vector

__all__ = ["folded"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ONE_ROW = Table({}, 1)
# Levels between stones: reading takes a few frames of recursion a level.
_STRIDE = 32


def folded(expression: Expression) -> tuple[Expression, list[Expression]]:
    """The expression with constants worked out and COALESCE in COALESCE made one; and its stones.

    Stones are nodes of it from below, no more than some levels apart: whoever reads them first
    never goes deep. A tree as shallow as most has none. O(distinct nodes): what is shared stays so.
    """
    made: dict[int, Expression] = {}
    heights: dict[int, int] = {}
    stones: list[Expression] = []
    stack = [expression]
    while stack:
        node = stack[-1]
        if id(node) in made:
            stack.pop()
            continue
        below = [x for x in children(node) if not isinstance(x, Column | Literal)]
        waiting = [x for x in below if id(x) not in made]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        made[id(node)] = whole = _rebuilt(node, made)
        heights[id(node)] = height = 1 + max([heights[id(x)] for x in below], default=0)
        if height % _STRIDE == 0:
            stones.append(whole)
    return made[id(expression)], stones


def _rebuilt(node: Expression, made: dict[int, Expression]) -> Expression:
    """The node over what was made of its operands, and worked out if they are constants."""
    above = children(node)
    below = tuple([made.get(id(child), child) for child in above])
    if any(map(operator.is_not, above, below)):
        node = _with(node, below)
    if not isinstance(node, Negative | Arithmetic | Call):
        return node
    if isinstance(node, Call) and node.function == "COALESCE":
        below = tuple(_flat(below))
        node = replace(node, arguments=below)
    return _constant(node) if all(isinstance(x, Literal) for x in below) else node


def _with(node: Expression, below: tuple[Expression, ...]) -> Expression:
    """The node over other operands."""
    match node:
        case And():
            return And(below)
        case Or():
            return Or(below)
        case Call():
            return replace(node, arguments=below)
        case Comparison() | Arithmetic():
            return replace(node, left=below[0], right=below[1])
        case In() | Like() | IsNull() | IsTrue() | Not() | Negative():
            return replace(node, operand=below[0])
        case _:
            raise AssertionError(node)


def _flat(arguments: tuple[Expression, ...]) -> Iterator[Expression]:
    for argument in arguments:
        if isinstance(argument, Call) and argument.function == "COALESCE":
            yield from argument.arguments
        else:
            yield argument


def _constant(expression: Expression) -> Expression:
    try:
        result = vector(expression, _ONE_ROW)
    except DataError:  # integers that leave 64 bits: refused when a row is judged, not here
        return expression
    if result.kind is None or (result.valid is not None and not result.valid[0]):
        return Literal(None)
    value = result.values[0].item()
    if result.kind is Kind.TIME:
        return Literal(_EPOCH + timedelta(microseconds=value))
    return Literal(value if result.dictionary is None else result.dictionary[value])
