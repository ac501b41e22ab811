"""What a running engine can be asked: everything that reads, and changes no row."""

from __future__ import annotations

from threading import RLock

from ids.engine.answering import residual, worth
from ids.engine.core import Core
from ids.engine.explaining import explain_answer
from ids.engine.promoting import Promoter
from ids.engine.questions import Questions, Wording
from ids.engine.registrations import Registrations
from ids.engine.rescaling import worth_rounded
from ids.model.attribution import Attribution
from ids.model.query import Approximate
from ids.model.rendering import render
from ids.plan.mechanism import choose_offer
from ids.state.refined import Refined

__all__ = ["Asking"]


class Asking:
    """The reading half of an engine: a question sees a whole slide or none of it.

    Two locks: whoever writes holds both in turn, ``_writing`` first; who asks holds ``_state``.
    """

    _core: Core | None
    _questions: Questions
    _registered: Registrations
    _promoter: Promoter | None
    _writing: RLock
    _state: RLock

    @property
    def predicates(self) -> dict[str, str]:
        """The registered predicates and their conditions, those promoted included."""
        return {name: render(c) for name, c in self._registered.conditions.items()}

    @property
    def promoted(self) -> dict[str, str]:
        """The promoted conditions by the names they were given, provisional ones included."""
        with self._state:
            provisional = {} if self._core is None else self._core.provisional
            named = {} if self._promoter is None else self._promoter.names
            known = self._registered.conditions
            return {
                name: render(provisional[name].condition if name in provisional else known[name])
                for name in named.values()
            }

    @property
    def rows(self) -> int:
        """The rows inside the window."""
        with self._state:
            return 0 if self._core is None else self._core.rows

    @property
    def atoms(self) -> int:
        """The live atoms; 0 once they were given up at their limit."""
        with self._state:
            membership = None if self._core is None else self._core.membership
            return len(membership.live) if isinstance(membership, Refined) else 0

    def attribute(
        self, aggregate: str, predicate: str, *, sample: int | None = None, confidence: float = 0.95
    ) -> Attribution:
        """How much of the aggregate the predicate's rows account for, now.

        ``aggregate`` is ``"AVG"`` where there is one measure, else ``"AVG(latency)"``. With a
        ``sample`` of so many rows the answer is an estimate, its error bound at ``confidence``.
        """
        approximate = None if sample is None else Approximate(sample, confidence)
        asked = (aggregate, predicate, approximate)
        with self._state:
            rebuilt = self._promote(asked)
            found = self._questions.attribute(self._core, asked)
        if not rebuilt:
            return found
        return found._replace(why="this question promoted it", estimated=rebuilt, touched=rebuilt)

    def _promote(self, asked: Wording) -> int:
        """Let the promoter count a question; what follows waits while a slide is on its way."""
        promoter, core = self._promoter, self._core
        if promoter is None or core is None or asked[2] is not None:
            return 0
        question = self._questions.planned(core, asked)
        offers = self._questions.offers(core, question)
        touched = choose_offer(offers).touched if offers else 0
        free = self._writing.acquire(blocking=False)
        try:
            return promoter.ask(core, question, touched, may_change=free)
        finally:
            if free:
                self._writing.release()

    def explain(
        self, aggregate: str, predicate: str, *, sample: int | None = None, confidence: float = 0.95
    ) -> str:
        """Which mechanism answers, why, at what estimated and what actual cost; and the others.

        The question is answered to tell, but counts for no promotion.
        """
        approximate = None if sample is None else Approximate(sample, confidence)
        asked = (aggregate, predicate, approximate)
        with self._state:
            question = self._questions.planned(self._core, asked)
            offers = self._questions.offers(self._core, question)
            found = self._questions.attribute(self._core, asked)
        return explain_answer(aggregate, predicate, found, offers)

    def attribute_by_atoms(self, aggregate: str, predicate: str) -> Attribution:
        """The cross-check of a combination: every atom evaluated by itself, then added up."""
        with self._state:
            if self._core is None:
                return self.attribute(aggregate, predicate)
            return self._questions.by_atoms(self._core, aggregate, predicate)

    def aggregate(self, aggregate: str) -> float | None:
        """The aggregate itself; None where SQL says NULL."""
        with self._state:
            game, measure = self._questions.game(self._core, aggregate)
            if self._core is None or measure >= len(self._core.measures):
                return None if game.nulls else 0.0
            if measure in self._core.rounded:
                return worth_rounded(self._core, measure, game)
            return worth(self._core.measures[measure], game)

    def residual(self, aggregate: str) -> float:
        """The Efficiency probe: what the live atoms' attributions miss of the aggregate."""
        with self._state:
            game, measure = self._questions.game(self._core, aggregate)
            if self._core is None or measure >= len(self._core.measures):
                return 0.0
            return residual(self._core, self._core.measures[measure], game)
