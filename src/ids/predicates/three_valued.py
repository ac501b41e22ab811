"""Evaluates bound expressions on every row, with the three-valued logic of SQL.

Integers that overflow 64 bits raise an error only if Spark would compute them on that row. AND and
OR stop at the first operand that decides the result, COALESCE stops at the first value that is not
NULL, a comparison does not evaluate its right side if its left side is NULL, and integer arithmetic
with a NULL operand is NULL. So ``i < 10 AND i * 4 > 5`` never fails, while ``i * 4 > 5`` fails if i
is too large.

Expressions are first evaluated as if nothing could overflow. If an integer wraps around on some
row, they are evaluated again, recording on which rows each subexpression fails (``_Checked``).
``ids.spark.expression_sql`` generates SQL that follows the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ids import kernels  # Numba is imported only when a kernel is called
from ids.errors import DataError
from ids.model import (
    DOUBLE_INTEGERS,
    And,
    Arithmetic,
    Call,
    Column,
    ColumnData,
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
    Value,
    brief,
    columns_of,
    microseconds_of,
    nodes,
)
from ids.predicates.functions import (
    FUNCTIONS,
    WORDS,
    Array,
    Mask,
    combine,
    compile_pattern,
    time_part,
    to_integers,
    wrapped_around,
)

Objects = npt.NDArray[np.object_]
# -1 FALSE, 0 NULL, 1 TRUE: AND is the minimum, OR the maximum, NOT the negation.
Kleene = npt.NDArray[np.int8]

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
# Maps -1, 0, 1 (FALSE, NULL, TRUE), plus one, to the result of ``truth``.
_TRUTH = np.array([0, -1, 1], np.int8)
_NO_ROWS: Mask = np.zeros(1, np.bool_)


class Vector(NamedTuple):
    """Like ``ColumnData``, but ``kind`` is None for NULL, and one value may represent all rows."""

    kind: Kind | None
    values: Array
    valid: Mask | None = None
    dictionary: Objects | None = None


def truth(expression: Expression, table: Table) -> npt.NDArray[np.int8]:
    """Return 1 (TRUE), 0 (FALSE) or -1 (NULL) per row. O(nodes * rows), plus O(words) for text."""
    shifted = kleene(expression, table) + np.int8(1)
    return spread(_TRUTH[shifted], table.rows)


def holds(expression: Expression, table: Table) -> Mask:
    """Return where a condition is TRUE; faster than ``truth``, as NULL is treated as FALSE."""
    try:
        held: Mask = _is(expression, table, True)
    except Overflow:
        held = _Checked(table).kleene(expression) == 1
    return spread(held, table.rows)


def _is(expression: Expression, table: Table, wanted: bool) -> Mask:
    """Return where a condition is TRUE (or FALSE), using masks for speed."""
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
    """Return each row's number as a double, and where it is not NULL (None: everywhere)."""
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
    """The values of a measure in window order, its players, and the range of magnitudes.

    ``smallest`` is the smallest non-zero magnitude, or 0 if all values are 0. ``first_bad`` is the
    first row with a NaN or infinite value, or -1 if there is none.
    """

    values: npt.NDArray[np.float64]
    players: npt.NDArray[np.bool_] | None
    largest: float
    smallest: float = 0.0
    first_bad: int = -1


def evaluate_measure(expression: Expression, table: Table) -> Measure:
    """Evaluate a measure; rows where it is NULL are not players and get the value 0."""
    values, players = measure(expression, table)
    values = np.ascontiguousarray(values)
    if players is not None:
        values = np.where(players, values, 0.0)
    first_bad, largest, smallest = kernels.survey(values)
    return Measure(values, players, float(largest), float(smallest), int(first_bad))


_ZERO = Vector(Kind.NUMBER, np.zeros(1, np.int64))


def has_arithmetic(expression: Expression) -> bool:
    """Return whether an expression contains arithmetic in which integers may overflow."""
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
    """Return the error message for an integer overflow in an expression."""
    return f"integers in {brief(expression)} overflow 64 bits; use doubles, as in 1.0 * x"


class _Integers(NamedTuple):
    """An intermediate result of integer arithmetic.

    fails    where evaluating it is always an error
    wrapped  where it overflowed, which is an error unless another operand is NULL
    present  where none of its operands is NULL
    """

    value: Vector
    fails: Mask
    wrapped: Mask
    present: Mask


