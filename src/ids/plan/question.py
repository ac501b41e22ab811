"""Plans ad hoc questions to a running engine.

An *offer* is a mechanism that can answer a question, with its expected cost. A *path* describes how
a predicate is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ids.games import Game
from ids.model import And, Approximate, Expression, Kind, Name, Not, Or
from ids.plan.script import leaves, mechanism_of, registered_as
from ids.predicates import bind_predicate, predicate_key

# Rounded measurements in nanoseconds; only their ratios matter.
_SCAN_ROW = 2.5
_CANDIDATE_ROW = 8.0
_INDEX_START = 15_000.0
_SCAN_START = 40_000.0


class Offer(NamedTuple):
    """A mechanism that can answer a question.

    rows    the expected number of rows read
    cost    the expected time in nanoseconds
    reason  why this mechanism is available
    exact   whether the answer will be exact
    """

    mechanism: str
    rows: int
    cost: float
    reason: str
    exact: bool = True


def scan_offer(rows: int) -> Offer:
    """Return an offer to read every row in the window."""
    cost = _SCAN_START + rows * _SCAN_ROW
    return Offer("scan", rows, cost, f"it reads all {rows:,} rows in the window")


def index_offer(rows: int, candidates: int) -> Offer:
    """Return an offer to read the rows that the index cannot rule out."""
    cost = _INDEX_START + candidates * _CANDIDATE_ROW
    return Offer("index", candidates, cost, f"the index selects {candidates:,} of {rows:,} rows")


def sample_offer(drawn: int, *, stratified: bool, asked: bool) -> Offer:
    """Return an offer to read only the rows in a sample."""
    mechanism = "stratified" if stratified else "sample"
    cost = _SCAN_START + drawn * _CANDIDATE_ROW
    reason = "a sample was requested" if asked else "it reads a random sample"
    return Offer(mechanism, drawn, cost, reason, exact=False)


def choose_offer(offers: Sequence[Offer]) -> Offer:
    """Return the cheapest exact offer, or the cheapest estimate if no offer is exact."""
    return min(offers, key=lambda offer: (not offer.exact, offer.cost))


@dataclass(frozen=True, slots=True)
class Path:
    """How a predicate is evaluated.

    mechanism  ``marginal``, ``compositional``, or ``rows`` if some rows must be read
    reason     why this path was chosen
    name       the registered predicate (for ``marginal``)
    condition  a condition over the registered names (``compositional``) or over columns (``rows``)
    key        the key of the normal form, for a condition over columns
    """

    mechanism: str
    reason: str
    name: str | None = None
    condition: Expression | None = None
    key: str = ""


class Question(NamedTuple):
    """A planned question.

    measure      the number of the game's measure
    path         how the predicate is evaluated
    approximate  the requested sample, if any
    """

    game: Game
    measure: int
    path: Path
    approximate: Approximate | None = None


def over_names(predicate: Expression, registered: Mapping[str, Expression]) -> Expression:
    """Bind a combination of registered names, treating each name as a BOOLEAN column."""
    return bind_predicate(predicate, dict.fromkeys(registered, Kind.BOOLEAN))


def names_by_key(registered: Mapping[str, Expression]) -> dict[str, Expression]:
    """Map the keys of registered predicates and their negations to the first matching name."""
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
    """Choose whether to use a registered predicate (found by name or key), atoms, or rows.

    ``names`` is the result of ``names_by_key``.
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
        return Path("marginal", f"it is equivalent to the registered {meant.name}", meant.name)
    if meant is not None:
        return Path(
            "compositional", "its parts are registered", None, over_names(meant, registered)
        )
    return rows_path(bound)


def _in_names(bound: Expression, names: Mapping[str, Expression]) -> Expression | None:
    """Rewrite a condition in terms of registered predicates; return None if that fails.

    Where AND and OR are TRUE depends only on where their operands are TRUE, so an operand may be
    replaced by one with the same key. NOT is pushed down first.
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
    """Return the path for a condition that must be evaluated on rows."""
    key = predicate_key(bound)
    return Path("rows", "no registered predicate answers it", condition=bound, key=key)


def named_in(predicate: Expression) -> list[Name]:
    """Return the names in a combination of predicates."""
    return [node for node in leaves(predicate) if isinstance(node, Name)]
