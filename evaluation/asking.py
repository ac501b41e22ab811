"""How long a question takes: right after a slide, or again and again in a window that stands still.

After a slide nothing is remembered, and the caches hold the slide's data; in an unchanged window
an answer is a look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import NamedTuple

import numpy as np

import ids

__all__ = ["Percentiles", "after_slides", "in_a_row"]


class Percentiles(NamedTuple):
    """Of many questions, in µs."""

    p50: float
    p99: float

    @classmethod
    def of(cls, seconds: list[float]) -> Percentiles:
        """Of what each of them took."""
        p50, p99 = np.percentile(np.array(seconds) * 1e6, [50, 99])
        return cls(float(p50), float(p99))


def after_slides(
    engine: ids.Engine,
    batches: Iterable[object],
    work: Callable[[], object],
    times: int = 2_000,
) -> Percentiles:
    """Each question follows a slide; only the question is on the clock."""
    work()
    spent = []
    for _, batch in zip(range(times), batches, strict=False):
        engine.ingest(batch)
        start = perf_counter()
        work()
        spent.append(perf_counter() - start)
    return Percentiles.of(spent)


def in_a_row(
    work: Callable[[], object],
    times: int = 20_000,
    before: Callable[[], object] = lambda: None,
) -> Percentiles:
    """The same question in a window that does not move; ``before`` each is not on the clock."""
    work()
    spent = []
    for _ in range(times):
        before()
        start = perf_counter()
        work()
        spent.append(perf_counter() - start)
    return Percentiles.of(spent)
