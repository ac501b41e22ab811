"""A question put to a running engine: which state answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ids.model.expression import And, Expression, Name, Not, Or, children
from ids.model.table import Kind
from ids.plan.select import mechanism_of, registered_as
from ids.predicates.binding import bind_predicate

__all__ = ["Path", "choose", "named_in", "over_names"]


@dataclass(frozen=True, slots=True)
class Path:
    """How a predicate is answered.

    mechanism  ``marginal``, ``compositional`` or ``scan``
    name       the registered predicate, for a marginal
    condition  over the registered names (compositional) or over columns (scan)
    """

    mechanism: str
    name: str | None = None
    condition: Expression | None = None


def over_names(predicate: Expression, registered: Mapping[str, Expression]) -> Expression:
    """A combination of registered names, with the names read as columns of truths."""
    return bind_predicate(predicate, dict.fromkeys(registered, Kind.BOOLEAN))


def choose(
    predicate: Expression, registered: Mapping[str, Expression], schema: Mapping[str, Kind]
) -> Path:
    """Registered, then compositional; anything that reads a column is put to the rows."""
    mechanism = mechanism_of(predicate, registered, schema)
    if mechanism == "marginal":
        assert isinstance(predicate, Name)
        return Path("marginal", name=registered_as(predicate.name, registered, schema))
    if mechanism == "compositional":
        return Path("compositional", condition=over_names(predicate, registered))
    return Path("scan", condition=bind_predicate(predicate, schema, registered))


def named_in(predicate: Expression) -> list[Name]:
    """The names a combination is made of."""
    stack, found = [predicate], []
    while stack:
        node = stack.pop()
        if isinstance(node, Name):
            found.append(node)
        elif isinstance(node, And | Or | Not):
            stack.extend(children(node))
    return found
