"""Scales: where constants lie among the values of an expression, and the sets they bound.

A set of values is told by its *cuts*, the places between two values where it begins or ends. A
scale finds the cuts just before and just after a constant, spelled so that no two cuts lie between
the same values: on whole numbers ``> 5`` and ``>= 6`` are one set, on text ``> 'a'`` begins with
``'a\\0'``. Plain numbers are dense, for a column of integers may turn to doubles in mid-stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from ids.model.expression import Call, Expression, Value
from ids.model.table import Kind
from ids.predicates.instants import microseconds_of
from ids.predicates.kinds import kind_of
from ids.predicates.vector import exact_number

__all__ = [
    "FALSE_OR_TRUE",
    "ORDER",
    "Cut",
    "Edge",
    "Scale",
    "Values",
    "beginning_with",
    "compared",
    "listed",
    "scale_of",
]


class Edge(Enum):
    """A cut below the lowest value or above the highest: it parts nothing."""

    BELOW = "below"
    ABOVE = "above"


# An Edge, or what compares with the other cuts of its scale.
Cut = Any
Scale = Callable[[Value], tuple[Cut, Cut]]


class Values(NamedTuple):
    """A set of values: whether the lowest are in it, and the ascending cuts where that changes."""

    first: bool
    cuts: tuple[Cut, ...]

    def complement(self) -> Values:
        """All the other values."""
        return Values(not self.first, self.cuts)


_LAST_CHARACTER = chr(0x10FFFF)
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
# Functions that give whole numbers, and the least and the greatest they give.
_WHOLE = {
    "CEIL": (_SMALLEST, _LARGEST),
    "DAY": (1, 31),
    "DAYOFWEEK": (1, 7),
    "FLOOR": (_SMALLEST, _LARGEST),
    "HOUR": (0, 23),
    "LENGTH": (0, _LARGEST),
    "MINUTE": (0, 59),
    "MONTH": (1, 12),
    "YEAR": (_SMALLEST, _LARGEST),
}


def _dense(value: Value) -> tuple[Cut, Cut]:
    """Numbers as Spark orders them, NaN above the infinite; no constant is rounded."""
    assert isinstance(value, int | float)
    number = exact_number(value)
    if number != number:
        return (math.inf, 1), Edge.ABOVE
    near = float(number)
    number = near + 0.0 if near == number else number  # one spelling of 1 and 1.0, of 0.0 and -0.0
    return Edge.BELOW if near == -math.inf else (number, 0), (number, 1)


def _whole(least: int, greatest: int, value: Value) -> tuple[Cut, Cut]:
    """Whole numbers from the least to the greatest; the constant need not be one of them."""
    assert not isinstance(value, str | None)
    number = microseconds_of(value) if isinstance(value, datetime) else exact_number(value)
    if number < least:
        return Edge.BELOW, Edge.BELOW
    if not number <= greatest:  # NaN is above as well
        return Edge.ABOVE, Edge.ABOVE
    before, after = math.ceil(number), math.floor(number) + 1
    return (
        before if before > least else Edge.BELOW,
        after if after <= greatest else Edge.ABOVE,
    )


def _text(value: Value) -> tuple[Cut, Cut]:
    """Text by code point: the next text after any is that text and one zero character."""
    assert isinstance(value, str)
    return value or Edge.BELOW, value + "\0"


FALSE_OR_TRUE: Scale = partial(_whole, 0, 1)
ORDER: Scale = partial(_whole, -1, 1)
"""Whether one value is below, at or above another."""
_INSTANTS: Scale = partial(_whole, _SMALLEST, _LARGEST)


def scale_of(subject: Expression, kinds: Mapping[str, Kind]) -> Scale:
    """The scale on which an expression's values lie."""
    if isinstance(subject, Call) and subject.function in _WHOLE:
        return partial(_whole, *_WHOLE[subject.function])
    match kind_of(subject, kinds):
        case Kind.TEXT:
            return _text
        case Kind.TIME:
            return _INSTANTS
        case Kind.BOOLEAN:
            return FALSE_OR_TRUE
        case _:
            return _dense


def compared(scale: Scale, op: str, constant: Value) -> Values:
    """The values v with ``v op constant``."""
    before, after = scale(constant)
    match op:
        case "=" | "<=>":
            return _bounded(False, (before, after))
        case "<>":
            return _bounded(True, (before, after))
        case "<":
            return _bounded(True, (before,))
        case "<=":
            return _bounded(True, (after,))
        case ">":
            return _bounded(False, (after,))
        case _:
            return _bounded(False, (before,))


def listed(scale: Scale, constants: Iterable[Value]) -> Values:
    """The values equal to one of the constants. O(n log n)."""
    places = {scale(constant) for constant in constants}
    return _bounded(False, (cut for place in places for cut in place))


def beginning_with(prefix: str) -> Values:
    """The texts that begin with a prefix: those from it up to the next one of its length."""
    stem = prefix.rstrip(_LAST_CHARACTER)
    after = stem[:-1] + chr(ord(stem[-1]) + 1) if stem else Edge.ABOVE
    return _bounded(False, (_text(prefix)[0], after))


def _bounded(first: bool, places: Iterable[Cut]) -> Values:
    """A set that changes at each place; at a place named twice it does not change."""
    cuts: set[Cut] = set()
    for place in places:
        if place is Edge.BELOW:
            first = not first
        elif place is not Edge.ABOVE:
            cuts ^= {place}
    return Values(first, tuple(sorted(cuts)))
