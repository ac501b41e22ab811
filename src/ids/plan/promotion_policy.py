"""The promotion policy: which conditions deserve a predicate. Decides, never touches a row."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, NamedTuple

from ids.model import Promotion, Span, microseconds

# Asked about by so many scans more, a condition takes the place of a promoted one: with one
# alone, two conditions that are asked about in turn would replace each other for ever.
_CLEARLY = 2


class Verdict(NamedTuple):
    """Promote the condition that was just asked about, in the place of ``demoted`` if any."""

    demoted: str | None


class Policy:
    """How often each condition was asked about within the observation window.

    A question weighs 1, or less where an index spared most rows. Conditions go by the keys of
    their normal forms. Time is counted in questions, or in microseconds by ``clock`` where
    a span of time was asked for. O(1) a question, O(``most``) a verdict.
    """

    def __init__(self, promotion: Promotion, clock: Callable[[], float] = monotonic) -> None:
        self.promotion = promotion
        self._clock = clock
        self._questions = 0
        self._asked: deque[tuple[int, str, float]] = deque()
        self._frequency: dict[str, float] = {}
        self._times: Counter[str] = Counter()
        self.promoted: dict[str, int] = {}  # when each was last asked about, by the stale clock

    def ask(self, key: str, weight: float = 1.0) -> Verdict | None:
        """A question about a condition: whether it should be promoted now."""
        self._observe(key, weight)
        if key in self.promoted:
            self.promoted[key] = self._now(self.promotion.stale)
        return self.verdict(key)

    def verdict(self, key: str) -> Verdict | None:
        """Whether a condition should be promoted, as far as it was asked about by now."""
        frequency = self._frequency.get(key, 0.0)
        if key in self.promoted or frequency < self.promotion.threshold or not self.promotion.most:
            return None
        if len(self.promoted) < self.promotion.most:
            return Verdict(None)
        coldest = min(self.promoted, key=lambda one: self._frequency.get(one, 0.0))
        clearly = frequency >= self._frequency.get(coldest, 0.0) + _CLEARLY
        return Verdict(coldest) if self.promotion.replaces and clearly else None

    def promote(self, key: str) -> None:
        """It was done."""
        self.promoted[key] = self._now(self.promotion.stale)

    def demote(self, key: str) -> None:
        """It was undone."""
        self.promoted.pop(key, None)

    def stale(self) -> list[str]:
        """The promoted conditions nobody asked about for T_stale."""
        if not self.promoted:
            return []
        oldest = self._now(self.promotion.stale) - _length(self.promotion.stale)
        return [key for key, last in self.promoted.items() if last <= oldest]

    def _observe(self, key: str, weight: float) -> None:
        self._questions += 1
        now = self._now(self.promotion.observation)
        self._count(now, key, weight)
        oldest = now - _length(self.promotion.observation)
        while self._asked[0][0] <= oldest:
            _, gone, weight = self._asked.popleft()
            self._times[gone] -= 1
            self._frequency[gone] -= weight
            if not self._times[gone]:
                del self._times[gone], self._frequency[gone]

    def _count(self, at: int, key: str, weight: float) -> None:
        self._asked.append((at, key, weight))
        self._times[key] += 1
        self._frequency[key] = self._frequency.get(key, 0.0) + weight

    def _now(self, span: Span) -> int:
        return self._questions if isinstance(span, int) else int(self._clock() * 1e6)

    def facts(self) -> dict[str, Any]:
        """How often each condition was asked about, as JSON holds it; ages, not clock times."""
        now = self._now(self.promotion.observation)
        return {
            "asked": [[now - at, key, weight] for at, key, weight in self._asked],
            "promoted": {
                key: self._now(self.promotion.stale) - last for key, last in self.promoted.items()
            },
        }

    def adopt(self, facts: Mapping[str, Any]) -> None:
        """Go on from such facts."""
        self._questions = max((age for age, _, _ in facts["asked"]), default=0)
        self._questions = max([self._questions, *facts["promoted"].values()])
        now = self._now(self.promotion.observation)
        for age, key, weight in facts["asked"]:
            self._count(now - age, key, weight)
        now = self._now(self.promotion.stale)
        self.promoted = {key: now - age for key, age in facts["promoted"].items()}


def _length(span: Span) -> int:
    return span if isinstance(span, int) else microseconds(span)
