"""The registered predicates of an engine: they come and go, and the core is refined by them."""

from __future__ import annotations

from collections.abc import Mapping

from ids.engine.conditions import bind_conditions, keep_to_the_limit, targets_of
from ids.engine.core import Core
from ids.engine.dividing import OUTCOMES, divide
from ids.engine.questions import Questions
from ids.engine.refining import drop, refine, refuse_unless_raw
from ids.errors import ScriptError, UnknownNameError
from ids.model.expression import Expression
from ids.predicates.constants import refuse_constant_tests
from ids.state.refined import Refined

__all__ = ["Registrations"]


class Registrations:
    """Conditions by name, in the order they were registered; names fold case."""

    def __init__(
        self, questions: Questions, combinations: Mapping[str, Expression], atom_limit: int
    ) -> None:
        self.conditions: dict[str, Expression] = {}
        self._questions = questions
        self._combinations = combinations
        self._atom_limit = atom_limit

    def admit(self, core: Core | None, name: str, condition: Expression) -> None:
        """Register a predicate; the rows inside are divided by it, exactly."""
        if name.lower() in self._names(core):
            raise ScriptError(f"predicate {name!r} is already registered", hint="drop it first")
        conditions = {**self.conditions, name: condition}
        if core is None:
            refuse_constant_tests(condition)  # it is bound when rows tell the columns
        else:
            refuse_unless_raw(core)
            bound = bind_conditions(conditions, core.schema.kinds)
            if isinstance(core.membership, Refined) and list(bound)[:-1] == [*core.predicates]:
                divide(core, name, bound)
            else:
                refine(core, bound)
        self.conditions = conditions
        self.keep_to_the_limit(core)
        self.changed()

    def dismiss(self, core: Core | None, name: str) -> str:
        """Drop a predicate; atoms that differed only in it become one. Returns its exact name."""
        exact = self._names(core).get(name.lower())
        if exact is None:
            raise UnknownNameError("predicate", name, self.conditions)
        if core is not None and core.provisional.pop(exact, None) is not None:
            self.changed()
            return exact
        conditions = {n: c for n, c in self.conditions.items() if n != exact}
        if core is not None:
            # others may be written with it
            bind_conditions(conditions, core.schema.kinds)
            drop(core, exact, targets_of(conditions, self._combinations))
        self.conditions = conditions
        self.keep_to_the_limit(core)
        self.changed()
        return exact

    def _names(self, core: Core | None) -> dict[str, str]:
        """The names that are taken, provisional ones included, by their lower case."""
        provisional = () if core is None else core.provisional
        return {name.lower(): name for name in (*self.conditions, *provisional)}

    def has_room(self, core: Core) -> bool:
        """Whether one predicate more is sure to leave the atoms within their limit.

        Each live atom may divide in three; a question must not cost others their joint sums.
        """
        if not isinstance(core.membership, Refined):
            return True
        return OUTCOMES * len(core.membership.live) <= self._atom_limit

    def changed(self) -> None:
        """Something that answers came or went: plans are made anew."""
        self._questions.refined()

    def keep_to_the_limit(self, core: Core | None) -> bool:
        """Give up the atoms where there are too many; True if that happened."""
        if core is None or not keep_to_the_limit(core, self._atom_limit, self._combinations):
            return False
        self.changed()
        return True
