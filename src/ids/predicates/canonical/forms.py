"""Forms: conditions as sorted AND and OR, for those whose diagrams would be too large.

A form says less than a diagram: equal forms are equal sets, but a set may have several.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

from ids.predicates.canonical.scales import Values

__all__ = ["Form", "Forms", "shortened"]

_LONGEST = 256


def shortened(text: str) -> str:
    """A text, or 256 bits in place of a long one: a key is kept and compared, not read."""
    if len(text) <= _LONGEST:
        return text
    return "#" + blake2b(text.encode(), digest_size=32).hexdigest()


class _Side(NamedTuple):
    """Sorted texts put together by AND or OR; AND of none is TRUE, OR of none is FALSE."""

    join: str
    parts: tuple[str, ...]

    def spelled(self) -> str:
        return self.parts[0] if len(self.parts) == 1 else f"{self.join}({', '.join(self.parts)})"


class Form(NamedTuple):
    """A set and its complement, side by side, so that NOT never needs to be written."""

    inside: _Side
    outside: _Side

    def spelled(self) -> str:
        """The set as text."""
        return self.inside.spelled()


class Forms:
    """An algebra of sets; O(size log size) for a condition, whatever it is."""

    def constant(self, holds: bool) -> Form:
        """Every row, or none."""
        form = Form(_Side("AND", ()), _Side("OR", ()))
        return form if holds else self.negated(form)

    def among(self, variable: str, values: Values, null: bool | None) -> Form:
        """Where a variable's value is one of a set."""
        if not values.cuts and null in (None, values.first):
            return self.constant(values.first)
        others = values.complement()
        return Form(
            _Side("AND", (_leaf(variable, values, null),)),
            _Side("AND", (_leaf(variable, others, None if null is None else not null),)),
        )

    def both(self, operands: list[Form]) -> Form:
        """The intersection."""
        return Form(
            _joined("AND", [operand.inside for operand in operands]),
            _joined("OR", [operand.outside for operand in operands]),
        )

    def either(self, operands: list[Form]) -> Form:
        """The union."""
        return self.negated(self.both([self.negated(operand) for operand in operands]))

    def negated(self, operand: Form) -> Form:
        """The complement."""
        return Form(operand.outside, operand.inside)


def _leaf(variable: str, values: Values, null: bool | None) -> str:
    return shortened(repr((variable, values.first, values.cuts, null)))


def _joined(join: str, sides: list[_Side]) -> _Side:
    neutral = _Side(join, ())
    distinct = [side for side in dict.fromkeys(sides) if side != neutral]
    if len(distinct) == 1:
        return distinct[0]
    parts: set[str] = set()
    for side in distinct:
        if not side.parts:
            return side  # FALSE in an AND, TRUE in an OR
        if side.join == join or len(side.parts) == 1:
            parts.update(side.parts)
        else:
            parts.add(shortened(side.spelled()))
    return _Side(join, tuple(sorted(parts)))
