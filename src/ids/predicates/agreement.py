"""Agreement: two sides of a comparison must be of one kind, or the script is wrong."""

from __future__ import annotations

from collections.abc import Iterable

from ids.errors import KindError, Position, ScriptError
from ids.model.expression import Column, Expression, Literal, position_of
from ids.model.rendering import brief, render
from ids.model.table import Kind
from ids.predicates.constants import quoted_name
from ids.predicates.instants import parse_instant
from ids.predicates.kinds import noun

__all__ = ["agree", "refuse"]

Typed = tuple[Expression, Kind | None]


def refuse(
    expression: Expression, kind: Kind | None, hint: str, known: Iterable[str] = ()
) -> ScriptError:
    """The error for an expression of the wrong kind: what it is, where, what is needed.

    ``known`` are the names that a text may stand for by mistake.
    """
    what = noun(kind) if kind is not None else "NULL"
    return KindError(
        f"{brief(expression)} is {what}",
        position_of(expression),
        quoted_name([expression], known) or hint,
        _texts((expression, kind)),
    )


def agree(
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
        f"{brief(a)} is {noun(kind_a)}, {brief(b)} is {noun(kind_b)}",
        at or position_of(a) or position_of(b),
        quoted_name([a, b], known) or _way_out(a, kind_a, b, kind_b),
        _texts(left, right),
    )


def _texts(*sides: Typed) -> list[str]:
    return [e.name for e, kind in sides if isinstance(e, Column) and kind is Kind.TEXT]


def _is_text(expression: Expression) -> bool:
    return isinstance(expression, Literal) and isinstance(expression.value, str)


def _instant(expression: Expression, at: Position | None, known: Iterable[str]) -> Literal:
    assert isinstance(expression, Literal)
    assert isinstance(expression.value, str)
    instant = parse_instant(expression.value)
    if instant is None:
        raise ScriptError(
            f"{brief(expression)} is no timestamp",
            expression.at or at,
            quoted_name([expression], known) or "write it as '2024-01-31 12:00:00'",
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
    return f"compare {brief(a)} with {noun(kind_a)}"


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
