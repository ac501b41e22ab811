"""Overflow: whether a row needs the integers that leave 64 bits on it, by the rules of Spark.

A row needs what Spark looks at: AND and OR go from left to right and stop where the answer is sure,
COALESCE stops at the first value that is not NULL, a comparison with NULL on its left does not look
to its right, and arithmetic of integers with a NULL in it is NULL whatever the rest is. So
``i < 10 AND i * 4 > 5`` is an answer on every row, and ``i * 4 > 5`` an error where i is too large.

Columns are evaluated as if nothing were wrong. Only if some row wraps around, they are evaluated
here once more, each value with the rows on which looking at it is an error. O(nodes * rows).
``ids.spark.expression_sql`` writes SQL that follows the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ids.errors import DataError
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
    Kind,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    Table,
    brief,
    children,
    columns_of,
)
from ids.predicates.functions import NOWHERE, absolute, call, coalesce, computed, like, negative
from ids.predicates.vector import (
    Kleene,
    Mask,
    Vector,
    column,
    compare,
    constant,
    from_kleene,
    to_kleene,
    within,
)

_ZERO = Vector(Kind.NUMBER, np.zeros(1, np.int64))


def needed_kleene(expression: Expression, table: Table) -> Kleene:
    """The truth of a condition; refused where a row needs integers that leave 64 bits."""
    rows = _Rows(table)
    truths, fails = rows.kleene(expression)
    rows.refuse(fails)
    return truths


def needed_vector(expression: Expression, table: Table) -> Vector:
    """The value of an expression; refused where a row needs integers that leave 64 bits."""
    rows = _Rows(table)
    value, fails = rows.vector(expression)
    rows.refuse(fails)
    return value


def has_arithmetic(expression: Expression) -> bool:
    """Whether integers, if it has any, may leave 64 bits in it."""
    if isinstance(expression, Call) and expression.function == "ABS":
        return True
    return isinstance(expression, Negative | Arithmetic) or any(
        map(has_arithmetic, children(expression))
    )


def constants_first(operands: Iterable[Expression]) -> list[Expression]:
    """The operands of an AND or OR in the order in which they are looked at.

    Spark's optimizer takes x AND FALSE for FALSE, but not in all plans; so that goes first.
    """
    return sorted(operands, key=lambda operand: any(columns_of(operand)))


def overflow_message(expression: Expression) -> str:
    """What is said of arithmetic whose integers leave 64 bits."""
    return f"the integers of {brief(expression)} leave 64 bits; compute in doubles, as in 1.0 * x"


class _Integers(NamedTuple):
    """A value inside arithmetic of integers.

    fails    where looking at it is an error already
    wrapped  where it left 64 bits, which is an error unless something beside it is NULL
    present  where nothing in it is NULL
    """

    value: Vector
    fails: Mask
    wrapped: Mask
    present: Mask


class _Rows:
    """Values and truths over one table, each with a mask of the rows that fail at it."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._causes: list[tuple[Expression, Mask]] = []

    def refuse(self, fails: Mask) -> None:
        """Raise if some row fails; names the first arithmetic that does so there."""
        fails = np.broadcast_to(fails, self._table.rows)
        if fails.any():
            cause = next(node for node, wrapped in self._causes if (wrapped & fails).any())
            raise DataError(overflow_message(cause))

    def vector(self, node: Expression) -> tuple[Vector, Mask]:
        match node:
            case Column(name):
                return column(self._table, name), NOWHERE
            case Literal(value):
                return constant(value), NOWHERE
            case Negative() | Arithmetic() | Call("ABS"):
                return self._closed(node, self._integers(node))
            case Call("COALESCE", arguments):
                return self._coalesce(arguments)
            case Call(function, (argument,)):
                operand, fails = self.vector(argument)
                return call(function, operand), fails
        truths, fails = self.kleene(node)
        return from_kleene(truths), fails

    def _closed(self, node: Expression, found: _Integers) -> tuple[Vector, Mask]:
        """A value as others see it that are no arithmetic of integers."""
        if found.wrapped is not NOWHERE:
            self._causes.append((node, found.wrapped))
        return found.value, found.fails | found.wrapped

    def _coalesce(self, arguments: tuple[Expression, ...]) -> tuple[Vector, Mask]:
        operands: list[Vector] = []
        fails, missing = NOWHERE, ~NOWHERE
        for argument in arguments:
            operand, own = self.vector(argument)
            operands.append(operand)
            fails = fails | (own & missing)
            missing = missing & ~_present(operand)
        return coalesce(operands), fails

    def _integers(self, node: Expression) -> _Integers:
        match node:
            case Negative(operand):
                inner = self._integers(operand)
                if inner.value.values.dtype == np.int64:
                    return self._joined("-", _open(_ZERO), inner)
                return _open(negative(inner.value), inner.fails)
            case Arithmetic(op, left, right):
                return self._arithmetic(op, left, right)
            case Call("ABS", (argument,)):
                inner = self._integers(argument)
                value, wrapped = absolute(inner.value)
                return inner._replace(value=value, wrapped=inner.wrapped | wrapped)
        return _open(*self.vector(node))

    def _arithmetic(self, op: str, left: Expression, right: Expression) -> _Integers:
        a, b = self._integers(left), self._integers(right)
        if a.value.kind is None or b.value.kind is None:  # whatever the other one is
            return _open(computed(op, a.value, b.value)[0])
        if op != "/" and a.value.values.dtype == b.value.values.dtype == np.int64:
            return self._joined(op, a, b)
        (x, fails_x), (y, fails_y) = self._closed(left, a), self._closed(right, b)
        value, _ = computed(op, x, y)
        if op in "/%":  # Spark looks at the divisor first
            divides = _present(y) & (y.values != 0)
            return _open(value, fails_y | (fails_x & divides))
        return _open(value, fails_x | (fails_y & _present(x)))

    def _joined(self, op: str, a: _Integers, b: _Integers) -> _Integers:
        value, wrapped = computed(op, a.value, b.value)
        if op == "%":
            divides = b.present & ((b.value.values != 0) | b.wrapped)
            present = a.present & divides
            fails = b.fails | (a.fails & divides)
        else:
            present = a.present & b.present
            fails = a.fails | (b.fails & a.present)
        return _Integers(value, fails, (a.wrapped | b.wrapped | wrapped) & present, present)

    def kleene(self, node: Expression) -> tuple[Kleene, Mask]:
        match node:
            case And(operands):
                return self._connected(operands, -1)
            case Or(operands):
                return self._connected(operands, 1)
            case Not(operand):
                truths, fails = self.kleene(operand)
                return -truths, fails
            case IsTrue(operand, wanted):
                truths, fails = self.kleene(operand)
                return to_kleene(truths == (1 if wanted else -1), None), fails
            case IsNull(operand):
                value, fails = self.vector(operand)
                return to_kleene(~_present(value), None), fails
            case Comparison(op, left, right):
                return self._compared(op, left, right)
            case In(operand, options):
                value, fails = self.vector(operand)
                nothing = all(option.value is None for option in options)
                return within(value, options), NOWHERE if nothing else fails
            case Like(operand, pattern):
                value, fails = self.vector(operand)
                return like(value, pattern), fails
        value, fails = self.vector(node)
        return to_kleene(value.values.astype(np.bool_), _present(value)), fails

    def _connected(self, operands: tuple[Expression, ...], decides: int) -> tuple[Kleene, Mask]:
        """AND and OR, as far as the answer is not sure."""
        join = np.minimum if decides == -1 else np.maximum
        truths: Kleene = np.full(1, -decides, np.int8)
        fails = NOWHERE
        for operand in constants_first(operands):
            own, failing = self.kleene(operand)
            fails = fails | (failing & (truths != decides))
            truths = join(truths, own)
        return truths, fails

    def _compared(self, op: str, left: Expression, right: Expression) -> tuple[Kleene, Mask]:
        (a, fails_a), (b, fails_b) = self.vector(left), self.vector(right)
        truths = compare(op, a, b)
        if op == "<=>":
            return truths, fails_a | fails_b
        if a.kind is None or b.kind is None:
            return truths, NOWHERE
        return truths, fails_a | (fails_b & _present(a))


def _present(value: Vector) -> Mask:
    return ~NOWHERE if value.valid is None else value.valid


def _open(value: Vector, fails: Mask = NOWHERE) -> _Integers:
    """A value that is no arithmetic of integers, as one of its operands."""
    return _Integers(value, fails, NOWHERE, _present(value))
