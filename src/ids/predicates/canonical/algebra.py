"""Algebras of sets of rows: what a condition is read into, whatever the sets are made of."""

from __future__ import annotations

from typing import Protocol, TypeVar

from ids.predicates.canonical.scales import Values

__all__ = ["Algebra"]

S = TypeVar("S")


class Algebra(Protocol[S]):
    """Sets of rows: how to make them, and what to make of them."""

    def constant(self, holds: bool) -> S:
        """Every row, or none."""

    def among(self, variable: str, values: Values, null: bool | None) -> S:
        """Where a variable's value is one of a set; with ``null``, where it is NULL as well.

        ``null`` is None for a variable that is never NULL.
        """

    def both(self, operands: list[S]) -> S:
        """The rows in every operand."""

    def either(self, operands: list[S]) -> S:
        """The rows in some operand."""

    def negated(self, operand: S) -> S:
        """The other rows."""
