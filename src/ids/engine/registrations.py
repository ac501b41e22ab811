"""An engine's registered predicates.

An *atom* is a set of rows on which every registered predicate has the same truth value. If there
are more atoms than ``atom_limit``, the engine abandons them and keeps sums only for the *targets*:
the registered predicates, and the combinations of them that the user listed in ``intersections``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ids.engine.core import Core
from ids.errors import ScriptError, UnknownNameError
from ids.model import Expression, Kind, Name
from ids.plan import named_in, over_names
from ids.predicates import bind_predicate, refuse_constant_tests


def bind_conditions(
    conditions: Mapping[str, Expression], kinds: Mapping[str, Kind | None]
) -> dict[str, Expression]:
    """Bind the conditions to the columns; a condition may use the names defined before it."""
    bound: dict[str, Expression] = {}
    for name, condition in conditions.items():
        bound[name] = bind_predicate(condition, kinds, bound, columns_first=True)
    return bound


class Registrations:
    """The registered conditions by name, in order of registration; names are case-insensitive.

    combinations  the intersections to keep when the atoms are abandoned, keyed by their text
    changed       a function that is called after a predicate is added or removed
    """

    def __init__(self, combinations: Mapping[str, Expression], changed: Callable[[], None]) -> None:
        self.conditions: dict[str, Expression] = {}
        self.changed = changed
        self._combinations = combinations

    def restore(self, conditions: Mapping[str, Expression]) -> None:
        """Restore the conditions from a checkpoint."""
        self.conditions = dict(conditions)

    def register(self, core: Core | None, name: str, condition: Expression) -> None:
        """Register a predicate, and compute its exact sums over the rows in the window."""
        if name.lower() in self._names(core):
            raise ScriptError(f"predicate {name!r} is already registered", hint="drop it first")
        conditions = {**self.conditions, name: condition}
        if core is None:
            # the condition is bound later, when the first batch shows which columns there are
            refuse_constant_tests(condition)
        else:
            core.refuse_unless_raw()
            core.refine(bind_conditions(conditions, core.schema.kinds))
        self.conditions = conditions
        self._finish(core)

    def drop(self, core: Core | None, name: str) -> str:
        """Drop a predicate, and return its name in the spelling used at registration."""
        exact = self._names(core).get(name.lower())
        if exact is None:
            raise UnknownNameError("predicate", name, self.conditions)
        if core is not None and core.remove_provisional(exact):
            self.changed()
            return exact
        conditions = {n: c for n, c in self.conditions.items() if n != exact}
        if core is not None:
            bind_conditions(conditions, core.schema.kinds)  # raises if another predicate uses it
            core.drop(exact, self._targets(conditions))
        self.conditions = conditions
        self._finish(core)
        return exact

    def _finish(self, core: Core | None) -> None:
        if core is not None and core.exceeds_limit:
            self.give_up_atoms(core)
        self.changed()

    def _names(self, core: Core | None) -> dict[str, str]:
        """Return the names in use, including provisional ones, keyed by lowercased name."""
        provisional = () if core is None else core.provisional
        return {name.lower(): name for name in (*self.conditions, *provisional)}

    def give_up_atoms(self, core: Core) -> None:
        """Abandon the atoms, and keep only the sums of the targets."""
        targets = self._targets(core.predicates)
        named = {text: over_names(e, core.predicates) for text, e in targets.items()}
        core.enumerate(self.bind_targets(core), named)
        self.changed()

    def _targets(self, registered: Iterable[str]) -> dict[str, Expression]:
        """Return the registered names, and the combinations that only use these names."""
        names = {name: Name(name) for name in registered}
        known = {name.lower() for name in names}
        usable = {
            text: expression
            for text, expression in self._combinations.items()
            if known.issuperset(part.name.lower() for part in named_in(expression))
        }
        return {**names, **usable}

    def bind_targets(self, core: Core) -> dict[str, Expression]:
        """Return the targets, bound to the table's columns."""
        kinds, known = core.schema.kinds, core.predicates
        return {t: bind_predicate(e, kinds, known) for t, e in self._targets(known).items()}
