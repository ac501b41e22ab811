"""Reading: where a condition is TRUE, or FALSE, as sets of rows; NULL is where it is neither.

So three-valued logic becomes two-valued: NOT swaps the two sets, AND holds where every operand
holds and fails where one fails. Every leaf comes down to whether columns are NULL and in which set
of values an expression lies; an expression that is NULL lies in no set, so the value of a NULL
never decides anything, and equal conditions stay equal.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import product, repeat
from typing import Any, Generic, TypeVar

from ids.model.expression import (
    MIRROR,
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
)
from ids.model.table import Kind
from ids.predicates.canonical.algebra import Algebra
from ids.predicates.canonical.folding import folded
from ids.predicates.canonical.scales import (
    FALSE_OR_TRUE,
    ORDER,
    Values,
    beginning_with,
    compared,
    listed,
    scale_of,
)
from ids.predicates.canonical.values import (
    alternatives,
    constant_truth,
    spelled,
    wildcards,
)
from ids.predicates.kinds import kind_of

__all__ = ["Reader"]

_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<=>": operator.eq,
}
_TRUE = compared(FALSE_OR_TRUE, "=", True)
_NO_VALUE = Values(False, ())
# Sorts after every column, whose spelling begins with a backtick.
_DERIVED = "~"

S = TypeVar("S")


class Reader(Generic[S]):
    """Reads bound conditions into an algebra of sets; each node once, however often it is met."""

    def __init__(self, algebra: Algebra[S], kinds: Mapping[str, Kind]) -> None:
        self._algebra = algebra
        self._kinds = kinds
        # By identity, with the node so that it stays alive; None for where it is NULL.
        self._read: dict[tuple[int, bool | None], tuple[Expression, S]] = {}

    def holds(self, predicate: Expression) -> S:
        """Where a bound predicate is TRUE; reads its lower levels first, so that none is deep."""
        whole, stones = folded(predicate)
        for stone in stones:
            self.null(stone)
        return self.where(whole, True)

    def where(self, node: Expression, wanted: bool) -> S:
        """Where a condition, folded, is TRUE or, if not wanted, FALSE."""
        read = self._read.get((id(node), wanted))
        if read is not None:
            return read[1]
        match node:
            case And(operands) | Or(operands):
                parts = list(map(self.where, operands, repeat(wanted)))
                join = isinstance(node, And) == wanted
                found = self._algebra.both(parts) if join else self._algebra.either(parts)
            case Not(operand):
                found = self.where(operand, not wanted)
            case IsTrue(operand, truth):
                found = self._unless(not wanted, self.where(operand, truth))
            case IsNull(operand):
                found = self._unless(not wanted, self.null(operand))
            case _:
                found = self._leaf(node, wanted)
        self._read[id(node), wanted] = node, found
        return found

    def null(self, node: Expression) -> S:
        """Where an expression is NULL."""
        read = self._read.get((id(node), None))
        if read is not None:
            return read[1]
        match node:
            case Column():
                found = self._algebra.among(spelled(node), _NO_VALUE, True)
            case Literal(value):
                found = self._algebra.constant(value is None)
            case Negative(operand):
                found = self.null(operand)
            case Arithmetic(op, left, right):
                parts = [self.null(left), self.null(right)]
                if op in "/%":
                    parts.append(self._tested(Comparison("=", right, Literal(0)), right, True))
                found = self._algebra.either(parts)
            case Call("COALESCE", arguments):
                found = self._all_null(arguments)
            case Call(_, (argument,)):
                found = self.null(argument)
            case _:
                known = [self.where(node, True), self.where(node, False)]
                found = self._algebra.negated(self._algebra.either(known))
        self._read[id(node), None] = node, found
        return found

    def _unless(self, negated: bool, found: S) -> S:
        return self._algebra.negated(found) if negated else found

    def _all_null(self, nodes: Iterable[Expression]) -> S:
        return self._algebra.both(list(map(self.null, nodes)))

    def _leaf(self, node: Expression, wanted: bool) -> S:
        match node:
            case Literal(value):
                return self._algebra.constant(value is wanted)
            case Column():
                return self._among(node, _TRUE if wanted else _TRUE.complement())
            case Call(_, arguments):
                return self._first(arguments, arguments, wanted)
            case Comparison(op, left, right):
                if Kind.BOOLEAN in (kind_of(left, self._kinds), kind_of(right, self._kinds)):
                    return self._conditions(op, left, right, wanted)
                return self._comparison(op, left, right, wanted)
            case In(operand, options) if kind_of(operand, self._kinds) is Kind.BOOLEAN:
                each = [Comparison("=", operand, option) for option in options]
                return self.where(Or(tuple(each)), wanted)
            case In(operand) | Like(operand):
                return self._tested(node, operand, wanted)
        raise AssertionError(node)

    def _first(
        self, values: Iterable[Expression], conditions: Iterable[Expression], wanted: bool
    ) -> S:
        """Where the condition on the first value that is not NULL is as wanted."""
        before: list[S] = []
        parts: list[S] = []
        for value, condition in zip(values, conditions, strict=True):
            parts.append(self._algebra.both([*before, self.where(condition, wanted)]))
            before.append(self.null(value))
        return self._algebra.either(parts)

    def _conditions(self, op: str, left: Expression, right: Expression, wanted: bool) -> S:
        """The comparison of two conditions, by cases."""
        if op == "<=>" and not wanted:
            return self._algebra.negated(self._conditions(op, left, right, True))
        parts: list[S] = [self._all_null((left, right))] if op == "<=>" else []
        for a, b in product((False, True), repeat=2):
            if _HOLDS[op](a, b) is wanted:
                parts.append(self._algebra.both([self.where(left, a), self.where(right, b)]))
        return self._algebra.either(parts)

    def _comparison(self, op: str, left: Expression, right: Expression, wanted: bool) -> S:
        if isinstance(left, Literal):
            op, left, right = MIRROR[op], right, left
        if isinstance(right, Literal):
            return self._tested(Comparison(op, left, right), left, wanted)
        names = spelled(left), spelled(right)
        if names[0] > names[1]:
            op, names = MIRROR[op], (names[1], names[0])
        if op == "<=>":
            equal = [self._comparison("=", left, right, True), self._all_null((left, right))]
            return self._unless(not wanted, self._algebra.either(equal))
        values = compared(ORDER, op, 0)
        if not wanted:
            values = values.complement()
        if names[0] == names[1]:
            order = self._algebra.constant(_HOLDS[op](0, 0) is wanted)
        else:
            order = self._algebra.among(f"{_DERIVED}{names[0]} ? {names[1]}", values, None)
        known = [self._algebra.negated(self.null(side)) for side in (left, right)]
        return self._algebra.both([*known, order])

    def _tested(self, node: Expression, subject: Expression, wanted: bool) -> S:
        """A comparison with a constant, IN or LIKE; the subject stands for its operand."""
        if isinstance(subject, Literal):
            truth = constant_truth(_about(node, subject))
            return self._algebra.constant(truth == (1 if wanted else -1))
        if isinstance(node, Comparison) and node.op == "<=>":
            equal = replace(node, op="=")
            null = isinstance(node.right, Literal) and node.right.value is None
            found = self.null(subject) if null else self._tested(equal, subject, True)
            return self._unless(not wanted, found)
        each = alternatives(subject, kind_of(subject, self._kinds))
        if each:  # after <=>, which says something even of a NULL
            return self._first(each, [_about(node, value) for value in each], wanted)
        match node:
            case Comparison(_, _, Literal(None)):
                return self._algebra.constant(False)
            case Comparison(op, _, Literal(value)):
                values = compared(scale_of(subject, self._kinds), op, value)
            case In(_, options):
                constants = [x.value for x in options if x.value is not None]
                if not wanted and len(constants) < len(options):
                    return self._algebra.constant(False)
                values = listed(scale_of(subject, self._kinds), constants)
            case Like(_, pattern):
                return self._like(subject, pattern, wanted)
            case _:
                raise AssertionError(node)
        return self._among(subject, values if wanted else values.complement())

    def _like(self, subject: Expression, pattern: str, wanted: bool) -> S:
        prefix, rest = wildcards(pattern)
        if rest in ("", "%"):
            exact = listed(scale_of(subject, self._kinds), [prefix])
            values = beginning_with(prefix) if rest else exact
            return self._among(subject, values if wanted else values.complement())
        variable = f"{_DERIVED}{spelled(subject)} LIKE {prefix!r} {rest!r}"
        matches = self._algebra.among(variable, _TRUE if wanted else _TRUE.complement(), None)
        return self._algebra.both([self._algebra.negated(self.null(subject)), matches])

    def _among(self, subject: Expression, values: Values) -> S:
        """Where the subject is not NULL and its value is in the set."""
        if isinstance(subject, Column):
            return self._algebra.among(spelled(subject), values, False)
        value = self._algebra.among(_DERIVED + spelled(subject), values, None)
        return self._algebra.both([self._algebra.negated(self.null(subject)), value])


def _about(node: Expression, subject: Expression) -> Expression:
    """The same test of another subject."""
    if isinstance(node, Comparison):
        return replace(node, left=subject)
    assert isinstance(node, In | Like)
    return replace(node, operand=subject)
