"""Binding: names become columns or registered conditions, and every node's kind is checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ids.errors import ScriptError, UnknownNameError
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
    children,
    position_of,
)
from ids.model.table import Kind
from ids.predicates.agreement import agree, refuse
from ids.predicates.constants import refuse_constant_tests, refuse_quoted_measure
from ids.predicates.kinds import FUNCTIONS, kind_of_value, noun
from ids.predicates.names import Scope
from ids.predicates.patterns import compile_pattern

__all__ = ["bind", "bind_measure", "bind_predicate"]

# Deeper than the parser allows in one condition, shallow enough to walk recursively.
_DEEPEST = 256
_LARGEST = 1_000_000
# From here on, OR of equalities becomes one IN: one pass over the rows instead of thousands.
_MANY_EQUALITIES = 8

Typed = tuple[Expression, Kind | None]


def bind(
    expression: Expression,
    schema: Mapping[str, Kind | None],
    registered: Mapping[str, Expression] = {},
    *,
    columns_first: bool = False,
    table: str = "",
) -> Expression:
    """Every name resolved, every kind checked; registered conditions (bound) are written out.

    O(nodes). Raises UnknownNameError or ScriptError with the position.
    """
    scope = Scope(schema, registered, columns_first, table)
    refuse_quoted_measure(expression, scope.names)
    return _typed(expression, scope)[0]


def bind_predicate(
    expression: Expression,
    schema: Mapping[str, Kind | None],
    registered: Mapping[str, Expression] = {},
    *,
    columns_first: bool = False,
    table: str = "",
) -> Expression:
    """As ``bind``, and the whole is a condition."""
    scope = Scope(schema, registered, columns_first, table)
    bound, kind = _typed(expression, scope, condition=True)
    if kind not in (Kind.BOOLEAN, None):
        raise refuse(bound, kind, "a predicate must be a condition, such as x > 0", scope.names)
    return bound


def bind_measure(
    expression: Expression,
    schema: Mapping[str, Kind | None],
    registered: Mapping[str, Expression] = {},
    *,
    columns_first: bool = False,
    table: str = "",
) -> Expression:
    """As ``bind``, and the whole is a number."""
    scope = Scope(schema, registered, columns_first, table)
    bound, kind = _typed(expression, scope)
    if kind not in (Kind.NUMBER, None):
        raise refuse(bound, kind, "an aggregate needs a number", scope.names)
    return bound


def _typed(expression: Expression, scope: Scope, *, condition: bool = False) -> Typed:
    refuse_constant_tests(expression, scope.names)
    bound, kind = _Binder(scope).bind(expression, condition=condition)
    depth, size = _extent(bound)
    if depth > _DEEPEST or size > _LARGEST:
        raise ScriptError(
            "a condition too deep to follow, with its registered predicates written out",
            position_of(expression),
            "say it with fewer levels",
        )
    return bound, kind


def _extent(expression: Expression) -> tuple[int, int]:
    """Depth and size of the tree; O(distinct nodes), since registered conditions are shared."""
    known: dict[int, tuple[int, int]] = {}
    stack = [expression]
    while stack:
        node = stack[-1]
        below = children(node)
        waiting = [child for child in below if id(child) not in known]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        extents = [known[id(child)] for child in below]
        deepest = max((depth for depth, _ in extents), default=0)
        known[id(node)] = (deepest + 1, sum(size for _, size in extents) + 1)
    return known[id(expression)]


@dataclass(frozen=True, slots=True)
class _Binder:
    """One walk down the tree; written so that a level costs two or three frames of recursion."""

    scope: Scope

    def bind(self, node: Expression, *, condition: bool = False) -> Typed:
        match node:
            case Name():
                return self.scope.resolve(node, condition=condition)
            case Column(name):
                if name not in self.scope.schema:
                    raise UnknownNameError("column", name, self.scope.schema, node.at)
                return node, self.scope.schema[name]
            case Literal(value):
                return node, kind_of_value(value)
            case Negative() | Arithmetic():
                return self._arithmetic(node), Kind.NUMBER
            case Call():
                return self._call(node)
            case _:
                return self._condition(node), Kind.BOOLEAN

    def _arithmetic(self, node: Negative | Arithmetic) -> Expression:
        if isinstance(node, Arithmetic):
            left = self._require(node.left, Kind.NUMBER, f"{node.op} needs numbers")
            right = self._require(node.right, Kind.NUMBER, f"{node.op} needs numbers")
            return Arithmetic(node.op, left, right)
        operand = self._require(node.operand, Kind.NUMBER, "- needs a number")
        if isinstance(operand, Literal) and isinstance(operand.value, int | float):
            return Literal(-operand.value, operand.at)
        return Negative(operand)

    def _call(self, node: Call) -> Typed:
        if node.function == "COALESCE" and node.arguments:
            return self._coalesce(node)
        if node.function not in FUNCTIONS and node.function != "COALESCE":
            raise UnknownNameError("function", node.function, [*FUNCTIONS, "COALESCE"], node.at)
        if node.function == "COALESCE" or len(node.arguments) != 1:
            raise ScriptError(
                f"{node.function} of {len(node.arguments)} arguments", node.at, "it takes one"
            )
        takes, gives = FUNCTIONS[node.function]
        wanted = f"{node.function} takes {noun(takes)}"
        argument = self._require(node.arguments[0], takes, wanted)
        return replace(node, arguments=(argument,)), gives

    def _coalesce(self, node: Call) -> Typed:
        first: Typed = (node.arguments[0], None)
        arguments: list[Expression] = []
        for argument, kind in map(self.bind, node.arguments):
            if first[1] is None:
                first = argument, kind
            arguments.append(agree(first, (argument, kind), node.at, self.scope.names)[1])
        return replace(node, arguments=tuple(arguments)), first[1]

    def _condition(self, node: Expression) -> Expression:
        match node:
            case And(operands) | Or(operands):
                word = "AND" if isinstance(node, And) else "OR"
                bound = tuple([self._truth(each, word) for each in operands])
                return And(bound) if isinstance(node, And) else _gather(Or(bound))
            case Not(operand):
                return Not(self._truth(operand, "NOT"))
            case IsTrue(operand, truth):
                return IsTrue(self._truth(operand, f"IS {str(truth).upper()}"), truth)
            case IsNull(operand):
                return IsNull(self.bind(operand)[0])
            case Comparison(_, left, right):
                left, right = agree(self.bind(left), self.bind(right), node.at, self.scope.names)
                return replace(node, left=left, right=right)
            case In():
                return self._in(node)
            case Like(operand, pattern):
                if compile_pattern(pattern) is None:
                    fact = f"the pattern {pattern!r} escapes an ordinary character"
                    raise ScriptError(fact, node.at, "only %, _ and the backslash need one")
                text = self._require(operand, Kind.TEXT, "LIKE takes text")
                return replace(node, operand=text)
        raise AssertionError(node)

    def _in(self, node: In) -> Expression:
        operand = self.bind(node.operand)
        options: list[Literal] = []
        for option in node.options:
            typed = (option, kind_of_value(option.value))
            agreed = agree(operand, typed, option.at or node.at, self.scope.names)[1]
            assert isinstance(agreed, Literal)
            options.append(agreed)
        return replace(node, operand=operand[0], options=tuple(options))

    def _truth(self, node: Expression, word: str) -> Expression:
        return self._require(node, Kind.BOOLEAN, f"{word} takes conditions, such as x > 0")

    def _require(self, node: Expression, wanted: Kind, hint: str) -> Expression:
        bound, kind = self.bind(node, condition=wanted is Kind.BOOLEAN)
        if kind not in (wanted, None):
            raise refuse(bound, kind, hint, self.scope.names)
        return bound


def _gather(node: Or) -> Expression:
    """``x = a OR x = b OR …`` as ``x IN (a, b, …)``, which means the same, NULL included."""
    if len(node.operands) < _MANY_EQUALITIES:
        return node
    options: dict[Expression, list[Literal]] = {}
    rest: list[Expression] = []
    for operand in node.operands:
        match operand:
            case Comparison("=", subject, Literal() as literal):
                options.setdefault(subject, []).append(literal)
            case _:
                rest.append(operand)
    for subject, literals in options.items():
        found = tuple(dict.fromkeys(literals))
        rest.append(In(subject, found, position_of(subject)))
    return rest[0] if len(rest) == 1 else Or(tuple(rest))
