"""Bound expressions as Spark SQL text: what ``ids.predicates.three_valued`` does, in the JVM.

The text means what the in-process engine means by the tree, in any session: integers that leave
64 bits are refused with ANSI mode on or off, division by zero is NULL, and neither the session's
time zone nor the way it reads string literals matters. Which rows need the integers is told in
``ids.predicates.three_valued``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import NamedTuple

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
    Value,
    children,
    microseconds_of,
)
from ids.predicates import (
    FUNCTIONS,
    constants_first,
    exact_number,
    overflow_message,
)
from ids.spark.typed_column import Typed, spell

_DAY = 86_400_000_000
_HOUR = 3_600_000_000
_MINUTE = 60_000_000
_BEYOND = "double('9223372036854775808')"  # 2**63
_NULL = "cast(NULL as boolean)"
_CHECKED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "%": "try_mod"}
_occurrence = count(1)


def compiled(expression: Expression, columns: Mapping[str, Typed]) -> Typed:
    """The expression over the given columns. O(nodes)."""
    match expression:
        case Column(name):
            return columns[name]
        case Literal(value):
            return constant(value)
        case Negative() | Arithmetic() | Call("ABS"):
            return _closed(_arithmetic(expression, columns), expression)
        case Call("COALESCE", arguments):
            return _coalesce([compiled(argument, columns) for argument in arguments])
        case Call(function, (argument,)):
            return _call(function, compiled(argument, columns))
        case _:
            return Typed(_condition(expression, columns), Kind.BOOLEAN)


def _condition(node: Expression, columns: Mapping[str, Typed]) -> str:
    match node:
        case And(operands) | Or(operands):
            joint = " AND " if isinstance(node, And) else " OR "
            return "(" + joint.join(_truth(o, columns) for o in constants_first(operands)) + ")"
        case Not(operand):
            return f"(NOT {_truth(operand, columns)})"
        case IsTrue(operand, truth):
            return f"({_truth(operand, columns)} <=> {str(truth).lower()})"
        case IsNull(operand):
            return f"({compiled(operand, columns).text} IS NULL)"
        case Comparison(op, left, right):
            return _compare(op, compiled(left, columns), compiled(right, columns))
        case In(operand, options):
            inner = compiled(operand, columns)
            if inner.kind is None or all(option.value is None for option in options):
                return _NULL
            listed = [constant(option.value) for option in options]
            if all(
                each.kind is None or (each.kind is inner.kind and each.whole == inner.whole)
                for each in listed
            ):
                return f"({inner.text} IN ({', '.join(each.text for each in listed)}))"
            return "(" + " OR ".join(_compare("=", inner, each) for each in listed) + ")"
        case Like(operand, pattern):
            inner = compiled(operand, columns)
            if inner.kind is None:
                return _NULL
            return f"({inner.text} LIKE {spell(pattern)})"
    raise AssertionError(node)


def _truth(node: Expression, columns: Mapping[str, Typed]) -> str:
    text = compiled(node, columns).text
    return f"cast({text} as boolean)" if isinstance(node, Literal) else text


def _compare(op: str, left: Typed, right: Typed) -> str:
    if left.kind is None or right.kind is None:
        return f"({left.text} <=> {right.text})" if op == "<=>" else _NULL
    if left.kind is Kind.NUMBER and left.whole != right.whole:
        return _compare_mixed(op, left, right)
    return f"({left.text} {op} {right.text})"


def _compare_mixed(op: str, left: Typed, right: Typed) -> str:
    """A BIGINT and a DOUBLE, exactly: not every BIGINT beyond 2**53 is a double."""
    whole, other = (left.text, right.text) if left.whole else (right.text, left.text)
    below, above = (-1, 1) if left.whole else (1, -1)
    floor = f"cast(floor({other}) as bigint)"
    sign = (
        f"CASE WHEN {left.text} IS NULL OR {right.text} IS NULL THEN NULL "
        f"WHEN isnan({other}) OR {other} >= {_BEYOND} THEN {below} "
        f"WHEN {other} < (- {_BEYOND}) THEN {above} "
        f"WHEN {whole} < {floor} OR ({whole} = {floor} AND {other} > floor({other})) THEN {below} "
        f"WHEN {whole} > {floor} THEN {above} ELSE 0 END"
    )
    if op == "<=>":
        return f"coalesce({sign} = 0, {left.text} IS NULL AND {right.text} IS NULL)"
    return f"({sign} {op} 0)"


def _double(operand: Typed) -> Typed:
    """A number as DOUBLE."""
    if not operand.whole:
        return operand
    return Typed(f"cast({operand.text} as double)", Kind.NUMBER)


class _Integers(NamedTuple):
    """Arithmetic of BIGINTs: NULL where it leaves 64 bits, or where one of ``nulls`` is true.

    Its parts are in the text once, however deep it is; a part that raised an error itself would
    have to be there twice, and arithmetic of twenty columns a million times.
    """

    text: str
    nulls: tuple[str, ...]
    checked: bool = True


_NOTHING = _Integers("cast(NULL as bigint)", ("true",), False)


def _arithmetic(node: Expression, columns: Mapping[str, Typed]) -> _Integers | Typed:
    """A number: as open arithmetic of BIGINTs, if it is one."""
    match node:
        case Negative(operand):
            inner = _arithmetic(operand, columns)
            if isinstance(inner, _Integers):
                return _joined("-", _Integers("0L", (), False), inner)
            return _NOTHING if inner.kind is None else Typed(f"(- {inner.text})", Kind.NUMBER)
        case Call("ABS", (operand,)):
            inner = _arithmetic(operand, columns)
            if not isinstance(inner, _Integers):
                return inner if inner.kind is None else Typed(f"abs({inner.text})", Kind.NUMBER)
            text = f"try_cast(abs(cast({inner.text} as decimal(19, 0))) as bigint)"
            return _Integers(text, inner.nulls)
        case Arithmetic(op, left, right):
            a, b = _arithmetic(left, columns), _arithmetic(right, columns)
            whole = op != "/" and all(isinstance(x, _Integers) or x.kind is None for x in (a, b))
            if any(isinstance(x, Typed) and x.kind is None for x in (a, b)):
                return _NOTHING if whole else Typed("cast(NULL as double)", Kind.NUMBER)
            if whole and isinstance(a, _Integers) and isinstance(b, _Integers):
                return _joined(op, a, b)
            return _doubles(op, _closed(a, left), _closed(b, right))
    typed = compiled(node, columns)
    if not typed.whole:
        return typed
    constant = isinstance(node, Literal)
    return _Integers(typed.text, () if constant else (f"{typed.text} IS NULL",), False)


def _joined(op: str, a: _Integers, b: _Integers) -> _Integers:
    # Spark adds up the constants of i + 1 + 2 and misses where i + 1 leaves 64 bits; | keeps them
    # apart
    x, y = (f"({part.text} | 0L)" if part.checked else part.text for part in (a, b))
    text = f"{_CHECKED[op]}({x}, {y})"
    if op != "%":
        return _Integers(text, a.nulls + b.nulls)
    # the divisor comes first, as Spark looks at it first
    nulls = (*b.nulls, f"{b.text} <=> 0L", *a.nulls)
    return _Integers(text, nulls, a.checked or b.checked)


def _closed(number: _Integers | Typed, node: Expression) -> Typed:
    """A number that raises an error where it leaves 64 bits and nothing in it is NULL."""
    if isinstance(number, Typed):
        return number
    if not number.checked:
        return Typed(number.text, Kind.NUMBER, True)
    raised = f"cast(raise_error({spell(overflow_message(node) + _apart())}) as bigint)"
    if number.nulls:
        raised = f"if({' OR '.join(dict.fromkeys(number.nulls))}, NULL, {raised})"
    return Typed(f"coalesce({number.text}, {raised})", Kind.NUMBER, True)


def may_overflow(node: Expression, columns: Mapping[str, Typed]) -> bool:
    """Whether integers in it may leave 64 bits."""
    if isinstance(node, Negative | Arithmetic) or (
        isinstance(node, Call) and node.function == "ABS"
    ):
        number = _arithmetic(node, columns)
        if isinstance(number, _Integers) and number.checked:
            return True
    return any(may_overflow(child, columns) for child in children(node))


def _apart() -> str:
    """A text that is never the same twice in a query, and is not shown.

    Spark works out what is twice in a query before all else, even on the right of an AND; so
    no error may be like another one.
    """
    return f" #{next(_occurrence)}"


def _doubles(op: str, left: Typed, right: Typed) -> Typed:
    a, b = _double(left).text, _double(right).text
    return Typed(f"({a} {op} {f'nullif({b}, 0.0D)' if op in '/%' else b})", Kind.NUMBER)


def _coalesce(operands: list[Typed]) -> Typed:
    known = [operand for operand in operands if operand.kind is not None]
    if not known:
        return operands[0]
    whole = all(operand.whole for operand in known)
    if known[0].kind is Kind.NUMBER and not whole:
        known = [_double(operand) for operand in known]
    return Typed(f"coalesce({', '.join(operand.text for operand in known)})", known[0].kind, whole)


def _floor_div(text: str, unit: int) -> str:
    """A BIGINT divided and rounded down, exactly."""
    return f"(({text} - pmod({text}, {unit}L)) div {unit}L)"


def _call(function: str, operand: Typed) -> Typed:
    if operand.kind is None:
        return operand
    text = operand.text
    whole = True
    match function:
        case "LOWER" | "UPPER" | "TRIM":
            return Typed(f"{function.lower()}({text})", Kind.TEXT)
        case "LENGTH":
            found = f"cast(char_length({text}) as bigint)"
        case "SQRT":
            found, whole = f"sqrt({_double(operand).text})", False
        case "FLOOR" | "CEIL":
            found = text if operand.whole else _rounded(function.lower(), text)
        case "HOUR":
            found = f"pmod({_floor_div(text, _HOUR)}, 24L)"
        case "MINUTE":
            found = f"pmod({_floor_div(text, _MINUTE)}, 60L)"
        case "DAYOFWEEK":
            found = f"(pmod({_floor_div(text, _DAY)} + 4L, 7L) + 1L)"
        case _:
            day = f"date_from_unix_date(cast({_floor_div(text, _DAY)} as int))"
            found = f"cast({function.lower()}({day}) as bigint)"
    return Typed(found, FUNCTIONS[function][1], whole)


def _rounded(function: str, text: str) -> str:
    """A DOUBLE as BIGINT, as Java casts it: NaN is 0, what is too large is the nearest BIGINT."""
    return (
        f"CASE WHEN isnan({text}) THEN 0L WHEN {text} >= {_BEYOND} THEN {2**63 - 1}L "
        f"WHEN {text} < (- {_BEYOND}) THEN {constant(-(2**63)).text} ELSE {function}({text}) END"
    )


def constant(value: Value) -> Typed:
    """A constant, in the narrowest of the types that hold it exactly."""
    if value is None:
        return Typed("NULL", None)
    if isinstance(value, bool):
        return Typed(str(value).lower(), Kind.BOOLEAN)
    if isinstance(value, str):
        return Typed(spell(value), Kind.TEXT)
    if isinstance(value, datetime):
        return Typed(f"{microseconds_of(value)}L", Kind.TIME)
    number = exact_number(value)
    if isinstance(number, int):
        # the smallest BIGINT is no negated one
        text = f"{number}L" if number > -(2**63) else f"({number + 1}L - 1L)"
        return Typed(f"({text})" if number < 0 else text, Kind.NUMBER, True)
    return Typed(f"double('{number!r}')", Kind.NUMBER)


def search(test: str, cuts: Sequence[str], results: Sequence[str]) -> str:
    """A binary search: the result at the first of the ascending cuts that passes the test.

    ``test`` is the beginning of a comparison; there is one result more than there are cuts, for
    where none of them passes.

    >>> search("x <", ["1", "5", "9"], ["a", "b", "c", "d"])
    'if(x < 5, if(x < 1, a, b), if(x < 9, c, d))'
    """
    if not cuts:
        return results[0]
    half = len(cuts) // 2
    below = search(test, cuts[:half], results[: half + 1])
    above = search(test, cuts[half + 1 :], results[half + 1 :])
    return f"if({test} {cuts[half]}, {below}, {above})"
