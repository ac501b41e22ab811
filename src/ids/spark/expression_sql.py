"""Translate columns, constants and bound expressions to Spark SQL text.

Evaluated in the JVM, the SQL returns what ``ids.predicates.three_valued`` computes in process, in
any session. Integer overflow (beyond 64 bits) raises an error whether ANSI mode is on or off, and
division by zero returns NULL. Neither the session's time zone nor its parsing of string literals
affects the result. A timestamp without a time zone is treated as UTC. The documentation of
``ids.predicates.three_valued`` says for which rows an overflow is an error.

Tables are read in the five types of ``ids.model.TYPES``. Queries compute with timestamps as
BIGINTs, in microseconds since 1970 in UTC. This module does not import pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import NamedTuple

from ids.model import (
    TYPES,
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
from ids.predicates import FUNCTIONS, constants_first, exact_number, overflow_message
from ids.source import plain_type

# Column UNFIT + NAME explains why a value of column NAME does not fit its declared type.
UNFIT = "ids_unfit:"

_PLAIN = re.compile(r"[A-Za-z0-9 _./:@+=,-]*")
_MINUTES = r"^([^:]*:[0-9]{1,2})( ?(?:Z|UTC|[+-][0-9:]+))$"
_EPOCH = "TIMESTAMP'1970-01-01 00:00:00Z'"
_EPOCH_NTZ = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_MICROS = {
    "timestamp": "unix_micros({})",
    "date": "(unix_date({}) * 86400000000L)",
    # the difference of two TIMESTAMP_NTZ values does not depend on the session's time zone
    "timestamp_ntz": f"timestampdiff(MICROSECOND, {_EPOCH_NTZ}, {{}})",
}
_DAY = 86_400_000_000
_HOUR = 3_600_000_000
_MINUTE = 60_000_000
_BEYOND = "double('9223372036854775808')"  # 2**63
_NULL = "cast(NULL as boolean)"
_CHECKED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "%": "try_mod"}
_occurrence = count(1)


def quoted(name: str) -> str:
    """Quote a column name for Spark SQL.

    >>> quoted("a.b`c")
    '`a.b``c`'
    """
    return "`" + name.replace("`", "``") + "`"


def spell(text: str) -> str:
    """Write a string literal, hex-encoding unusual characters so that no parser misreads them."""
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"decode(unhex('{text.encode().hex()}'), 'UTF-8')"


@dataclass(frozen=True, slots=True)
class Typed:
    """An SQL text and the kind of its values.

    kind   None if the text is always NULL
    whole  True for a BIGINT number, False for a DOUBLE
    """

    text: str
    kind: Kind | None
    whole: bool = False

    @property
    def type(self) -> str:
        """The Spark type of the text."""
        if self.kind is Kind.NUMBER:
            return "bigint" if self.whole else "double"
        names = {Kind.TEXT: "string", Kind.BOOLEAN: "boolean", Kind.TIME: "bigint"}
        return "boolean" if self.kind is None else names[self.kind]


def unfit_of(typed: Typed) -> str:
    """Return the name of the column that explains why a value does not fit its declared type."""
    return f"ids_unfit_{typed.text}"


def typed_value(text: str, type_: str) -> Typed | None:
    """Convert a value of a Spark type to the type that queries use; None if it is unsupported."""
    if type_ == "void":
        return Typed(text, None)
    name = plain_type(type_)
    if name is None:
        return None
    if name == "TIMESTAMP":
        return Typed(_MICROS[type_].format(text), Kind.TIME)
    converted = text if type_ == name.lower() else f"cast({text} as {name.lower()})"
    return Typed(converted, TYPES[name].kind, whole=name == "BIGINT")


def typed(sql: str, type_: str) -> str:
    """Convert a value of a Spark type to one of the five types; leave other types unchanged."""
    if type_ == "timestamp_ntz":
        return instant(sql)
    if type_ == "date":
        return instant(f"CAST({sql} AS TIMESTAMP_NTZ)")
    name = "DOUBLE" if type_ == "void" else plain_type(type_)
    return sql if name is None or type_ == name.lower() else f"CAST({sql} AS {name})"


def instant(sql: str) -> str:
    """Convert a TIMESTAMP_NTZ to a TIMESTAMP, treating it as UTC."""
    return f"({_EPOCH} + ({sql} - {_EPOCH_NTZ}))"


def floored(sql: str) -> str:
    """Convert nanoseconds since 1970 to a timestamp, rounding down (DIV rounds towards zero)."""
    return f"timestamp_micros({sql} DIV 1000L - IF({sql} % 1000L < 0L, 1L, 0L))"


def zoned_instant(sql: str) -> str:
    """Parse a timestamp, which is in UTC unless it ends with an offset or Z; NULL if invalid."""
    offset = ", ".join(f"substr({sql}, -{place}, 1)" for place in (3, 5, 6))
    zoned = (
        f"length({sql}) > 15 AND (endswith({sql}, 'Z') "
        f"OR array_contains(array({offset}), '+') OR array_contains(array({offset}), '-'))"
    )
    in_utc = instant(f"try_cast({sql} AS TIMESTAMP_NTZ)")
    return f"CASE WHEN {zoned} THEN {with_zone(sql)} ELSE {in_utc} END"


def with_zone(sql: str) -> str:
    """Parse a timestamp that ends with a time zone; NULL if the text is not a timestamp.

    Spark cannot parse a time zone after a time without seconds, so ``:00`` is added.
    """
    to_seconds = f"regexp_replace({sql}, {spell(_MINUTES)}, {spell('$1:00$2')})"
    return f"coalesce(try_cast({sql} AS TIMESTAMP), try_cast({to_seconds} AS TIMESTAMP))"


def constant(value: Value) -> Typed:
    """Write a constant in the narrowest type that represents it exactly."""
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
        # Spark parses -N as the negation of N, and 2**63 is not a BIGINT
        text = f"{number}L" if number > -(2**63) else f"({number + 1}L - 1L)"
        return Typed(f"({text})" if number < 0 else text, Kind.NUMBER, True)
    return Typed(f"double('{number!r}')", Kind.NUMBER)


def search(test: str, cuts: Sequence[str], results: Sequence[str]) -> str:
    """Write a binary search for the first of the ascending ``cuts`` that passes the test.

    ``test`` is the left half of a comparison. ``results`` has one more element than ``cuts``; the
    last one applies if no cut passes the test.

    >>> search("x <", ["1", "5", "9"], ["a", "b", "c", "d"])
    'if(x < 5, if(x < 1, a, b), if(x < 9, c, d))'
    """
    if not cuts:
        return results[0]
    half = len(cuts) // 2
    below = search(test, cuts[:half], results[: half + 1])
    above = search(test, cuts[half + 1 :], results[half + 1 :])
    return f"if({test} {cuts[half]}, {below}, {above})"


def compiled(expression: Expression, columns: Mapping[str, Typed]) -> Typed:
    """Translate a bound expression over the given columns to SQL. O(nodes)."""
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
    """Compare a BIGINT with a DOUBLE exactly; above 2**53, not every BIGINT is a double."""
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


def _double(operand: Typed) -> str:
    """Convert a number to DOUBLE."""
    return f"cast({operand.text} as double)" if operand.whole else operand.text


class _Integers(NamedTuple):
    """BIGINT arithmetic that is NULL on overflow, or if one of the conditions in ``nulls`` is true.

    The text contains each operand once, however deeply operations are nested. If every operation
    raised its own error, each operand would appear twice, and each level would double the text.
    """

    text: str
    nulls: tuple[str, ...]
    checked: bool = True


_NOTHING = _Integers("cast(NULL as bigint)", ("true",), False)


def _arithmetic(node: Expression, columns: Mapping[str, Typed]) -> _Integers | Typed:
    """Write a number; ``_closed`` adds the overflow error of BIGINT arithmetic later."""
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
            x, y = _double(_closed(a, left)), _double(_closed(b, right))
            return Typed(f"({x} {op} {f'nullif({y}, 0.0D)' if op in '/%' else y})", Kind.NUMBER)
    typed = compiled(node, columns)
    if not typed.whole:
        return typed
    nulls = () if isinstance(node, Literal) else (f"{typed.text} IS NULL",)
    return _Integers(typed.text, nulls, False)


def _joined(op: str, a: _Integers, b: _Integers) -> _Integers:
    # Spark folds i + 1 + 2 into i + 3, so it would not notice that i + 1 overflows 64 bits;
    # the | 0L prevents this folding
    x, y = (f"({part.text} | 0L)" if part.checked else part.text for part in (a, b))
    text = f"{_CHECKED[op]}({x}, {y})"
    if op != "%":
        return _Integers(text, a.nulls + b.nulls)
    # Spark evaluates the divisor first
    nulls = (*b.nulls, f"{b.text} <=> 0L", *a.nulls)
    return _Integers(text, nulls, a.checked or b.checked)


def _closed(number: _Integers | Typed, node: Expression) -> Typed:
    """Add the error that is raised if the number overflows 64 bits and no operand is NULL."""
    if isinstance(number, Typed):
        return number
    if not number.checked:
        return Typed(number.text, Kind.NUMBER, True)
    # A number at the end makes each message unique (``ids.spark.failures`` removes it), because
    # Spark evaluates an expression that occurs twice in a query early, even to the right of AND.
    message = f"{overflow_message(node)} #{next(_occurrence)}"
    raised = f"cast(raise_error({spell(message)}) as bigint)"
    if number.nulls:
        raised = f"if({' OR '.join(dict.fromkeys(number.nulls))}, NULL, {raised})"
    return Typed(f"coalesce({number.text}, {raised})", Kind.NUMBER, True)


def may_overflow(node: Expression, columns: Mapping[str, Typed]) -> bool:
    """Return whether integer arithmetic in the expression can overflow 64 bits."""
    if isinstance(node, Negative | Arithmetic) or (
        isinstance(node, Call) and node.function == "ABS"
    ):
        number = _arithmetic(node, columns)
        if isinstance(number, _Integers) and number.checked:
            return True
    return any(may_overflow(child, columns) for child in children(node))


def _coalesce(operands: list[Typed]) -> Typed:
    known = [operand for operand in operands if operand.kind is not None]
    if not known:
        return operands[0]
    kind, whole = known[0].kind, all(operand.whole for operand in known)
    mixed = kind is Kind.NUMBER and not whole
    texts = [_double(operand) if mixed else operand.text for operand in known]
    return Typed(f"coalesce({', '.join(texts)})", kind, whole)


def _floor_div(text: str, unit: int) -> str:
    """Write a BIGINT division that rounds down."""
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
            found, whole = f"sqrt({_double(operand)})", False
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
    """Round a DOUBLE to BIGINT like a Java cast: NaN becomes 0, and large values are clamped."""
    return (
        f"CASE WHEN isnan({text}) THEN 0L WHEN {text} >= {_BEYOND} THEN {2**63 - 1}L "
        f"WHEN {text} < (- {_BEYOND}) THEN {constant(-(2**63)).text} ELSE {function}({text}) END"
    )
