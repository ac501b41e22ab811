"""Binder: resolve names to columns or registered conditions, and check the kind of every node.

Names are resolved as in Spark. Tests that read no column are rejected, with a hint if a name is in
the wrong quotes: as in Spark, names are in backticks, and "region" is text. In PostgreSQL and
DuckDB "region" is a name, so their users would not notice that ``"region" = 'EU'`` is always FALSE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ids.errors import KindError, Position, ScriptError, UnknownNameError, nearest
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
    Name,
    Negative,
    Not,
    Or,
    backtick_hint,
    brief,
    children,
    nodes,
    parse_timestamp,
    position_of,
    quoted,
    render,
)
from ids.predicates.functions import FUNCTIONS, compile_pattern
from ids.predicates.three_valued import kind_of_value

# Deeper than the parser allows for one condition, shallow enough for recursion.
_DEEPEST = 256
_LARGEST = 1_000_000
# From this number on, an OR of equalities becomes one IN: one pass over the rows, not thousands.
_MANY_EQUALITIES = 8

Typed = tuple[Expression, Kind | None]


def bind(
    expression: Expression, schema: Mapping[str, Kind | None], *, table: str = ""
) -> Expression:
    """Bind an expression of any kind, as COUNT takes it; it cannot use registered predicates.

    O(nodes). Raises UnknownNameError or ScriptError with the position, as the others do.
    """
    binder = _Binder(schema, {}, False, table)
    binder.refuse_quoted_measure(expression)
    return binder.bind_whole(expression)[0]


def bind_measure(
    expression: Expression, schema: Mapping[str, Kind | None], *, table: str = ""
) -> Expression:
    """Bind an expression that must be a number; it cannot use registered predicates."""
    binder = _Binder(schema, {}, False, table)
    bound, kind = binder.bind_whole(expression)
    if kind is not None and kind is not Kind.NUMBER:
        raise binder.wrong_kind(bound, kind, "an aggregate needs a number")
    return bound


def bind_predicate(
    expression: Expression,
    schema: Mapping[str, Kind | None],
    registered: Mapping[str, Expression] = {},
    *,
    columns_first: bool = False,
    table: str = "",
) -> Expression:
    """Bind an expression that must be a condition; registered conditions (bound) are inlined.

    If a registered predicate and a column have the same name, the predicate wins, unless
    ``columns_first``.
    """
    binder = _Binder(schema, registered, columns_first, table)
    bound, kind = binder.bind_whole(expression, condition=True)
    if kind is not None and kind is not Kind.BOOLEAN:
        raise binder.wrong_kind(bound, kind, "a predicate must be a condition, such as x > 0")
    return bound


def other_spelling(
    name: str, known: Iterable[str], at: Position | None, table: str = ""
) -> str | None:
    """Return the known name that differs only in case; raise an error if there are several."""
    alike = [each for each in known if each.lower() == name.lower()]
    if len(alike) > 1:
        where = f" in {table}" if table else ""
        hint = "write " + " or ".join(sorted(alike))
        raise ScriptError(f"{name!r} is ambiguous{where}", at, hint)
    return alike[0] if alike else None


def refuse_constant_tests(expression: Expression, known: Iterable[str] = ()) -> None:
    """Reject a comparison, IN, LIKE or IS NULL that reads no column; O(nodes).

    It has the same result on every row, so it is probably a mistake. TRUE, FALSE and NULL alone are
    allowed. ``known`` are the names that a quoted text could mean.
    """
    reads: dict[int, bool] = {}
    for node in _upwards(expression):
        below = any(reads[id(child)] for child in children(node))
        reads[id(node)] = isinstance(node, Name | Column) or below
        if isinstance(node, Comparison | In | Like | IsNull) and not reads[id(node)]:
            raise _reads_no_column(node, known, "name a column, or write TRUE or FALSE")


@dataclass(frozen=True, slots=True)
class _Binder:
    """Binds trees to the columns of one table and the predicates registered on it.

    An exact match of a name wins over one that differs in case. A column without a kind has only
    NULLs, and may be used as any kind. Recursion takes two or three frames per level.
    """

    schema: Mapping[str, Kind | None]
    registered: Mapping[str, Expression]
    columns_first: bool
    table: str

    def bind_whole(self, expression: Expression, *, condition: bool = False) -> Typed:
        """Check the whole tree of an expression and bind it; return it with its kind."""
        refuse_constant_tests(expression, self._names)
        bound, kind = self._bind(expression, condition=condition)
        depth, size = _extent(bound)
        if depth > _DEEPEST or size > _LARGEST:
            raise ScriptError(
                "the condition is too large, with its registered predicates inlined",
                position_of(expression),
                "use fewer levels of registered predicates",
            )
        return bound, kind

    def refuse_quoted_measure(self, measure: Expression) -> None:
        """Reject ``COUNT("x")``, which would count every row; ``COUNT(1)`` does so on purpose."""
        found = list(nodes(measure))
        if any(isinstance(node, Literal) and node.double_quoted for node in found) and not any(
            isinstance(node, Name | Column) for node in found
        ):
            raise _reads_no_column(measure, self._names, "name a column, or write COUNT(*)")

    def wrong_kind(self, expression: Expression, kind: Kind, hint: str) -> KindError:
        """Return the error for an expression of the wrong kind."""
        return KindError(
            f"{brief(expression)} is {kind.noun}",
            position_of(expression),
            _name_hint([expression], self._names) or hint,
            _texts((expression, kind)),
        )

    @property
    def _names(self) -> list[str]:
        return [*self.schema, *self.registered]

    def _bind(self, node: Expression, *, condition: bool = False) -> Typed:
        match node:
            case Name():
                return self._resolve(node, condition=condition)
            case Column(name):
                if name not in self.schema:
                    raise UnknownNameError("column", name, self.schema, node.at)
                return node, self.schema[name]
            case Literal(value):
                return node, kind_of_value(value)
            case Negative() | Arithmetic():
                return self._arithmetic(node), Kind.NUMBER
            case Call():
                return self._call(node)
            case _:
                return self._condition(node), Kind.BOOLEAN

    def _resolve(self, name: Name, *, condition: bool = False) -> Typed:
        """Return the expression of a name and its kind; O(1) for an exact match, else O(names).

        ``condition`` selects the error for an unknown name: a condition is expected.
        """
        namespaces: list[Mapping[str, object]] = [self.registered, self.schema]
        if self.columns_first:
            namespaces.reverse()
        for namespace in namespaces:
            if name.name in namespace:
                return self._found(name, name.name, namespace is self.schema)
        for namespace in namespaces:
            spelling = other_spelling(name.name, namespace, name.at, self.table)
            if spelling is not None:
                return self._found(name, spelling, namespace is self.schema)
        prefix = f"{self.table}."
        if self.table and name.name.lower().startswith(prefix.lower()):
            bare = Name(name.name[len(prefix) :], name.at)
            return _Binder(self.schema, {}, True, "")._resolve(bare)
        if condition:
            raise self._unknown_predicate(name)
        raise UnknownNameError("column", name.name, self._names, name.at)

    def _unknown_predicate(self, name: Name) -> UnknownNameError:
        """Return the error for an unknown condition; in an engine, the table has no name."""
        conditions = [n for n, kind in self.schema.items() if kind in (Kind.BOOLEAN, None)]
        register = f"register({name.name!r}, …) first"
        if self.table:
            register = f"REGISTER PREDICATE {quoted(name.name)} AS (…) ON {self.table} first"
        known = [*conditions, *self.registered]
        return UnknownNameError("predicate", name.name, known, name.at, register)

    def _found(self, name: Name, spelling: str, column: bool) -> Typed:
        if column and self.schema[spelling] is None:
            return Literal(None, name.at), None
        if column:
            return Column(spelling, name.at), self.schema[spelling]
        return self.registered[spelling], Kind.BOOLEAN

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
        if node.function == "COALESCE":
            return self._coalesce(node)
        takes, gives = FUNCTIONS[node.function]  # the parser has checked name and arguments
        wanted = f"{node.function} takes {takes.noun}"
        argument = self._require(node.arguments[0], takes, wanted)
        return replace(node, arguments=(argument,)), gives

    def _coalesce(self, node: Call) -> Typed:
        first: Typed = (node.arguments[0], None)
        arguments: list[Expression] = []
        for argument, kind in map(self._bind, node.arguments):
            if first[1] is None:
                first = argument, kind
            arguments.append(self._agree(first, (argument, kind), node.at)[1])
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
                return IsNull(self._bind(operand)[0])
            case Comparison(_, left, right):
                left, right = self._agree(self._bind(left), self._bind(right), node.at)
                return replace(node, left=left, right=right)
            case In():
                return self._in(node)
            case Like(operand, pattern):
                if compile_pattern(pattern) is None:
                    fact = f"the pattern {pattern!r} escapes an ordinary character"
                    raise ScriptError(fact, node.at, "escape only %, _ and the backslash")
                text = self._require(operand, Kind.TEXT, "LIKE takes text")
                return replace(node, operand=text)
        raise AssertionError(node)

    def _in(self, node: In) -> Expression:
        operand = self._bind(node.operand)
        options: list[Literal] = []
        for option in node.options:
            typed = (option, kind_of_value(option.value))
            agreed = self._agree(operand, typed, option.at or node.at)[1]
            assert isinstance(agreed, Literal)
            options.append(agreed)
        return replace(node, operand=operand[0], options=tuple(options))

    def _truth(self, node: Expression, word: str) -> Expression:
        return self._require(node, Kind.BOOLEAN, f"{word} takes conditions, such as x > 0")

    def _require(self, node: Expression, wanted: Kind, hint: str) -> Expression:
        bound, kind = self._bind(node, condition=wanted is Kind.BOOLEAN)
        if kind is not None and kind is not wanted:
            raise self.wrong_kind(bound, kind, hint)
        return bound

    def _agree(
        self, left: Typed, right: Typed, at: Position | None
    ) -> tuple[Expression, Expression]:
        """Return both sides if their kinds agree; text beside a timestamp is parsed as one."""
        (a, kind_a), (b, kind_b) = left, right
        if kind_a is None or kind_b is None or kind_a is kind_b:
            return a, b
        if kind_a is Kind.TIME and isinstance(b, Literal) and isinstance(b.value, str):
            return a, self._instant(b, b.value, at)
        if kind_b is Kind.TIME and isinstance(a, Literal) and isinstance(a.value, str):
            return self._instant(a, a.value, at), b
        raise KindError(
            f"{brief(a)} is {kind_a.noun}, {brief(b)} is {kind_b.noun}",
            at or position_of(a) or position_of(b),
            _name_hint([a, b], self._names) or _way_out(a, kind_a, b, kind_b),
            _texts(left, right),
        )

    def _instant(self, literal: Literal, text: str, at: Position | None) -> Literal:
        instant = parse_timestamp(text)
        if instant is None:
            raise ScriptError(
                f"{brief(literal)} is not a timestamp",
                literal.at or at,
                _name_hint([literal], self._names) or "write it as '2024-01-31 12:00:00'",
            )
        return Literal(instant, literal.at)


def _name_hint(expressions: Iterable[Expression], known: Iterable[str]) -> str | None:
    """Return the hint for a text that is probably a name, if the expressions contain one.

    A text in double quotes may be a misspelt name, or any name if none is known yet.
    """
    names = {name.lower(): name for name in known}
    every = [node for expression in expressions for node in nodes(expression)]
    texts = [x for x in every if isinstance(x, Literal) and isinstance(x.value, str)]
    found = [names.get(str(text.value).lower()) for text in texts]
    for text in texts:
        if text.double_quoted:
            word = str(text.value)
            found.append(nearest(word, names.values()) if names else word)
    return next((backtick_hint(name) for name in found if name is not None), None)


def _reads_no_column(node: Expression, known: Iterable[str], hint: str) -> ScriptError:
    hint = _name_hint([node], known) or hint
    return ScriptError(f"{brief(node)} reads no column", position_of(node), hint)


def _texts(*sides: Typed) -> list[str]:
    return [e.name for e, kind in sides if isinstance(e, Column) and kind is Kind.TEXT]


def _way_out(a: Expression, kind_a: Kind, b: Expression, kind_b: Kind) -> str:
    if isinstance(a, Literal) and not isinstance(b, Literal):
        a, kind_a, b, kind_b = b, kind_b, a, kind_a
    if isinstance(b, Literal):
        if kind_a is Kind.TEXT and kind_b is Kind.NUMBER:
            return f"compare with '{render(b)}'"
        if kind_a is Kind.NUMBER and isinstance(b.value, str) and _reads_as_number(b.value):
            return f"compare with {b.value.strip()}"
    return f"compare {brief(a)} with {kind_a.noun}"


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _extent(expression: Expression) -> tuple[int, int]:
    """Return depth and size of a tree; O(distinct nodes), as registered conditions are shared."""
    known: dict[int, tuple[int, int]] = {}
    for node in _upwards(expression):
        extents = [known[id(child)] for child in children(node)]
        deepest = max((depth for depth, _ in extents), default=0)
        known[id(node)] = (deepest + 1, sum(size for _, size in extents) + 1)
    return known[id(expression)]


def _upwards(expression: Expression) -> Iterator[Expression]:
    """Iterate over the distinct nodes, each after its operands, from left to right."""
    met: set[int] = set()
    stack = [expression]
    while stack:
        waiting = [child for child in reversed(children(stack[-1])) if id(child) not in met]
        if waiting:
            stack.extend(waiting)
            continue
        node = stack.pop()
        if id(node) not in met:
            met.add(id(node))
            yield node


def _gather(node: Or) -> Expression:
    """Rewrite ``x = a OR x = b OR …`` as ``x IN (a, b, …)``, which is equivalent, also for NULL."""
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
