"""A question put to a running engine: which state answers it, and what each way would cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ids.games import Game
from ids.model import And, Approximate, Expression, Kind, Name, Not, Or, children
from ids.plan.select import mechanism_of, registered_as
from ids.predicates import bind_predicate, predicate_key

# Nanoseconds, as the evaluation finds them, rounded; only their proportions decide.
_SCAN_ROW = 2.5
_CANDIDATE_ROW = 8.0
_INDEX_START = 15_000.0
_SCAN_START = 40_000.0


class Offer(NamedTuple):
    """One way to an answer.

    rows    rows it expects to read
    cost    nanoseconds it expects to take
    reason  why it is offered
    exact   whether the answer will be exact
    """

    mechanism: str
    rows: int
    cost: float
    reason: str
    exact: bool = True


def scan_offer(rows: int) -> Offer:
    """Every row inside, once."""
    cost = _SCAN_START + rows * _SCAN_ROW
    return Offer("scan", rows, cost, f"it looks at all {rows:,} rows inside")


def index_offer(rows: int, candidates: int) -> Offer:
    """The rows that the index cannot rule out."""
    cost = _INDEX_START + candidates * _CANDIDATE_ROW
    return Offer("index", candidates, cost, f"the index leaves {candidates:,} of {rows:,} rows")


def sample_offer(drawn: int, *, stratified: bool, asked: bool) -> Offer:
    """The rows drawn."""
    mechanism = "stratified" if stratified else "sample"
    cost = _SCAN_START + drawn * _CANDIDATE_ROW
    reason = "a sample was asked for" if asked else "it looks at rows drawn at random"
    return Offer(mechanism, drawn, cost, reason, exact=False)


def choose_offer(offers: Sequence[Offer]) -> Offer:
    """The cheapest exact one; an estimate only where nothing exact is on offer."""
    return min(offers, key=lambda offer: (not offer.exact, offer.cost))


@dataclass(frozen=True, slots=True)
class Path:
    """How a predicate is answered.

    mechanism  ``marginal`` or ``compositional``, or ``rows``: some rows must be looked at
    reason     why this path was chosen
    name       the registered predicate, for a marginal
    condition  over the registered names (compositional) or over columns (rows)
    key        of a condition over columns: equal only for conditions that hold on the same rows
    """

    mechanism: str
    reason: str
    name: str | None = None
    condition: Expression | None = None
    key: str = ""


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


def names_by_key(registered: Mapping[str, Expression]) -> dict[str, Expression]:
    """The registered predicates' names, and NOT of them, by their keys; of one key, the first."""
    known: dict[str, Expression] = {}
    for name, bound in registered.items():
        known.setdefault(predicate_key(bound), Name(name))
    for name, bound in registered.items():
        known.setdefault(predicate_key(Not(bound)), Not(Name(name)))
    return known


def choose(
    predicate: Expression,
    registered: Mapping[str, Expression],
    schema: Mapping[str, Kind],
    names: Mapping[str, Expression],
) -> Path:
    """Which state answers: a registered predicate, by name or by key, or atoms, or the rows.

    ``names`` are what ``names_by_key`` gives.
    """
    mechanism = mechanism_of(predicate, registered, schema)
    if mechanism == "marginal":
        assert isinstance(predicate, Name)
        name = registered_as(predicate.name, registered, schema)
        return Path("marginal", "it is registered", name)
    if mechanism == "compositional":
        condition = over_names(predicate, registered)
        return Path("compositional", "it combines registered predicates", None, condition)
    bound = bind_predicate(predicate, schema, registered)
    meant = _in_names(bound, names)
    if isinstance(meant, Name):
        return Path("marginal", f"it means the registered {meant.name}", meant.name)
    if meant is not None:
        return Path(
            "compositional", "its parts are registered", None, over_names(meant, registered)
        )
    return rows_path(bound)


def _in_names(bound: Expression, names: Mapping[str, Expression]) -> Expression | None:
    """A condition as a combination of registered predicates; None where a part of it is none.

    Where AND and OR are TRUE depends only on where their operands are TRUE, so an operand may be
    exchanged for one with the same key. NOT is pushed in first.
    """
    if (known := names.get(predicate_key(bound))) is not None:
        return known
    match bound:
        case Not(Not(operand)):
            return _in_names(operand, names)
        case Not(And(operands)):
            bound = Or(tuple(map(Not, operands)))
        case Not(Or(operands)):
            bound = And(tuple(map(Not, operands)))
    if not isinstance(bound, And | Or):
        return None
    parts = []
    for operand in bound.operands:
        part = _in_names(operand, names)
        if part is None:
            return None
        parts.append(part)
    return type(bound)(tuple(parts))


def rows_path(bound: Expression) -> Path:
    """A condition over columns, put to the rows."""
    key = predicate_key(bound)
    return Path("rows", "nothing registered answers it", condition=bound, key=key)


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
