"""The registered conditions: bound to the columns, and what stays of them without atoms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ids.engine.core import Core
from ids.engine.refining import enumerate_targets
from ids.model.expression import Expression, Name
from ids.model.table import Kind
from ids.plan.question import named_in, over_names
from ids.predicates.binding import bind_predicate
from ids.state.refined import Refined

__all__ = ["bind_conditions", "bind_targets", "keep_to_the_limit", "targets_of"]


def bind_conditions(
    conditions: Mapping[str, Expression], kinds: Mapping[str, Kind | None]
) -> dict[str, Expression]:
    """Conditions over the columns; each may use those registered before it."""
    bound: dict[str, Expression] = {}
    for name, condition in conditions.items():
        bound[name] = bind_predicate(condition, kinds, bound, columns_first=True)
    return bound


def targets_of(
    registered: Iterable[str], combinations: Mapping[str, Expression]
) -> dict[str, Expression]:
    """What stays when the atoms go: the registered names, and the combinations of them."""
    names = {name: Name(name) for name in registered}
    known = {name.lower() for name in names}
    usable = {
        text: expression
        for text, expression in combinations.items()
        if known.issuperset(part.name.lower() for part in named_in(expression))
    }
    return {**names, **usable}


def bind_targets(core: Core, combinations: Mapping[str, Expression]) -> dict[str, Expression]:
    """The targets over the table's columns."""
    targets = targets_of(core.predicates, combinations)
    return {k: bind_predicate(e, core.schema.kinds, core.predicates) for k, e in targets.items()}


def keep_to_the_limit(core: Core, limit: int, combinations: Mapping[str, Expression]) -> bool:
    """Give up the atoms when more than ``limit`` were met; True if that happened."""
    if not isinstance(core.membership, Refined) or not core.predicates:
        return False  # without a predicate there is one atom, and nothing to keep in its place
    if core.membership.refinement.met <= limit:
        return False
    targets = targets_of(core.predicates, combinations)
    named = {text: over_names(e, core.predicates) for text, e in targets.items()}
    enumerate_targets(core, bind_targets(core, combinations), named)
    return True
