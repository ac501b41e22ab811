"""Options of an engine: which sample of the window it keeps, and which questions it promotes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from ids.errors import Position, ScriptError
from ids.model.window import as_whole, checked_count, checked_flag, is_number, microseconds

# Each is sharpened for sampling without replacement (Serfling) where that is how rows were drawn.
BOUNDS = ("bernstein", "hoeffding")
_LARGEST = 2**24


@dataclass(frozen=True, slots=True)
class Sampling:
    """A uniform sample of the rows inside the window, kept while it slides.

    size             r: rows drawn (of each stratum, where there are strata)
    strata           columns: every combination of their values is sampled by itself
    replacement      draw with replacement: chain-sample for a CountWindow, priority-sample for a
                     TimeWindow; else (the default) the r highest of one random priority a row
    seed             the same seed and the same rows give the same sample
    bound            ``bernstein`` (by the sample's own spread) or ``hoeffding`` (by range alone)
    control_variate  lean on the exact totals of y and y², at the price of halving the sample
    extremes         rows with the largest and with the smallest values taken whole, so many of
                     each, so that a few outliers do not set the range that a bound depends on;
                     None: an eighth of the size (none with replacement)
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
            raise ScriptError(f"unknown bound {self.bound!r}", hint=f"choose {' or '.join(BOUNDS)}")
        if self.extremes is not None:
            object.__setattr__(self, "extremes", checked_count("extremes", self.extremes))
        if self.replacement and (self.strata or self.extremes):
            raise ScriptError(
                "strata and extremes are kept without replacement", hint="leave replacement out"
            )

    @property
    def taken_whole(self) -> int:
        """How many rows of the largest values (and of the smallest) are taken whole."""
        if self.replacement:
            return 0
        return extremes_of(self.size) if self.extremes is None else self.extremes


def checked_size(size: int, at: Position | None = None) -> int:
    """The size of a sample: 1 to the most that can be drawn."""
    whole = as_whole(size)
    if whole is None or not 1 <= whole <= _LARGEST:
        shown = repr(size) if whole is None else f"{whole:,}"
        raise ScriptError(f"a sample of {shown} rows", at, f"choose 1 to {_LARGEST:,}")
    return whole


def checked_seed(seed: int) -> int:
    """A seed: a whole number of 64 bits."""
    whole = as_whole(seed)
    if whole is None or not -(2**63) <= whole < 2**63:
        raise ScriptError(f"a seed of {seed!r}", hint="choose a whole number of 64 bits")
    return whole


def refuse_confidence(confidence: float, at: Position | None = None) -> None:
    """A bound that surely holds, or never, is none."""
    number = is_number(confidence)
    if not number or not 0.0 < confidence < 1.0:
        shown = f"{confidence:g}" if number else repr(confidence)
        hint = "choose a number between 0 and 1, such as 0.95"
        raise ScriptError(f"a confidence of {shown}", at, hint)


def extremes_of(size: int) -> int:
    """The rows taken whole on either side, where nobody says otherwise."""
    return size // 8


def _names(given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise ScriptError(f"strata of {given!r}", hint="name columns, such as ('region',)")
    return tuple(given)


# A number of questions, or a span of time.
Span = int | str | timedelta


@dataclass(frozen=True, slots=True)
class Promotion:
    """Conditions that are asked about again and again are registered, and dropped when stale.

    most         so many predicates are promoted at the same time, at most
    threshold    f_prom: questions about one condition within ``observation`` that promote it
    observation  T_obs: so many questions back (a whole number), or so long ('1 hour')
    stale        T_stale: a promoted predicate nobody asked about for so many questions, or for so
                 long, is demoted
    replaces     whether a condition asked about clearly more often takes the place of the promoted
                 one asked about least, once there are ``most`` of them
    bootstrap    ``exact``: the rows inside are divided by the new predicate at once; ``sample``: it
                 begins with an estimate, labelled ``provisional`` in every answer, until the exact
                 rebuild in the background
    rebuild_after  seconds until that rebuild begins; infinite: only when ``rebuild`` is called
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
            raise ScriptError(
                f"unknown bootstrap {self.bootstrap!r}", hint="choose exact or sample"
            )
        for name in ("observation", "stale"):
            object.__setattr__(self, name, _checked_span(name, getattr(self, name)))
        seconds = self.rebuild_after
        if not is_number(seconds) or not seconds >= 0:
            raise ScriptError(f"rebuild_after={seconds!r}", hint="give seconds, 0 or more")
        object.__setattr__(self, "rebuild_after", float(seconds))


def _checked_span(name: str, given: Span) -> int | str:
    """A number of questions, or a span of time as text, which a checkpoint can hold."""
    questions = as_whole(given)
    length = microseconds(given) if questions is None else questions
    if length < 1:
        raise ScriptError(f"{name} of {given}", hint="choose more than nothing")
    return given if isinstance(given, str) else length if questions else f"{length} microseconds"
