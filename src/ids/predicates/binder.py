"""Binding: names become columns or registered conditions, and every node's kind is checked.

Names are resolved as Spark resolves them. Tests that read no column are refused, with a hint where
a name stands in the wrong quotes: a script quotes names as Spark does, in backticks; "region" is a
text. In PostgreSQL and DuckDB it is a name, so ``"region" = 'EU'`` would quietly be FALSE on every
row for whoever comes from there.
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
    parse_timestamp,
    position_of,
    quoted,
    render,
)
from ids.predicates.functions import FUNCTIONS, compile_pattern
from ids.predicates.vector import kind_of_value

# Deeper than the parser allows in one condition, shallow enough to walk recursively.
_DEEPEST = 256
_LARGEST = 1_000_000
# From here on, OR of equalities becomes one IN: one pass over the rows instead of thousands.
_MANY_EQUALITIES = 8

Typed = tuple[Expression, Kind | None]


@dataclass(frozen=True, slots=True)
class _Scope:
    """The columns of one table and the predicates registered on it.

    The exact spelling comes first, then a spelling that differs only in case. Among equals a
    registered predicate hides the column of its name, unless ``columns_first``. A column without
    a kind holds nothing: it is NULL, and as such of any kind.
    """

    schema: Mapping[str, Kind | None]
    registered: Mapping[str, Expression]
    columns_first: bool
    table: str

    @property
    def names(self) -> list[str]:
        """Every name that has a meaning here."""
        return [*self.schema, *self.registered]

    def resolve(self, name: Name, *, condition: bool = False) -> tuple[Expression, Kind | None]:
        """What the name stands for, and its kind. O(1) when spelled exactly, else O(names).

        ``condition`` says that it stands where a condition is meant, so it may be a predicate.
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
            return _Scope(self.schema, {}, True, "").resolve(bare)
        if condition:
            raise self._unknown_predicate(name)
        raise UnknownNameError("column", name.name, self.names, name.at)

    def _unknown_predicate(self, name: Name) -> UnknownNameError:
        """The error of a name that is no condition; only a script's table has a name."""
        conditions = [n for n, kind in self.schema.items() if kind in (Kind.BOOLEAN, None)]
        register = f"register({name.name!r}, …) first"
        if self.table:
            register = f"REGISTER PREDICATE {quoted(name.name)} AS (…) ON {self.table} first"
        known = [*conditions, *self.registered]
        return UnknownNameError("predicate", name.name, known, name.at, register)

    def _found(self, name: Name, spelling: str, column: bool) -> tuple[Expression, Kind | None]:
        if column and self.schema[spelling] is None:
            return Literal(None, name.at), None
        if column:
            return Column(spelling, name.at), self.schema[spelling]
        return self.registered[spelling], Kind.BOOLEAN


def other_spelling(
    name: str, known: Iterable[str], at: Position | None, table: str = ""
) -> str | None:
    """The known name that differs from this one only in case; two of them are refused."""
    alike = [each for each in known if each.lower() == name.lower()]
    if len(alike) > 1:
        where = f" in {table}" if table else ""
        hint = "write " + " or ".join(sorted(alike))
        raise ScriptError(f"{name!r} is ambiguous{where}", at, hint)
    return alike[0] if alike else None


def refuse_constant_tests(expression: Expression, known: Iterable[str] = ()) -> None:
    """Refuse a comparison, IN, LIKE or IS NULL that reads no column; O(nodes).

    It is the same on every row, so it tells nothing about any of them. TRUE, FALSE and NULL alone
    are allowed: nobody writes them by mistake. ``known`` are the names that a text may mean.
    """
    reads: dict[int, bool] = {}
    for node in _upwards(expression):
        below = any(reads[id(child)] for child in children(node))
        reads[id(node)] = isinstance(node, Name | Column) or below
        if isinstance(node, Comparison | In | Like | IsNull) and not reads[id(node)]:
            raise _reads_no_column(node, known, "name a column, or write TRUE or FALSE")


def _refuse_quoted_measure(measure: Expression, known: Iterable[str] = ()) -> None:
    """Refuse ``COUNT("x")``, which counts every row; ``COUNT(1)`` is written to do just that."""
    nodes = list(_nodes(measure))
    if any(isinstance(node, Literal) and node.double_quoted for node in nodes) and not any(
        isinstance(node, Name | Column) for node in nodes
    ):
        raise _reads_no_column(measure, known, "name a column, or write COUNT(*)")


def _name_hint(expressions: Iterable[Expression], known: Iterable[str]) -> str | None:
    """The hint for a text that is meant as a name, if there is one among the expressions.

    In double quotes it may be misspelt, or anything where no name is known yet.
    """
    names = {name.lower(): name for name in known}
    nodes = [node for expression in expressions for node in _nodes(expression)]
    texts = [x for x in nodes if isinstance(x, Literal) and isinstance(x.value, str)]
    found = [names.get(str(text.value).lower()) for text in texts]
    for text in texts:
        if text.double_quoted:
            word = str(text.value)
            found.append(nearest(word, names.values()) if names else word)
    return next((backtick_hint(name) for name in found if name is not None), None)