class _Checked:
    """Evaluates expressions, and records where subexpressions fail. O(nodes * rows)."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._causes: list[tuple[Expression, Mask]] = []

    def kleene(self, expression: Expression) -> Kleene:
        """Return the truth values of a condition; raise DataError if Spark would fail on a row."""
        truths, fails = self._kleene(expression)
        self._raise_if(fails)
        return truths

    def vector(self, expression: Expression) -> Vector:
        """Return the value of an expression; raise DataError if Spark would fail on a row."""
        value, fails = self._vector(expression)
        self._raise_if(fails)
        return value

    def _raise_if(self, fails: Mask) -> None:
        """Raise DataError if a row fails; the message names the first overflowing operation."""
        fails = np.broadcast_to(fails, self._table.rows)
        if fails.any():
            cause = next(node for node, wrapped in self._causes if (wrapped & fails).any())
            raise DataError(overflow_message(cause))

    def _vector(self, node: Expression) -> tuple[Vector, Mask]:
        match node:
            case Column(name):
                return column(self._table, name), _NO_ROWS
            case Literal(value):
                return constant(value), _NO_ROWS
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
        """Convert a result of integer arithmetic to a value; overflow now counts as an error."""
        if found.wrapped is not _NO_ROWS:
            self._causes.append((node, found.wrapped))
        return found.value, found.fails | found.wrapped

    def _coalesce(self, arguments: tuple[Expression, ...]) -> tuple[Vector, Mask]:
        operands: list[Vector] = []
        fails, missing = _NO_ROWS, ~_NO_ROWS
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
                return within(value, options), _NO_ROWS if nothing else fails
            case Like(operand, pattern):
                value, fails = self._vector(operand)
                return like(value, pattern), fails
        value, fails = self._vector(node)
        return to_kleene(value.values.astype(np.bool_), _present(value)), fails

    def _connected(self, operands: tuple[Expression, ...], decides: int) -> tuple[Kleene, Mask]:
        """Evaluate AND or OR, stopping on each row at the first operand equal to ``decides``."""
        join = np.minimum if decides == -1 else np.maximum
        truths: Kleene = np.full(1, -decides, np.int8)
        fails = _NO_ROWS
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
            return truths, _NO_ROWS
        return truths, fails_a | (fails_b & _present(a))


def _present(value: Vector) -> Mask:
    return ~_NO_ROWS if value.valid is None else value.valid


def _open(value: Vector, fails: Mask = _NO_ROWS) -> _Integers:
    """Wrap a value that is not a result of integer arithmetic as an operand."""
    return _Integers(value, fails, _NO_ROWS, _present(value))


def column(table: Table, name: str) -> Vector:
    """Return a column; a dictionary with more words than rows is reduced to the used words."""
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
    if len(words) == 0:  # every row is NULL, but codes must still be valid
        empty = np.zeros(len(data), np.int32)
        return Vector(Kind.TEXT, empty, np.zeros(len(data), np.bool_), objects([""]))
    if len(words) <= len(data):
        return Vector(Kind.TEXT, data.values, data.valid, words)
    used, codes = np.unique(data.values, return_inverse=True)
    return Vector(Kind.TEXT, codes, data.valid, words[cast(Array, used)])


def kind_of_value(value: Value) -> Kind | None:
    """Return the kind of a constant, or None for NULL."""
    if value is None:
        return None
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, int | float):
        return Kind.NUMBER
    return Kind.TIME if isinstance(value, datetime) else Kind.TEXT


def constant(value: Value) -> Vector:
    """Return a vector with a single value that represents all rows."""
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
    """Return a 64-bit integer unchanged, and a larger integer as the nearest double."""
    if isinstance(value, float) or _SMALLEST <= value <= _LARGEST:
        return value
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def objects(words: list[str]) -> Objects:
    """Return strings as an object array (NumPy would otherwise pad them to equal length)."""
    array = np.empty(len(words), np.object_)
    array[:] = words
    return array


def take_text(vector: Vector, by_word: Array) -> Array:
    """Return each row's entry from an array with one entry per word."""
    if by_word.dtype == np.bool_ and np.count_nonzero(by_word) == 1:
        # comparing codes is many times faster than looking them up
        return cast(Array, vector.values == np.argmax(by_word))
    taken: Array = by_word[vector.values]
    return taken


def spread(array: Array, rows: int) -> Array:
    """Repeat a single value for every row; return an array with all rows unchanged."""
    return array if len(array) == rows else np.repeat(array, rows)


def both_valid(*valid: Mask | None) -> Mask | None:
    """Return where all operands are valid, or None if that is everywhere."""
    joint: Mask | None = None
    for mask in valid:
        if mask is not None:
            joint = mask if joint is None else joint & mask
    return joint


