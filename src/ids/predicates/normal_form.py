"""Normal form: one key for the different ways to write the same condition.

Negation is pushed down to the tests; AND and OR are flattened, sorted and deduplicated; constants
are folded; and the tests of one AND or OR on the same subject (a column or another expression) are
combined into one set of values, written as its intervals.

Three-valued logic is reduced to sets of rows. NOT p is TRUE where p is FALSE; p AND q is TRUE where
both are TRUE, and FALSE where one is FALSE. So a form describes the rows where a condition is TRUE,
the rows where it is FALSE, or the complement of one of these, and combining conditions means only
intersecting and uniting such sets.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import product
from typing import Any, NamedTuple

from ids.errors import DataError
from ids.model import (
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
    Kind,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    Table,
    Value,
    children,
    microseconds_of,
)
from ids.predicates.three_valued import exact_number, vector

_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ONE_ROW = Table({}, 1)
_LONGEST = 256
# Depth of a condition up to which plain recursion, with at most five frames per level, is safe.
_SHALLOW = 64
_CONDITIONS = (And, Or, Not, IsTrue, IsNull, Comparison, In, Like)

# A point just before or just after a value: (value, 0) or (value, 1).
Cut = Any


class _Test(NamedTuple):
    """The rows where a subject is in a set of values, or is NULL if ``null`` is set.

    ``first`` tells whether the lowest values are in the set; it changes at each ascending cut.
    """

    first: bool
    cuts: tuple[Cut, ...]
    null: bool

    @property
    def constant(self) -> bool | None:
        """True if it selects every row, False if it selects none, else None."""
        return self.first if not self.cuts and self.first == self.null else None


class _Form(NamedTuple):
    """A set of rows: the intersection (AND) or union (OR) of tests by subject and of nested forms.

    An empty AND is every row, an empty OR is no row. ``nested`` maps each form's text to the form.
    """

    join: str
    tests: dict[str, _Test]
    nested: dict[str, _Form]

    @property
    def parts(self) -> int:
        return len(self.tests) + len(self.nested)


def predicate_key(predicate: Expression) -> str:
    """Return a key for the rows on which a bound predicate is TRUE.

    Predicates with equal keys always hold on the same rows. Predicates with different keys may be
    equivalent, too: absorption, distribution and dependencies between columns are not considered.
    O(n log n) for n nodes and constants.

    >>> from ids.model import Column, Comparison, In, Literal, Not
    >>> x = Column("x")
    >>> one = predicate_key(In(x, (Literal(1), Literal(1.0))))
    >>> one == predicate_key(Not(Comparison("<>", Literal(1), x)))
    True
    """
    forms, levels = _Forms(), _levels(predicate)
    if len(levels) > _SHALLOW:  # from the lowest level up, to avoid deep recursion
        for node in (node for level in reversed(levels) for node in level):
            if isinstance(node, _CONDITIONS):
                for truth, rest in product((True, False), repeat=2):
                    forms.rows(node, truth, rest)
    return _text(forms.rows(predicate, True, False))


def _levels(predicate: Expression) -> list[list[Expression]]:
    """Return the distinct nodes of a tree, level by level."""
    levels, met = [[predicate]], {id(predicate)}
    while levels[-1]:
        below = [child for node in levels[-1] for child in children(node)]
        levels.append([])
        for child in below:
            if id(child) not in met:
                met.add(id(child))
                levels[-1].append(child)
    return levels


class _Forms:
    """The forms of a condition and of its parts, each computed once."""

    def __init__(self) -> None:
        # by id of the node, which is stored as well so that it stays alive
        self._made: dict[tuple[int, bool, bool], tuple[Expression, _Form]] = {}

    def rows(self, node: Expression, truth: bool, rest: bool) -> _Form:
        """Return the rows where a condition is ``truth``, or with ``rest`` all other rows."""
        made = self._made.get((id(node), truth, rest))
        if made is not None:
            return made[1]
        match node:
            case And(operands) | Or(operands):
                every = (isinstance(node, And) == truth) != rest
                form = _joined(every, [self.rows(operand, truth, rest) for operand in operands])
            case Not(operand):
                form = self.rows(operand, not truth, rest)
            case IsTrue(operand, wanted):
                form = self.rows(operand, wanted, truth == rest)
            case IsNull(operand):
                form = self._null(operand, truth == rest)
            case Literal(value):
                form = _constant((value is truth) != rest)
            case In(operand, options):
                each = [Comparison("=", operand, option) for option in options]
                form = self.rows(Or(tuple(each)), truth, rest)
            case Like(operand, pattern):
                operand = _folded(operand)
                if isinstance(operand, Literal):
                    form = self.rows(_evaluated(Like(operand, pattern)), truth, rest)
                else:
                    form = _truths(f"{self._spelled(operand)} LIKE {pattern!r}", truth, rest)
            case Comparison(op, left, right):
                form = self._comparison(op, _folded(left), _folded(right), truth, rest)
            case _:
                form = _truths(self._spelled(_folded(node)), truth, rest)
        self._made[id(node), truth, rest] = node, form
        return form

    def _null(self, operand: Expression, rest: bool) -> _Form:
        """Return the rows where an expression is NULL, or with ``rest`` all other rows."""
        if isinstance(operand, _CONDITIONS):  # neither TRUE nor FALSE
            return _joined(not rest, [self.rows(operand, t, not rest) for t in (True, False)])
        operand = _folded(operand)
        if isinstance(operand, Literal):
            return _constant((operand.value is None) != rest)
        return _test(self._spelled(operand), _Test(False, (), True), rest)

    def _comparison(
        self, op: str, left: Expression, right: Expression, truth: bool, rest: bool
    ) -> _Form:
        if isinstance(left, Literal):
            if isinstance(right, Literal):
                return self.rows(_evaluated(Comparison(op, left, right)), truth, rest)
            op, left, right = MIRROR[op], right, left
        if op == "<=>":
            return self._null_safe(left, right, truth == rest)
        if not isinstance(right, Literal):
            return self._ordered(op, left, right, truth, rest)
        if right.value is None:
            return _constant(rest)
        if isinstance(right.value, bool):
            accepted = [each for each in (False, True) if _HOLDS[op](each, right.value) == truth]
            return _joined(rest, [self.rows(left, each, rest) for each in accepted])
        before, after = _cuts(right.value)
        first, cuts = {
            "=": (False, (before, after)),
            "<>": (True, (before, after)),
            "<": (True, (before,)),
            "<=": (True, (after,)),
            ">": (False, (after,)),
            ">=": (False, (before,)),
        }[op]
        return _test(self._spelled(left), _Test(first == truth, cuts, False), rest)

    def _null_safe(self, left: Expression, right: Expression, rest: bool) -> _Form:
        """Return the rows where ``left <=> right``, or with ``rest`` all other rows."""
        if not isinstance(right, Literal):
            names = sorted((self._spelled(left), self._spelled(right)))
            return _truths(f"{names[0]} <=> {names[1]}", True, rest)
        if right.value is None:
            return self._null(left, rest)
        return self._comparison("=", left, right, True, rest)

    def _ordered(
        self, op: str, left: Expression, right: Expression, truth: bool, rest: bool
    ) -> _Form:
        """Compare two expressions, as a test on the sign (-1, 0 or 1) of their difference."""
        names = self._spelled(left), self._spelled(right)
        if names[0] == names[1]:
            return _test(names[0], _Test(_HOLDS[op](0, 0) == truth, (), False), rest)
        if names[0] > names[1]:
            op, names = MIRROR[op], (names[1], names[0])
        signs = [_HOLDS[op](sign, 0) == truth for sign in (-1, 0, 1)]
        return _test(f"{names[0]} ? {names[1]}", _listed(signs), rest)

    def _spelled(self, expression: Expression) -> str:
        """Return a text that only equal expressions share; a + b is equal to b + a. O(size).

        1 and 1.0 have different texts: with an integer column they compute in different types.
        """
        match expression:
            case Column(name):
                return "`" + name.replace("`", "``") + "`"
            case Literal(datetime() as instant):
                return f"TIMESTAMP {microseconds_of(instant)}"
            case Literal(value):
                return repr(value)
            case Negative(operand):
                return f"-({self._spelled(operand)})"
            case Arithmetic(op, left, right):
                sides = [self._spelled(left), self._spelled(right)]
                if op in "+*":
                    sides.sort()
                return f"({sides[0]} {op} {sides[1]})"
            case Call(function, arguments):
                return f"{function}({', '.join(map(self._spelled, arguments))})"
            case _:  # a condition is defined by where it is TRUE and where it is FALSE
                true, false = (self.rows(expression, truth, False) for truth in (True, False))
                return f"[{_text(true)}; {_text(false)}]"


def _truths(subject: str, truth: bool, rest: bool) -> _Form:
    """Return the form of a test that is known only by its text."""
    return _test(subject, _listed([not truth, truth]), rest)


def _listed(accepted: Sequence[bool]) -> _Test:
    """Return a set of the values 0, 1, …, given whether each is in the set."""
    changes = [k for k in range(1, len(accepted)) if accepted[k] != accepted[k - 1]]
    return _Test(accepted[0], tuple(changes), False)


def _test(subject: str, test: _Test, rest: bool) -> _Form:
    if rest:
        test = _Test(not test.first, test.cuts, not test.null)
    constant = test.constant
    return _Form("AND", {subject: test}, {}) if constant is None else _constant(constant)


def _constant(holds: bool) -> _Form:
    return _Form("AND" if holds else "OR", {}, {})


def _joined(every: bool, forms: Iterable[_Form]) -> _Form:
    """Return the intersection (``every``) or the union of forms."""
    join = "AND" if every else "OR"
    groups: dict[str, list[_Test]] = {}
    nested: dict[str, _Form] = {}
    for form in forms:
        if form.join == join or form.parts == 1:
            for subject, test in form.tests.items():
                groups.setdefault(subject, []).append(test)
            nested.update(form.nested)
        elif form.parts:
            nested[_text(form)] = form
        else:
            return form  # FALSE in an AND, TRUE in an OR
    tests = {}
    for subject, group in groups.items():
        test = group[0] if len(group) == 1 else _combined(every, group)
        if test.constant is None:
            tests[subject] = test
        elif test.constant != every:
            return _constant(not every)
    if len(nested) == 1 and not tests:
        return next(iter(nested.values()))
    return _Form("AND" if len(tests) + len(nested) == 1 else join, tests, nested)


def _combined(every: bool, tests: Sequence[_Test]) -> _Test:
    """Return the intersection or the union of tests on one subject, by a sweep over their cuts."""
    changes: dict[Cut, int] = {}
    for test in tests:
        inside = test.first
        for cut in test.cuts:
            inside = not inside
            changes[cut] = changes.get(cut, 0) + (1 if inside else -1)
    needed = len(tests) if every else 1
    count = sum(test.first for test in tests)
    first = inside = count >= needed
    cuts = []
    for cut in sorted(changes):
        count += changes[cut]
        if (count >= needed) != inside:
            inside = not inside
            cuts.append(cut)
    return _Test(first, tuple(cuts), sum(test.null for test in tests) >= needed)


def _cuts(value: Value) -> tuple[Cut, Cut]:
    """Return the cuts before and after a constant; they are exact, and equal for 1 and 1.0."""
    if isinstance(value, datetime):
        value = microseconds_of(value)
    elif isinstance(value, int | float):
        value = exact_number(value)
        if value != value:  # NaN is greater than infinity
            return (math.inf, 1), (math.inf, 2)
        near = float(value)
        value = near + 0.0 if near == value else value  # 1 is 1.0, -0.0 is 0.0
    return (value, 0), (value, 1)


def _text(form: _Form) -> str:
    """Return a form as text, or as a hash of 256 bits if the text would be long."""
    parts = sorted(
        [*(f"{subject} {tuple(test)}" for subject, test in form.tests.items()), *form.nested]
    )
    if not parts:
        return "TRUE" if form.join == "AND" else "FALSE"
    text = parts[0] if len(parts) == 1 else f"{form.join}({', '.join(parts)})"
    return (
        text if len(text) <= _LONGEST else "#" + blake2b(text.encode(), digest_size=32).hexdigest()
    )


def _folded(expression: Expression) -> Expression:
    """Replace the parts that read no column by constants."""
    match expression:
        case Negative(operand):
            below: tuple[Expression, ...] = (_folded(operand),)
            expression = Negative(*below)
        case Arithmetic(op, left, right):
            below = (_folded(left), _folded(right))
            expression = Arithmetic(op, *below)
        case Call(_, arguments):
            below = tuple(map(_folded, arguments))
            expression = replace(expression, arguments=below)
        case _:
            return expression
    return _evaluated(expression) if all(isinstance(x, Literal) for x in below) else expression


def _evaluated(expression: Expression) -> Expression:
    """Evaluate an expression of constants."""
    try:
        result = vector(expression, _ONE_ROW)
    except DataError:  # integers that overflow: an error only when a row is evaluated
        return expression
    if result.kind is None or (result.valid is not None and not result.valid[0]):
        return Literal(None)
    value = result.values[0].item()
    if result.kind is Kind.TIME:
        return Literal(_EPOCH + timedelta(microseconds=value))
    return Literal(value if result.dictionary is None else result.dictionary[value])
