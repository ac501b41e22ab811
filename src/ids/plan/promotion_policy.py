"""The promotion policy, which decides which conditions to register and which to drop.

A frequently queried condition is *promoted*: it is registered as a predicate. A promoted condition
can be *demoted* again, which drops the predicate.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any, NamedTuple

from ids.model import Promotion, Span, microseconds

# A condition replaces a promoted one if it was queried at least this many more times. With a margin
# of 1, two conditions that are queried alternately would keep replacing each other.
_MARGIN = 2


class Verdict(NamedTuple):
    """A decision to promote the queried condition, and to demote ``demoted`` unless it is None."""

    demoted: str | None


class Policy:
    """Counts how often each condition is queried within the observation window.

    A query has weight 1, or less if an index avoids reading most rows. Conditions are identified by
    the keys of their normal forms. Time is measured in queries, or in microseconds of ``clock`` if
    the option is a duration. The cost is O(1) per query and O(``most``) per verdict.
    """

    def __init__(self, promotion: Promotion, clock: Callable[[], float] = monotonic) -> None:
        self.promotion = promotion
        self._clock = clock
        self._questions = 0
        self._asked: deque[tuple[int, str, float]] = deque()
        self._frequency: dict[str, float] = {}
        self._times: Counter[str] = Counter()
        self.promoted: dict[str, int] = {}  # when each condition was last queried

    def ask(self, key: str, weight: float = 1.0) -> Verdict | None:
        """Count a query on a condition; return a verdict if it should be promoted now."""
        self._observe(key, weight)
        if key in self.promoted:
            self.promoted[key] = self._now(self.promotion.stale)
        return self.verdict(key)

    def verdict(self, key: str) -> Verdict | None:
        """Return a verdict if a condition should be promoted, based on the queries so far."""
        frequency = self._frequency.get(key, 0.0)
        if key in self.promoted or frequency < self.promotion.threshold or not self.promotion.most:
            return None
        if len(self.promoted) < self.promotion.most:
            return Verdict(None)
        coldest = min(self.promoted, key=lambda one: self._frequency.get(one, 0.0))
        clearly = frequency >= self._frequency.get(coldest, 0.0) + _MARGIN
        return Verdict(coldest) if self.promotion.replaces and clearly else None

    def promote(self, key: str) -> None:
        """Record that a condition was promoted."""
        self.promoted[key] = self._now(self.promotion.stale)

    def demote(self, key: str) -> None:
        """Record that a condition was demoted."""
        self.promoted.pop(key, None)

    def stale(self) -> list[str]:
        """Return the promoted conditions that were not queried within ``promotion.stale``."""
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
        """Return the state for a checkpoint as JSON, with ages instead of clock times."""
        now = self._now(self.promotion.observation)
        return {
            "asked": [[now - at, key, weight] for at, key, weight in self._asked],
            "promoted": {
                key: self._now(self.promotion.stale) - last for key, last in self.promoted.items()
            },
        }

    def restore(self, facts: Mapping[str, Any]) -> None:
        """Restore the state from a checkpoint."""
        self._questions = max((age for age, _, _ in facts["asked"]), default=0)
        self._questions = max([self._questions, *facts["promoted"].values()])
        now = self._now(self.promotion.observation)
        for age, key, weight in facts["asked"]:
            self._count(now - age, key, weight)
        now = self._now(self.promotion.stale)
        self.promoted = {key: now - age for key, age in facts["promoted"].items()}


def _length(span: Span) -> int:
    return span if isinstance(span, int) else microseconds(span)
