"""Values of expressions: one spelling for equal ones, and what is known of constants in them."""

from __future__ import annotations

from datetime import datetime

from ids.model.expression import (
    Arithmetic,
    Call,
    Column,
    Expression,
    Literal,
    Negative,
)
from ids.model.table import DOUBLE_INTEGERS, Kind, Table
from ids.predicates.instants import microseconds_of
from ids.predicates.truth import kleene

__all__ = ["alternatives", "constant_truth", "spelled", "wildcards"]

_ONE_ROW = Table({}, 1)


def constant_truth(condition: Expression) -> int:
    """-1 FALSE, 0 NULL, 1 TRUE of a condition that reads no column."""
    return int(kleene(condition, _ONE_ROW)[0])


def spelled(expression: Expression) -> str:
    """A text that only expressions of equal value share; ``a + b`` is ``b + a``. O(size).

    1 and 1.0 stay apart here: beside an integer column they compute in different types.
    """
    match expression:
        case Column(name):
            return "`" + name.replace("`", "``") + "`"
        case Literal(datetime() as instant):
            return f"TIMESTAMP {microseconds_of(instant)}"
        case Literal(value):
            return repr(value)
        case Negative(operand):
            return f"-({spelled(operand)})"
        case Arithmetic(op, left, right):
            sides = [spelled(left), spelled(right)]
            if op in "+*":
                sides.sort()
            return f"({sides[0]} {op} {sides[1]})"
        case Call(function, arguments):
            return f"{function}({', '.join(map(spelled, arguments))})"
        case _:
            raise AssertionError(expression)


def alternatives(subject: Expression, kind: Kind | None) -> tuple[Expression, ...]:
    """The arguments of a COALESCE that hands them on unchanged; none where it may not.

    Integers beside doubles become doubles, so two columns of numbers may be rounded; so may one
    beside a constant, unless that is an integer and small: then either type holds both exactly.
    """
    if not (isinstance(subject, Call) and subject.function == "COALESCE"):
        return ()
    if kind is Kind.NUMBER:
        constants = [x.value for x in subject.arguments if isinstance(x, Literal)]
        exact = all(
            x is None or (isinstance(x, int) and abs(x) <= DOUBLE_INTEGERS) for x in constants
        )
        if not exact or len(subject.arguments) - len(constants) > 1:
            return ()
    return subject.arguments


def wildcards(pattern: str) -> tuple[str, str]:
    """A LIKE pattern as the text it begins with, and the rest from its first wildcard on.

    Runs of wildcards are spelled alike, since ``%_%`` and ``_%`` match the same texts. The text is
    without escapes, the rest has them.

    >>> wildcards("50\\\\%%_")
    ('50%', '_%')
    """
    prefix, rest, run = "", "", ""
    characters = iter(pattern)
    for character in characters:
        if character in "%_":
            run += character
            continue
        escaped = next(characters) if character == "\\" else character
        if not rest and not run:
            prefix += escaped
            continue
        rest += _run(run) + ("\\" + escaped if escaped in "%_\\" else escaped)
        run = ""
    return prefix, rest + _run(run)


def _run(wild: str) -> str:
    return "_" * wild.count("_") + "%" * ("%" in wild)
