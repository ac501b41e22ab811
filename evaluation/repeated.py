"""Repeated: one quantity measured several times, with the 95 % t-interval of its mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from statistics import fmean, median, stdev
from time import perf_counter

__all__ = ["CONFIDENCE", "Repeated", "in_turns"]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Repeated:
    """The samples of one quantity.

    >>> Repeated((1.0, 2.0, 3.0)).mean
    2.0
    """

    samples: tuple[float, ...]

    @classmethod
    def of(cls, samples: Iterable[float]) -> Repeated:
        """Samples in the order they were taken."""
        return cls(tuple(float(sample) for sample in samples))

    @property
    def mean(self) -> float:
        """What tables print."""
        return fmean(self.samples)

    @property
    def median(self) -> float:
        """Half of the samples are below."""
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
        quantile = round(float(t.ppf((1 + CONFIDENCE) / 2, count - 1)), 12)
        return quantile * stdev(self.samples) / sqrt(count)

    def scaled(self, factor: float) -> Repeated:
        """In another unit."""
        return Repeated(tuple(factor * sample for sample in self.samples))

    def rate(self, work: float) -> Repeated:
        """How much is done in a second, of seconds that so much work took."""
        return Repeated(tuple(work / sample for sample in self.samples))

    def over(self, other: Repeated) -> Repeated:
        """The ratio, repetition by repetition: both were measured side by side."""
        pairs = zip(self.samples, other.samples, strict=True)
        return Repeated(tuple(mine / its for mine, its in pairs))


def in_turns(
    contenders: Mapping[str, Callable[[], object]],
    repetitions: int,
    clock: Callable[[], float] = perf_counter,
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
