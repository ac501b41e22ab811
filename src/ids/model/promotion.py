"""Promotion: when a question that keeps coming is worth a predicate of its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ids.errors import ScriptError
from ids.model.whole import as_whole, checked_count, checked_flag, is_number
from ids.model.window import microseconds

__all__ = ["Promotion", "Span"]

# So many questions, or so long.
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
