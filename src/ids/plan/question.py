"""A question put to a running engine: which state answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ids.games import Game
from ids.model.expression import And, Expression, IsTrue, Literal, Name, Not, Or, children
from ids.model.query import Approximate
from ids.model.table import Kind
from ids.plan.recognising import Recogniser, Related
from ids.plan.select import mechanism_of, registered_as
from ids.predicates.binding import bind_predicate

__all__ = ["Path", "Question", "choose", "named_in", "over_names", "rows_path"]


@dataclass(frozen=True, slots=True)
class Path:
    """How a predicate is answered.

    mechanism  ``marginal`` or ``compositional``, or ``rows``: some rows must be looked at
    why        what made it so
    name       the registered predicate, for a marginal
    condition  over the registered names (compositional) or over columns (rows)
    key        of a condition over columns: equal for all conditions that mean the same
    related    what the registered predicates tell of a condition over columns
    """

    mechanism: str
    why: str
    name: str | None = None
    condition: Expression | None = None
    key: str = ""
    related: Related | None = None


class Question(NamedTuple):
    """A question as it was planned.

    measure      the number of the measure that the game is played on
    path         what answers it
    approximate  the sample that was asked for, if one was
    """

    game: Game
    measure: int
    path: Path
    approximate: Approximate | None = None


def over_names(predicate: Expression, registered: Mapping[str, Expression]) -> Expression:
    """A combination of registered names, with the names read as columns of truths."""
    return bind_predicate(predicate, dict.fromkeys(registered, Kind.BOOLEAN))


def choose(
    predicate: Expression,
    registered: Mapping[str, Expression],
    schema: Mapping[str, Kind],
    recogniser: Recogniser,
) -> Path:
    """Registered, then compositional, by name or by meaning; anything else is put to the rows."""
    mechanism = mechanism_of(predicate, registered, schema)
    if mechanism == "marginal":
        assert isinstance(predicate, Name)
        name = registered_as(predicate.name, registered, schema)
        return Path("marginal", "it is registered", name)
    if mechanism == "compositional":
        condition = over_names(predicate, registered)
        return Path("compositional", "it combines registered predicates", None, condition)
    bound = bind_predicate(predicate, schema, registered)
    name = recogniser.name_of(bound)
    if name is not None:
        return Path("marginal", f"it means the registered {name}", name)
    path = rows_path(bound, recogniser)
    if path.related is not None and not _reads_columns(path.related.mixed):
        condition = over_names(path.related.mixed, registered)
        return Path("compositional", "its parts are registered", None, condition)
    return path


def rows_path(bound: Expression, recogniser: Recogniser) -> Path:
    """A condition over columns, put to the rows; what is registered may spare most of them."""
    related = recogniser.related(bound)
    return Path(
        "rows",
        "nothing registered answers it",
        condition=bound,
        key=recogniser.key(bound),
        related=related if related.useful else None,
    )


def _reads_columns(mixed: Expression) -> bool:
    """Whether a part is left that no registered predicate stands for."""
    match mixed:
        case Name():
            return False
        case Literal(value):
            return not isinstance(value, bool | None)
        case And(operands) | Or(operands):
            return any(map(_reads_columns, operands))
        case Not(operand) | IsTrue(operand):
            return _reads_columns(operand)
    return True


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