def _reads_no_column(node: Expression, known: Iterable[str], hint: str) -> ScriptError:
    hint = _name_hint([node], known) or hint
    return ScriptError(f"{brief(node)} reads no column", position_of(node), hint)


def _nodes(expression: Expression) -> Iterator[Expression]:
    """Every node, from left to right."""
    stack = [expression]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def _refusal(
    expression: Expression, kind: Kind | None, hint: str, known: Iterable[str] = ()
) -> ScriptError:
    """The error for an expression of the wrong kind: what it is, where, what is needed.

    ``known`` are the names that a text may stand for by mistake.
    """
    what = kind.noun if kind is not None else "NULL"
    return KindError(
        f"{brief(expression)} is {what}",
        position_of(expression),
        _name_hint([expression], known) or hint,
        _texts((expression, kind)),
    )


def _agree(
    left: Typed, right: Typed, at: Position | None, known: Iterable[str] = ()
) -> tuple[Expression, Expression]:
    """Both sides, of one kind; a text constant beside a timestamp becomes the instant it names.

    ``known`` are the names that a text may stand for by mistake.
    """
    (a, kind_a), (b, kind_b) = left, right
    if kind_a is None or kind_b is None or kind_a is kind_b:
        return a, b
    if kind_a is Kind.TIME and _is_text(b):
        return a, _instant(b, at, known)
    if kind_b is Kind.TIME and _is_text(a):
        return _instant(a, at, known), b
    raise KindError(
        f"{brief(a)} is {kind_a.noun}, {brief(b)} is {kind_b.noun}",
        at or position_of(a) or position_of(b),
        _name_hint([a, b], known) or _way_out(a, kind_a, b, kind_b),
        _texts(left, right),
    )


def _texts(*sides: Typed) -> list[str]:
    return [e.name for e, kind in sides if isinstance(e, Column) and kind is Kind.TEXT]


def _is_text(expression: Expression) -> bool:
    return isinstance(expression, Literal) and isinstance(expression.value, str)


def _instant(expression: Expression, at: Position | None, known: Iterable[str]) -> Literal:
    assert isinstance(expression, Literal)
    assert isinstance(expression.value, str)
    instant = parse_timestamp(expression.value)
    if instant is None:
        raise ScriptError(
            f"{brief(expression)} is no timestamp",
            expression.at or at,
            _name_hint([expression], known) or "write it as '2024-01-31 12:00:00'",
        )
    return Literal(instant, expression.at)


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
    scope = _Scope(schema, registered, columns_first, table)
    _refuse_quoted_measure(expression, scope.names)
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
    scope = _Scope(schema, registered, columns_first, table)
    bound, kind = _typed(expression, scope, condition=True)
    if kind not in (Kind.BOOLEAN, None):
        raise _refusal(bound, kind, "a predicate must be a condition, such as x > 0", scope.names)
    return bound


def bind_measure(
    expression: Expression, schema: Mapping[str, Kind | None], *, table: str = ""
) -> Expression:
    """As ``bind``, and the whole is a number; no registered predicate is one."""
    scope = _Scope(schema, {}, False, table)
    bound, kind = _typed(expression, scope)
    if kind not in (Kind.NUMBER, None):
        raise _refusal(bound, kind, "an aggregate needs a number", scope.names)
    return bound


def _typed(expression: Expression, scope: _Scope, *, condition: bool = False) -> Typed:
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
    for node in _upwards(expression):
        extents = [known[id(child)] for child in children(node)]
        deepest = max((depth for depth, _ in extents), default=0)
        known[id(node)] = (deepest + 1, sum(size for _, size in extents) + 1)
    return known[id(expression)]


def _upwards(expression: Expression) -> Iterator[Expression]:
    """Every distinct node, after its operands and from left to right."""
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


@dataclass(frozen=True, slots=True)
class _Binder:
    """One walk down the tree; written so that a level costs two or three frames of recursion."""

    scope: _Scope

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
        wanted = f"{node.function} takes {takes.noun}"
        argument = self._require(node.arguments[0], takes, wanted)
        return replace(node, arguments=(argument,)), gives

    def _coalesce(self, node: Call) -> Typed:
        first: Typed = (node.arguments[0], None)
        arguments: list[Expression] = []
        for argument, kind in map(self.bind, node.arguments):
            if first[1] is None:
                first = argument, kind
            arguments.append(_agree(first, (argument, kind), node.at, self.scope.names)[1])
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
                left, right = _agree(self.bind(left), self.bind(right), node.at, self.scope.names)
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
            agreed = _agree(operand, typed, option.at or node.at, self.scope.names)[1]
            assert isinstance(agreed, Literal)
            options.append(agreed)
        return replace(node, operand=operand[0], options=tuple(options))

    def _truth(self, node: Expression, word: str) -> Expression:
        return self._require(node, Kind.BOOLEAN, f"{word} takes conditions, such as x > 0")

    def _require(self, node: Expression, wanted: Kind, hint: str) -> Expression:
        bound, kind = self.bind(node, condition=wanted is Kind.BOOLEAN)
        if kind not in (wanted, None):
            raise _refusal(bound, kind, hint, self.scope.names)
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
