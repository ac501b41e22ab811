"""Three-valued evaluation: the truth or value of a bound expression on every row, as in SQL.

Integers that overflow 64 bits raise an error only if Spark would compute them on that row. AND and
OR stop at the first operand that decides the result, COALESCE stops at the first value that is not
NULL, a comparison does not evaluate its right side if its left side is NULL, and integer arithmetic
with a NULL operand is NULL. So ``i < 10 AND i * 4 > 5`` never fails, while ``i * 4 > 5`` fails if i
is too large.

Expressions are evaluated first as if nothing overflowed. Only if an integer wraps around on some
row, they are evaluated again together with the rows on which each part fails (``_Checked``).
``ids.spark.condition_sql`` generates SQL that follows the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids import kernels  # Numba is imported when one of them is called
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
    columns_of,
    nodes,
)
from ids.predicates.vector import (
    NO_ROWS,
    Kleene,
    Mask,
    Overflow,
    Vector,
    absolute,
    arithmetic,
    call,
    coalesce,
    column,
    compare,
    compared,
    computed,
    constant,
    from_kleene,
    like,
    negative,
    spread,
    to_kleene,
    within,
)

# Maps -1, 0, 1 (FALSE, NULL, TRUE), plus one, to what ``truth`` returns.
_TRUTH = np.array([0, -1, 1], np.int8)


def truth(expression: Expression, table: Table) -> npt.NDArray[np.int8]:
    """Return 1 (TRUE), 0 (FALSE) or -1 (NULL) per row; O(nodes * rows), plus O(words) for text."""
    shifted = kleene(expression, table) + np.int8(1)
    return spread(_TRUTH[shifted], table.rows)


def holds(expression: Expression, table: Table) -> Mask:
    """Return where a condition is TRUE; faster than ``truth``, as FALSE and NULL are the same."""
    try:
        held: Mask = _is(expression, table, True)
    except Overflow:
        held = _Checked(table).kleene(expression) == 1
    return spread(held, table.rows)


def _is(expression: Expression, table: Table, wanted: bool) -> Mask:
    """Return where a condition is TRUE (or FALSE), with masks instead of truth values for speed."""
    match expression:
        case And(operands) | Or(operands):
            join = np.logical_and if isinstance(expression, And) is wanted else np.logical_or
            return reduce(join, (_is(operand, table, wanted) for operand in operands))
        case Not(operand):
            return _is(operand, table, not wanted)
        case Comparison(op, left, right):
            mask, valid = compared(op, _vector(left, table), _vector(right, table))
            mask = mask if wanted else ~mask
            return mask if valid is None else mask & valid
    known: Mask = _kleene(expression, table) == (1 if wanted else -1)
    return known


def measure(
    expression: Expression, table: Table
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_] | None]:
    """Return the number on each row as a double, and where it is not NULL (None: everywhere)."""
    result = vector(expression, table)
    values = spread(result.values.astype(np.float64, copy=False), table.rows)
    if result.valid is None or result.valid.all():
        return values, None
    return values, spread(result.valid, table.rows)


def vector(expression: Expression, table: Table) -> Vector:
    """Return the value of an expression of any kind; raise DataError if integers overflow."""
    try:
        return _vector(expression, table)
    except Overflow:
        return _Checked(table).vector(expression)


def kleene(expression: Expression, table: Table) -> Kleene:
    """Return -1 (FALSE), 0 (NULL) or 1 (TRUE); one value may represent all rows."""
    try:
        return _kleene(expression, table)
    except Overflow:
        return _Checked(table).kleene(expression)


def _vector(expression: Expression, table: Table) -> Vector:
    match expression:
        case Column(name):
            return column(table, name)
        case Literal(value):
            return constant(value)
        case Negative(operand):
            return negative(_vector(operand, table))
        case Arithmetic(op, left, right):
            return arithmetic(op, _vector(left, table), _vector(right, table))
        case Call("COALESCE", arguments):
            return coalesce([_vector(argument, table) for argument in arguments])
        case Call(function, (argument,)):
            return call(function, _vector(argument, table))
        case _:
            return from_kleene(_kleene(expression, table))


def _kleene(expression: Expression, table: Table) -> Kleene:
    match expression:
        case And(operands):
            return reduce(np.minimum, (_kleene(operand, table) for operand in operands))
        case Or(operands):
            return reduce(np.maximum, (_kleene(operand, table) for operand in operands))
        case Not(operand):
            return -_kleene(operand, table)
        case IsTrue(operand, wanted):
            return to_kleene(_kleene(operand, table) == (1 if wanted else -1), None)
        case IsNull(operand):
            valid = _vector(operand, table).valid
            return to_kleene(np.zeros(1, np.bool_) if valid is None else ~valid, None)
        case Comparison(op, left, right):
            return compare(op, _vector(left, table), _vector(right, table))
        case In(operand, options):
            return within(_vector(operand, table), options)
        case Like(operand, pattern):
            return like(_vector(operand, table), pattern)
        case _:
            found = _vector(expression, table)
            if found.kind is None:
                return np.zeros(1, np.int8)
            return to_kleene(found.values, found.valid)


@dataclass(frozen=True, slots=True)
class Measure:
    """The values of a measure in window order, its players, and the range of the magnitudes.

    ``smallest`` is the smallest magnitude that is not 0 (or 0 if all are); ``first_bad`` is the
    first row that is NaN or infinite (or -1).
    """

    values: npt.NDArray[np.float64]
    players: npt.NDArray[np.bool_] | None
    largest: float
    smallest: float = 0.0
    first_bad: int = -1


def evaluate_measure(expression: Expression, table: Table) -> Measure:
    """Evaluate a measure; a row where it is NULL is not a player, and its value is 0."""
    values, players = measure(expression, table)
    values = np.ascontiguousarray(values)
    if players is not None:
        values = np.where(players, values, 0.0)
    first_bad, largest, smallest = kernels.survey(values)
    return Measure(values, players, float(largest), float(smallest), int(first_bad))


_ZERO = Vector(Kind.NUMBER, np.zeros(1, np.int64))


def has_arithmetic(expression: Expression) -> bool:
    """Whether integers may overflow in an expression."""
    return any(
        isinstance(node, Negative | Arithmetic)
        or (isinstance(node, Call) and node.function == "ABS")
        for node in nodes(expression)
    )


def constants_first(operands: Iterable[Expression]) -> list[Expression]:
    """Return the operands of an AND or OR in the order in which they are evaluated.

    Constants come first, because Spark's optimizer replaces x AND FALSE by FALSE in some plans.
    """
    return sorted(operands, key=lambda operand: any(columns_of(operand)))


def overflow_message(expression: Expression) -> str:
    """Return the error message for integers that overflow."""
    return f"integers in {brief(expression)} overflow 64 bits; use doubles, as in 1.0 * x"


class _Integers(NamedTuple):
    """A value inside integer arithmetic.

    fails    where evaluating it is an error in any case
    wrapped  where it overflowed, which is an error unless another operand is NULL
    present  where no operand in it is NULL
    """

    value: Vector
    fails: Mask
    wrapped: Mask
    present: Mask


class _Checked:
    """Evaluates expressions together with the rows on which each part fails; O(nodes * rows)."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._causes: list[tuple[Expression, Mask]] = []

    def kleene(self, expression: Expression) -> Kleene:
        """Return the truth of a condition; raise DataError if Spark would fail on a row."""
        truths, fails = self._kleene(expression)
        self._raise_if(fails)
        return truths

    def vector(self, expression: Expression) -> Vector:
        """Return the value of an expression; raise DataError if Spark would fail on a row."""
        value, fails = self._vector(expression)
        self._raise_if(fails)
        return value

    def _raise_if(self, fails: Mask) -> None:
        """Raise if a row fails, naming the first arithmetic that overflows on such a row."""
        fails = np.broadcast_to(fails, self._table.rows)
        if fails.any():
            cause = next(node for node, wrapped in self._causes if (wrapped & fails).any())
            raise DataError(overflow_message(cause))

    def _vector(self, node: Expression) -> tuple[Vector, Mask]:
        match node:
            case Column(name):
                return column(self._table, name), NO_ROWS
            case Literal(value):
                return constant(value), NO_ROWS
            case Negative() | Arithmetic() | Call("ABS"):
                return self._closed(node, self._integers(node))
            case Call("COALESCE", arguments):
                return self._coalesce(arguments)
            case Call(function, (argument,)):
                operand, fails = self._vector(argument)
                return call(function, operand), fails
        truths, fails = self._kleene(node)
        return from_kleene(truths), fails

    def _closed(self, node: Expression, found: _Integers) -> tuple[Vector, Mask]:
        """Convert a result of integer arithmetic to a value: from here on, overflow is an error."""
        if found.wrapped is not NO_ROWS:
            self._causes.append((node, found.wrapped))
        return found.value, found.fails | found.wrapped

    def _coalesce(self, arguments: tuple[Expression, ...]) -> tuple[Vector, Mask]:
        operands: list[Vector] = []
        fails, missing = NO_ROWS, ~NO_ROWS
        for argument in arguments:
            operand, own = self._vector(argument)
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
        return _open(*self._vector(node))

    def _arithmetic(self, op: str, left: Expression, right: Expression) -> _Integers:
        a, b = self._integers(left), self._integers(right)
        if a.value.kind is None or b.value.kind is None:  # the result is NULL
            return _open(computed(op, a.value, b.value)[0])
        if op != "/" and a.value.values.dtype == b.value.values.dtype == np.int64:
            return self._joined(op, a, b)
        (x, fails_x), (y, fails_y) = self._closed(left, a), self._closed(right, b)
        value, _ = computed(op, x, y)
        if op in "/%":  # Spark evaluates the divisor first
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

    def _kleene(self, node: Expression) -> tuple[Kleene, Mask]:
        match node:
            case And(operands):
                return self._connected(operands, -1)
            case Or(operands):
                return self._connected(operands, 1)
            case Not(operand):
                truths, fails = self._kleene(operand)
                return -truths, fails
            case IsTrue(operand, wanted):
                truths, fails = self._kleene(operand)
                return to_kleene(truths == (1 if wanted else -1), None), fails
            case IsNull(operand):
                value, fails = self._vector(operand)
                return to_kleene(~_present(value), None), fails
            case Comparison(op, left, right):
                return self._compared(op, left, right)
            case In(operand, options):
                value, fails = self._vector(operand)
                nothing = all(option.value is None for option in options)
                return within(value, options), NO_ROWS if nothing else fails
            case Like(operand, pattern):
                value, fails = self._vector(operand)
                return like(value, pattern), fails
        value, fails = self._vector(node)
        return to_kleene(value.values.astype(np.bool_), _present(value)), fails

    def _connected(self, operands: tuple[Expression, ...], decides: int) -> tuple[Kleene, Mask]:
        """Evaluate AND or OR, up to the operand that is equal to ``decides``."""
        join = np.minimum if decides == -1 else np.maximum
        truths: Kleene = np.full(1, -decides, np.int8)
        fails = NO_ROWS
        for operand in constants_first(operands):
            own, failing = self._kleene(operand)
            fails = fails | (failing & (truths != decides))
            truths = join(truths, own)
        return truths, fails

    def _compared(self, op: str, left: Expression, right: Expression) -> tuple[Kleene, Mask]:
        (a, fails_a), (b, fails_b) = self._vector(left), self._vector(right)
        truths = compare(op, a, b)
        if op == "<=>":
            return truths, fails_a | fails_b
        if a.kind is None or b.kind is None:
            return truths, NO_ROWS
        return truths, fails_a | (fails_b & _present(a))


def _present(value: Vector) -> Mask:
    return ~NO_ROWS if value.valid is None else value.valid


def _open(value: Vector, fails: Mask = NO_ROWS) -> _Integers:
    """Wrap a value from outside integer arithmetic as an operand of it."""
    return _Integers(value, fails, NO_ROWS, _present(value))
