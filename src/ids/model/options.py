"""The options of an engine: which sample it keeps, and which conditions it promotes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from numbers import Real
from typing import Any

from ids.errors import ArgumentError
from ids.model.window import as_whole, microseconds

# Serfling's refinement is applied to each when rows are drawn without replacement.
BOUNDS = ("bernstein", "hoeffding")
_LARGEST = 2**24


@dataclass(frozen=True, slots=True)
class Sampling:
    """A uniform sample of the rows in the window, maintained as the window slides.

    size             r: rows drawn (per stratum, if there are strata)
    strata           columns; each combination of their values is sampled separately
    replacement      draw with replacement: chain-sample for a CountWindow, priority-sample for a
                     TimeWindow; by default, the sample is the r rows with the highest random
                     priorities
    seed             the same seed and the same rows give the same sample
    bound            ``bernstein`` (uses the sample's variance) or ``hoeffding`` (only the range)
    control_variate  use the exact totals of y and y², which halves the sample
    extremes         number of rows with the largest values, and of rows with the smallest values,
                     that are counted exactly, so that a few outliers do not widen the range in the
                     bound; the default is an eighth of the size (0 with replacement)
    """

    size: int = 1024
    strata: Sequence[str] = ()
    replacement: bool = False
    seed: int = 0
    bound: str = "bernstein"
    control_variate: bool = False
    extremes: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "strata", _names(self.strata))
        object.__setattr__(self, "size", checked_size(self.size))
        object.__setattr__(self, "seed", checked_seed(self.seed))
        for name in ("replacement", "control_variate"):
            object.__setattr__(self, name, checked_flag(name, getattr(self, name)))
        if self.bound not in BOUNDS:
            raise ArgumentError(f"unknown bound {self.bound!r}", f"choose {' or '.join(BOUNDS)}")
        if self.extremes is not None:
            object.__setattr__(self, "extremes", checked_count("extremes", self.extremes))
        if self.replacement and (self.strata or self.extremes):
            raise ArgumentError(
                "strata and extremes require sampling without replacement",
                "leave out replacement=True",
            )

    @property
    def taken_whole(self) -> int:
        """The number of rows with the largest (and with the smallest) values counted exactly."""
        if self.replacement:
            return 0
        return extremes_of(self.size) if self.extremes is None else self.extremes


def checked_size(size: int) -> int:
    """Check the size of a sample and return it as an int."""
    whole = as_whole(size)
    if whole is None or not 1 <= whole <= _LARGEST:
        shown = repr(size) if whole is None else f"{whole:,}"
        raise ArgumentError(f"a sample of {shown} rows", f"choose 1 to {_LARGEST:,}")
    return whole


def checked_seed(seed: int) -> int:
    """Check that a seed fits in 64 bits and return it as an int."""
    whole = as_whole(seed)
    if whole is None or not -(2**63) <= whole < 2**63:
        raise ArgumentError(f"a seed of {seed!r}", "choose a whole number of 64 bits")
    return whole


def refuse_confidence(confidence: float) -> None:
    """Reject a confidence that is not between 0 and 1."""
    number = _is_number(confidence)
    if not number or not 0.0 < confidence < 1.0:
        shown = f"{confidence:g}" if number else repr(confidence)
        hint = "choose a number between 0 and 1, such as 0.95"
        raise ArgumentError(f"a confidence of {shown}", hint)


def checked_count(name: str, given: Any, least: int = 0) -> int:
    """Check that the argument ``name`` is a whole number of at least ``least``; return an int."""
    whole = as_whole(given)
    if whole is None or whole < least:
        raise ArgumentError(f"{name}={given!r}", f"give a whole number, {least} or more")
    return whole


def checked_flag(name: str, given: Any) -> bool:
    """Check that the argument ``name`` is True or False and return it as a bool."""
    if type(given).__name__ not in ("bool", "bool_"):  # bool_ is NumPy's
        raise ArgumentError(f"{name}={given!r}", "give True or False")
    return bool(given)


def _is_number(given: Any) -> bool:
    return isinstance(given, Real) and not isinstance(given, bool)


def extremes_of(size: int) -> int:
    """Return the default number of extreme rows on each side, for a sample of ``size`` rows."""
    return size // 8


def _names(given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise ArgumentError(f"strata={given!r}", "name columns, such as ('region',)")
    return tuple(given)


# A number of questions, or a duration.
Span = int | str | timedelta


@dataclass(frozen=True, slots=True)
class Promotion:
    """Register conditions that are asked about often, and drop them when they become stale.

    most           maximum number of promoted predicates at the same time
    threshold      f_prom: number of questions about one condition, within ``observation``, that
                   promotes it
    observation    T_obs: the last n questions (a whole number), or a duration ('1 hour')
    stale          T_stale: demote a predicate after this many questions, or after this duration,
                   without a question about it
    replaces       whether a condition that is asked about clearly more often replaces the promoted
                   predicate that is asked about least, once there are ``most`` of them
    bootstrap      ``exact``: compute the new predicate from the retained rows at once; ``sample``:
                   start with an estimate, which every answer labels ``provisional``, until the
                   exact rebuild in the background
    rebuild_after  seconds until that rebuild starts; infinity: only when ``rebuild`` is called
    """

    most: int = 8
    threshold: int = 2
    observation: Span = 10_000
    stale: Span = 10_000
    replaces: bool = True
    bootstrap: str = "exact"
    rebuild_after: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "most", checked_count("most", self.most))
        object.__setattr__(self, "threshold", checked_count("threshold", self.threshold, 1))
        object.__setattr__(self, "replaces", checked_flag("replaces", self.replaces))
        if self.bootstrap not in ("exact", "sample"):
            raise ArgumentError(f"unknown bootstrap {self.bootstrap!r}", "choose exact or sample")
        for name in ("observation", "stale"):
            object.__setattr__(self, name, _checked_span(name, getattr(self, name)))
        seconds = self.rebuild_after
        if not _is_number(seconds) or not seconds >= 0:
            raise ArgumentError(f"rebuild_after={seconds!r}", "give seconds, 0 or more")
        object.__setattr__(self, "rebuild_after", float(seconds))


def _checked_span(name: str, given: Span) -> int | str:
    """Return a span as a checkpoint stores it: a query count as an int, a duration as text."""
    questions = as_whole(given)
    length = microseconds(given) if questions is None else questions
    if length < 1:
        raise ArgumentError(f"{name}={given!r}", "give a positive number or duration")
    return given if isinstance(given, str) else length if questions else f"{length} microseconds"
