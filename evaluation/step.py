"""Chapters and their steps: what they measure, how often, how large, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from math import sqrt
from statistics import fmean, median, stdev
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from ids.errors import SetupError, UnknownNameError

if TYPE_CHECKING:
    from evaluation.bench import Bench

Work = Callable[[], object]
T = TypeVar("T")
KEYS = ("rq1", "rq2", "rq3", "rq4", "rq5", "rq6", "beyond")
REGIONS = ("EU-West", "US-East", "AP-South", "SA-East")  # all that the synthetic stream has
_PEERS = ("duckdb", "markdown_it", "matplotlib", "pandas", "polars", "scipy", "shap", "shapiq")


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
        return Repeated.of(work / sample for sample in self.samples)

    def over(self, other: Repeated) -> Repeated:
        """The ratio, repetition by repetition: both were measured side by side."""
        return Repeated.of(a / b for a, b in zip(self.samples, other.samples, strict=True))


Value = str | int | float | bool | None | Repeated
Row = Mapping[str, Value]
Findings = Mapping[str, Sequence[Row]]
"""Rows of tables, by the table's name; several steps may give rows of the same table."""


def in_turns(
    contenders: Mapping[str, Work],
    repetitions: int,
    clock: Callable[[], float] = perf_counter,
    before: Work = lambda: None,
) -> dict[str, Repeated]:
    """Seconds of each contender after a warm-up; turns spread what disturbs them over all.

    What is done ``before`` each but the warm-up is not on the clock.
    """
    spent: dict[str, list[float]] = {label: [] for label in contenders}
    for turn in range(1 + repetitions):
        for label, work in contenders.items():
            if turn:
                before()
            start = clock()
            work()
            spent[label].append(clock() - start)
    return {label: Repeated.of(times[1:]) for label, times in spent.items()}


def in_a_row(work: Work, times: int, before: Work = lambda: None) -> Repeated:
    """Seconds of the same question, again and again."""
    return in_turns({"": work}, times, before=before)[""]


@dataclass(frozen=True)
class Size:
    """How large a run is: the paper's own sizes, or small ones that say the same in minutes."""

    name: str
    repetitions: int = 5

    def of(self, *, quick: T, full: T) -> T:
        return quick if self.name == "quick" else full


QUICK, FULL = Size("quick"), Size("full")


@dataclass(frozen=True)
class Subject:
    """A workload's measure y, and the attributes that predicates speak of."""

    workload: str
    value: str
    attributes: tuple[str, ...]
    quick_rows: int | None

    @property
    def columns(self) -> list[str]:
        return ["event_time", *self.attributes, self.value]


SUBJECTS = {
    "synthetic": Subject("synthetic", "latency", ("region", "tier", "endpoint"), 200_000),
    "stress": Subject("stress", "latency", ("region", "tier", "endpoint"), 40_000),
    "nyc": Subject("nyc", "fare_amount", ("borough", "vendor", "payment"), None),
    "auction": Subject("auction", "price", ("category", "channel", "auction"), 100_000),
}


@dataclass(frozen=True)
class Step:
    """One measurement, done whole or not at all; left out where a workload cannot be had."""

    name: str  # unique, begins with its chapter's key: rq2-throughput-1000000
    does: str  # what the progress bar says it does
    seconds: float  # how long it takes on two cores, about: the bar's measure of time left
    work: Callable[[Bench], Findings]  # the same bench, the same findings up to times
    needs: tuple[str, ...] = ()  # the workloads it reads; "real" is that of Bench.real


@dataclass(frozen=True)
class Chapter:
    """A research question: the package that bears its key says in ``report.md`` what was found."""

    key: str
    steps: Callable[[Size], list[Step]]


def chapters(asked: Iterable[str] = ()) -> list[Chapter]:
    """Those that were asked for, in the paper's order; all without."""
    wanted = [key.lower() for key in asked] or KEYS
    if unknown := next((key for key in wanted if key not in KEYS), None):
        raise UnknownNameError("research question", unknown, KEYS)
    if missing := [package for package in _PEERS if find_spec(package) is None]:
        way_out = "install them: pip install 'ids-engine[evaluation]'"
        raise SetupError(f"python -m evaluation needs {', '.join(missing)}; {way_out}")
    return [import_module(f"evaluation.{key}").CHAPTER for key in KEYS if key in wanted]
