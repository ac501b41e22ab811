"""Truth: what a bound expression is on every row, three-valued as in SQL."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ids import kernels  # Numba is imported when one of them is called
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
    Table,
)
from ids.predicates.functions import Overflow, arithmetic, call, coalesce, like, negative
from ids.predicates.overflow import needed_kleene, needed_vector
from ids.predicates.vector import (
    Kleene,
    Mask,
    Vector,
    column,
    compare,
    compared,
    constant,
    from_kleene,
    spread,
    to_kleene,
    within,
)

# Kleene's -1, 0, 1 (FALSE, NULL, TRUE), shifted by one, to the truth everyone else sees.
_TRUTH = np.array([0, -1, 1], np.int8)


def truth(expression: Expression, table: Table) -> npt.NDArray[np.int8]:
    """1 TRUE, 0 FALSE, -1 NULL for each row. O(nodes * rows), text O(words) more."""
    shifted = kleene(expression, table) + np.int8(1)
    return spread(_TRUTH[shifted], table.rows)


def holds(expression: Expression, table: Table) -> Mask:
    """Where a condition is TRUE: what ``truth`` gives, less the difference of FALSE and NULL."""
    try:
        held: Mask = _is(expression, table, True)
    except Overflow:
        held = needed_kleene(expression, table) == 1
    return spread(held, table.rows)


def _is(expression: Expression, table: Table, wanted: bool) -> Mask:
    """Where a condition is surely TRUE, or surely FALSE: masks alone, a quarter of the passes."""
    match expression:
        case And(operands) | Or(operands):
            join = np.logical_and if isinstance(expression, And) is wanted else np.logical_or
            found = _is(operands[0], table, wanted)
            for operand in operands[1:]:
                found = join(found, _is(operand, table, wanted))
            return found
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
    """The number of each row as a double, and where it is not NULL (None: nowhere NULL)."""
    result = vector(expression, table)
    values = spread(result.values.astype(np.float64, copy=False), table.rows)
    if result.valid is None or result.valid.all():
        return values, None
    return values, spread(result.valid, table.rows)


def vector(expression: Expression, table: Table) -> Vector:
    """The value of an expression, of whatever kind; refused where integers leave 64 bits."""
    try:
        return _vector(expression, table)
    except Overflow:
        return needed_vector(expression, table)


def kleene(expression: Expression, table: Table) -> Kleene:
    """The truth of a condition: -1 FALSE, 0 NULL, 1 TRUE; length 1 stands for every row."""
    try:
        return _kleene(expression, table)
    except Overflow:
        return needed_kleene(expression, table)


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
            result = _kleene(operands[0], table)
            for operand in operands[1:]:
                result = np.minimum(result, _kleene(operand, table))
            return result
        case Or(operands):
            result = _kleene(operands[0], table)
            for operand in operands[1:]:
                result = np.maximum(result, _kleene(operand, table))
            return result
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
            result_vector = _vector(expression, table)
            if result_vector.kind is None:
                return np.zeros(1, np.int8)
            return to_kleene(result_vector.values, result_vector.valid)


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure's values in window order, its players, and how far their magnitudes reach.

    ``smallest`` is the smallest that is not 0 (0 where all are); ``first_bad`` is the first row
    that is NaN or infinite, -1 where none is.
    """

    values: npt.NDArray[np.float64]
    players: npt.NDArray[np.bool_] | None
    largest: float
    smallest: float = 0.0
    first_bad: int = -1


def evaluate_measure(expression: Expression, table: Table) -> Measure:
    """A measure over a table; a NULL row is no player (its value reads 0)."""
    values, players = measure(expression, table)
    values = np.ascontiguousarray(values)
    if players is not None:
        values = np.where(players, values, 0.0)
    first_bad, largest, smallest = kernels.survey(values)
    return Measure(values, players, float(largest), float(smallest), int(first_bad))
