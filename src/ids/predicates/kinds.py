"""What kind of value an expression has: the scalar functions and the typing of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ids.model.expression import (
    Arithmetic,
    Call,
    Column,
    Expression,
    Literal,
    Negative,
    Value,
)
from ids.model.table import Kind

__all__ = ["FUNCTIONS", "kind_of", "kind_of_value", "noun"]

# Argument and result of each one-argument function; COALESCE takes and gives any one kind.
FUNCTIONS: Mapping[str, tuple[Kind, Kind]] = {
    "ABS": (Kind.NUMBER, Kind.NUMBER),
    "FLOOR": (Kind.NUMBER, Kind.NUMBER),
    "CEIL": (Kind.NUMBER, Kind.NUMBER),
    "SQRT": (Kind.NUMBER, Kind.NUMBER),
    "LOWER": (Kind.TEXT, Kind.TEXT),
    "UPPER": (Kind.TEXT, Kind.TEXT),
    "TRIM": (Kind.TEXT, Kind.TEXT),
    "LENGTH": (Kind.TEXT, Kind.NUMBER),
    "HOUR": (Kind.TIME, Kind.NUMBER),
    "MINUTE": (Kind.TIME, Kind.NUMBER),
    "DAYOFWEEK": (Kind.TIME, Kind.NUMBER),
    "DAY": (Kind.TIME, Kind.NUMBER),
    "MONTH": (Kind.TIME, Kind.NUMBER),
    "YEAR": (Kind.TIME, Kind.NUMBER),
}

_NOUNS = {
    Kind.NUMBER: "a number",
    Kind.TEXT: "text",
    Kind.BOOLEAN: "a Boolean",
    Kind.TIME: "a timestamp",
}


def noun(kind: Kind) -> str:
    """The kind, as it stands in a sentence."""
    return _NOUNS[kind]


def kind_of_value(value: Value) -> Kind | None:
    """The kind of a constant; NULL is of any kind, hence of none."""
    if value is None:
        return None
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, int | float):
        return Kind.NUMBER
    return Kind.TIME if isinstance(value, datetime) else Kind.TEXT


def kind_of(expression: Expression, schema: Mapping[str, Kind]) -> Kind | None:
    """The kind of a bound expression; None for NULL. O(depth)."""
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
