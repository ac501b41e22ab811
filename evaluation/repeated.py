"""Quantities measured several times, in turns, each with the 95 % t-interval of its mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from statistics import fmean, median, stdev
from time import perf_counter
from typing import NamedTuple

import numpy as np

Work = Callable[[], object]


@dataclass(frozen=True)
class Repeated:
    """The samples of one quantity, in the order they were taken."""

    samples: tuple[float, ...]

    @classmethod
    def of(cls, samples: Iterable[float]) -> Repeated:
        return cls(tuple(map(float, samples)))

    @property
    def mean(self) -> float:
        return fmean(self.samples)

    @property
    def median(self) -> float:
        return median(self.samples)

    @property
    def best(self) -> float:
        """The least: what a time is when nothing else disturbs it."""
        return min(self.samples)

    @cached_property
    def half_width(self) -> float:
        """Half the 95 % t-interval of the mean; 0 for one sample, of which nothing is known."""
        count = len(self.samples)
        if count < 2:
            return 0.0
        from scipy.stats import t

        # releases of SciPy differ in the last bits, and records are printed wherever they are read
        return round(float(t.ppf(0.975, count - 1)), 12) * stdev(self.samples) / sqrt(count)

    def scaled(self, factor: float) -> Repeated:
        return Repeated.of(factor * sample for sample in self.samples)

    def rate(self, work: float) -> Repeated:
        """How much is done in a second, of seconds that so much work took."""
        return Repeated.of(work / sample for sample in self.samples)

    def over(self, other: Repeated) -> Repeated:
        """The ratio, repetition by repetition: both were measured side by side."""
        return Repeated.of(a / b for a, b in zip(self.samples, other.samples, strict=True))


class Percentiles(NamedTuple):
    """Of many questions, in µs."""

    p50: float
    p99: float


def in_turns(
    contenders: Mapping[str, Work], repetitions: int, clock: Callable[[], float] = perf_counter
) -> dict[str, Repeated]:
    """Seconds of each contender, taking turns, after one warm-up each.

    Turns spread whatever else the machine does over all of them: a ratio holds where a bare time
    does not.
    """
    for work in contenders.values():
        work()
    spent: dict[str, list[float]] = {label: [] for label in contenders}
    for _ in range(repetitions):
        for label, work in contenders.items():
            start = clock()
            work()
            spent[label].append(clock() - start)
    return {label: Repeated.of(times) for label, times in spent.items()}


def in_a_row(work: Work, times: int, before: Work = lambda: None) -> Percentiles:
    """The same question again and again; what is done ``before`` each is not on the clock.

    In a window that stands still an answer is a look-up. After a slide nothing is remembered, and
    the caches hold the slide's data.
    """
    work()
    spent = np.empty(times)
    for at in range(times):
        before()
        start = perf_counter()
        work()
        spent[at] = perf_counter() - start
    return Percentiles(*map(float, np.percentile(spent * 1e6, [50, 99])))
