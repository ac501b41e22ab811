"""Recount: the summary of a predicate from the rows inside, from scratch and exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NamedTuple, TypeVar

__all__ = ["Recount", "recount"]

Row = TypeVar("Row")


class Recount(NamedTuple):
    """How many rows hold the predicate, the sum of their values, and of their squares."""

    m: int
    A: Fraction
    B: Fraction


def recount(
    rows: Iterable[Row],
    predicate_fn: Callable[[Row], bool | None],
    value_fn: Callable[[Row], float | int | Fraction | None],
) -> Recount:
    """m, A, B of the rows whose predicate is true (not NULL) and whose value is not NULL. O(rows).

    Every float is taken as the rational it is: nothing is ever rounded.
    """
    m, A, B = 0, Fraction(0), Fraction(0)
    for row in rows:
        value = value_fn(row)
        if value is None or predicate_fn(row) is not True:
            continue
        y = Fraction(value)
        m, A, B = m + 1, A + y, B + y * y
    return Recount(m, A, B)
