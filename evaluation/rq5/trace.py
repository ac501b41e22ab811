"""A Zipfian trace of ad hoc questions, put to an engine under one policy; what it touches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import ids

__all__ = ["MOST", "POLICIES", "QUESTIONS", "Outcome", "replay", "zipfian"]

QUESTIONS = 1_600
MOST = 8  # predicates that a policy may keep
POLICIES: dict[str, ids.Promotion | None] = {
    "static": None,
    "oracle": None,
    "adaptive, f = 10": ids.Promotion(MOST, threshold=10, replaces=False),
    "ours": ids.Promotion(MOST),
}
"""The oracle knows the trace and has registered what it asks about most; the third is the paper's
own; ours promotes at the second question, and what is asked about least gives way."""


@dataclass(frozen=True)
class Outcome:
    """One replay.

    touched   int64[questions]    rows that each question looked at
    promoted  bool[questions]     whether it promoted: its rows then were the rebuild's
    value     float64[questions]  its answer
    seconds   float64[questions]  that it took, the slide before it left out
    """

    touched: npt.NDArray[np.int64]
    promoted: npt.NDArray[np.bool_]
    value: npt.NDArray[np.float64]
    seconds: npt.NDArray[np.float64]

    @property
    def time(self) -> float:
        """Seconds of all questions together."""
        return float(self.seconds.sum())

    @property
    def time_of_scan(self) -> float:
        """Seconds of a question that looks at rows and promotes nothing: the median."""
        return float(np.median(self.seconds[(self.touched > 0) & ~self.promoted]))

    @property
    def promotions(self) -> int:
        """How many conditions were promoted, again included."""
        return int(self.promoted.sum())

    @property
    def adhoc(self) -> int:
        """Rows looked at by questions that promoted nothing."""
        return int(self.touched[~self.promoted].sum())

    @property
    def rebuild(self) -> int:
        """Rows looked at by promotions; they answer the questions that caused them."""
        return int(self.touched[self.promoted].sum())


def zipfian(
    conditions: Sequence[str], alpha: float, rng: np.random.Generator, questions: int = QUESTIONS
) -> list[str]:
    """Questions by Zipf's law; which condition has which rank is drawn, too."""
    weights = 1.0 / np.arange(1, len(conditions) + 1) ** alpha
    ranked = rng.permutation(np.array(conditions))
    return [str(c) for c in rng.choice(ranked, questions, p=weights / weights.sum())]


def replay(
    events: pa.Table,
    value: str,
    window: int,
    policy: str,
    trace: Sequence[str],
    clock: Callable[[], float] = perf_counter,
) -> Outcome:
    """Ask the trace's questions, each after one row more; ``events`` has enough of them."""
    engine = ids.Engine(ids.CountWindow(window), value, promotion=POLICIES[policy])
    if policy == "oracle":
        for number, (condition, _) in enumerate(Counter(trace).most_common(MOST)):
            engine.register(f"known_{number}", condition)
    engine.ingest(events.slice(0, window))
    touched, promoted, answers, seconds = [], [], [], []
    for number, condition in enumerate(trace):
        engine.ingest(events.slice(window + number, 1))
        start = clock()
        found = engine.attribute("AVG", condition)
        seconds.append(clock() - start)
        touched.append(found.touched)
        promoted.append(found.why == "this question promoted it")
        answers.append(found.value)
    return Outcome(
        np.array(touched, np.int64),
        np.array(promoted, np.bool_),
        np.array(answers),
        np.array(seconds),
    )