def to_kleene(holds: Mask, valid: Mask | None) -> Kleene:
    """Convert a mask and its validity (where it is not NULL) to truth values."""
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
    """Evaluate ``left op right`` for equal kinds or NULL. O(rows), plus O(words) for text."""
    return to_kleene(*compared(op, left, right))


def compared(op: str, left: Vector, right: Vector) -> tuple[Mask, Mask | None]:
    """Return where ``left op right`` holds, and where it is not NULL (None: everywhere)."""
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
        # with a constant on the right, IEEE's <, <= and = are correct, as they are false for NaN
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
    """Return the exact sign of each integer minus the corresponding double."""
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
    """Evaluate ``x IN (options)``, which is NULL if x is not found and an option is NULL."""
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
    """Convert an IN list to the vector's type, dropping items that cannot equal any value."""
    if vector.kind is Kind.TIME:
        return np.array([microseconds_of(value) for value in values], np.int64)
    if vector.kind is Kind.BOOLEAN:
        return np.array(values, np.bool_)
    numbers = [exact_number(value) for value in values]
    if vector.values.dtype == np.float64:
        return np.array([float(n) for n in numbers if float(n) == n], np.float64)
    whole = [int(n) for n in numbers if abs(n) < 2**64 and n == int(n)]
    return np.array([n for n in whole if -(2**63) <= n < 2**63], np.int64)


def kind_of(expression: Expression, schema: Mapping[str, Kind]) -> Kind | None:
    """Return the kind of a bound expression, or None for NULL. O(depth)."""
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


class Overflow(Exception):
    """Raised if integers overflow 64 bits; it is an error only if Spark would compute them."""


def arithmetic(op: str, left: Vector, right: Vector) -> Vector:
    """Compute ``left op right``; integers stay integers except for ``/``; x / 0 is NULL."""
    return _within_bits(*computed(op, left, right))


def _within_bits(value: Vector, wrapped: Mask) -> Vector:
    if wrapped.any():
        raise Overflow
    return value


def computed(op: str, left: Vector, right: Vector) -> tuple[Vector, Mask]:
    """Compute ``left op right``; return the result and where integers wrapped around."""
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
        values = combine(op, a, b)
    wrapped = _NO_ROWS
    if values.dtype == np.int64 and op in "+-*":
        wrapped = wrapped_around(op, a, b, values)
        wrapped = wrapped if valid is None else wrapped & valid
    return Vector(Kind.NUMBER, values, valid), wrapped


def negative(operand: Vector) -> Vector:
    """Compute ``-x``."""
    zero = Vector(Kind.NUMBER, np.zeros(1, operand.values.dtype))
    if operand.values.dtype == np.int64:
        return arithmetic("-", zero, operand)
    return operand._replace(kind=Kind.NUMBER, values=-operand.values)


def coalesce(operands: list[Vector]) -> Vector:
    """Return the first non-NULL value; if any operand has doubles, integers become doubles."""
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
    """Convert integers to doubles if ``other`` has doubles, so types do not depend on data."""
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
    """Apply a function of one argument; for text, the cost is O(words), not O(rows)."""
    if operand.kind is None:
        return operand
    if operand.kind is Kind.TEXT:
        return _of_text(function, operand)
    if operand.kind is Kind.TIME:
        return Vector(Kind.NUMBER, time_part(function, operand.values), operand.valid)
    return _of_number(function, operand)


def _of_text(function: str, operand: Vector) -> Vector:
    assert operand.dictionary is not None
    if function == "LENGTH":
        lengths = np.array([len(word) for word in operand.dictionary], np.int64)
        return Vector(Kind.NUMBER, take_text(operand, lengths), operand.valid)
    change = WORDS[function]
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
        values=to_integers(np.floor(values) if function == "FLOOR" else np.ceil(values))
    )


def absolute(operand: Vector) -> tuple[Vector, Mask]:
    """Compute ABS; return the result and where integers wrapped around."""
    wrapped = _NO_ROWS
    if operand.values.dtype == np.int64:
        wrapped = operand.values == -(2**63)
        wrapped = wrapped if operand.valid is None else wrapped & operand.valid
    with np.errstate(over="ignore"):
        return operand._replace(values=np.abs(operand.values)), wrapped


def like(operand: Vector, pattern: str) -> Kleene:
    """Evaluate ``operand LIKE pattern``, matching each word once."""
    if operand.kind is not Kind.TEXT or operand.dictionary is None:
        return np.zeros(1, np.int8)
    matcher = compile_pattern(pattern)
    assert matcher is not None, "the binder rejects invalid patterns"
    matches = [matcher.fullmatch(word) is not None for word in operand.dictionary]
    holds: Mask = take_text(operand, np.array(matches, np.bool_))
    return to_kleene(holds, operand.valid)
