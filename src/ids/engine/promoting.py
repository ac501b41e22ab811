"""Promotion carried out: conditions that keep coming become predicates, and go when stale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import TIMEOUT_MAX, Timer
from typing import Any

from ids.engine.core import Core
from ids.engine.provisional import Provisional
from ids.engine.registrations import Registrations
from ids.errors import UnknownNameError
from ids.model.expression import Expression, Name, columns_of
from ids.model.promotion import Promotion
from ids.plan.promotion import Policy
from ids.plan.question import Path, Question

__all__ = ["Promoter"]

# A question that looks at a quarter of the rows or more weighs as much as one that looks at all.
_DEAR = 4.0


class Promoter:
    """Which conditions are promoted, under which names; ``policy`` decides, this does.

    Every question is counted at once. The predicates change only when no slide is on its way: with
    the question, or else behind the slide (``catch_up``).
    """

    def __init__(
        self, promotion: Promotion, registrations: Registrations, rebuild: Callable[[], object]
    ) -> None:
        self.promotion = promotion
        self.policy = Policy(promotion)
        self.names: dict[str, str] = {}  # by key, and so are the weights
        self.weights: dict[str, float] = {}  # of a question, were it not promoted
        self._registrations = registrations
        self._rebuild = rebuild
        self._serial = 0
        self._due: dict[str, tuple[Expression, float]] = {}  # conditions and weights, by key
        self._overdue = False  # the exact rebuild

    def ask(self, core: Core, question: Question, touched: int, *, may_change: bool) -> int:
        """A question came that would look at ``touched`` rows: rows looked at for a promotion.

        A promotion answers the question that caused it, so it costs no look at a row more than
        the scan it replaces. Where the predicates must stay as they are, the question is counted.
        """
        if may_change:
            self._demote_stale(core)
        for key in self._used(question.path):
            self.policy.ask(key, self.weights[key])
        path = question.path
        if path.mechanism == "rows":
            weight = min(1.0, _DEAR * touched / max(1, core.rows))
            if self.policy.ask(path.key, weight) is not None:
                assert path.condition is not None
                self._due[path.key] = path.condition, weight
        return self._promote_due(core).get(path.key, 0) if may_change else 0

    def catch_up(self, core: Core) -> None:
        """Behind a slide: what questions and the clock asked for while it was on its way."""
        if self._overdue:
            self.settle(core)
        self._demote_stale(core)
        self._promote_due(core)

    def _demote_stale(self, core: Core) -> None:
        for key in self.policy.stale():
            self._demote(core, key)

    def _promote_due(self, core: Core) -> dict[str, int]:
        """Promote what still deserves it; the rows looked at for each."""
        due, self._due = self._due, {}
        looked_at = {}
        for key, (condition, weight) in due.items():
            verdict = self.policy.verdict(key)
            if verdict is None or not self._registrations.has_room(core):
                continue
            if verdict.demoted is not None:
                self._demote(core, verdict.demoted)
            self.weights[key] = weight
            looked_at[key] = self._promote(core, key, condition)
        return looked_at

    def _used(self, path: Path) -> list[str]:
        """The promoted conditions that answer a question."""
        used = {path.name} if path.name else set(columns_of(path.condition or Name("")))
        return [key for key, name in self.names.items() if name in used]

    def _promote(self, core: Core, key: str, condition: Expression) -> int:
        """Do it; how many rows were looked at."""
        taken = {*self._registrations.conditions, *core.provisional, *core.schema.kinds}
        name = self._free_name({each.lower() for each in taken})
        if self.promotion.bootstrap == "sample" and core.rows:
            core.provisional[name] = Provisional(name, key, condition, core)
            self._registrations.changed()
            if self.promotion.rebuild_after <= TIMEOUT_MAX:  # else only when asked to
                timer = Timer(self.promotion.rebuild_after, self._rebuild_when_due)
                timer.daemon = True
                timer.start()
        else:
            self._registrations.admit(core, name, condition)
        self.names[key] = name
        self.policy.promote(key)
        provisional = core.provisional.get(name)
        return core.rows if provisional is None else provisional.looked_at

    def _demote(self, core: Core, key: str) -> None:
        name = self.names.pop(key)
        del self.weights[key]
        self.policy.demote(key)
        # where a predicate of the user's is written with it, it stays, as one of the user's own
        with suppress(UnknownNameError):
            self._registrations.dismiss(core, name)

    def _rebuild_when_due(self) -> None:
        """Rebuild as soon as no slide is on its way; a busy writer does it behind its own."""
        self._overdue = True
        self._rebuild()

    def settle(self, core: Core) -> list[str]:
        """Count every provisional predicate exactly; their names."""
        self._overdue = False
        settled = list(core.provisional.values())
        core.provisional.clear()
        for one in settled:
            self._registrations.admit(core, one.name, one.condition)
        return [one.name for one in settled]

    def forget(self, name: str) -> None:
        """A user dropped it."""
        for key in [k for k, n in self.names.items() if n == name]:
            del self.names[key], self.weights[key]
            self.policy.demote(key)

    def _free_name(self, taken: set[str]) -> str:
        while True:
            self._serial += 1
            name = f"promoted_{self._serial}"
            if name not in taken:
                return name

    def facts(self) -> dict[str, Any]:
        """All of it as JSON holds it; nothing is provisional in a checkpoint."""
        return {
            "names": self.names,
            "weights": self.weights,
            "serial": self._serial,
            "policy": self.policy.facts(),
        }

    def adopt(self, facts: Mapping[str, Any]) -> None:
        """Go on from such facts."""
        self.names, self.weights = dict(facts["names"]), dict(facts["weights"])
        self._serial = facts["serial"]
        self.policy.adopt(facts["policy"])
