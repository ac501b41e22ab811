"""Promotion: when a question that keeps coming is worth a predicate of its own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ids.errors import ScriptError
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
        if self.most < 0 or self.threshold < 1:
            raise ScriptError(
                f"promotion of {self.most} predicates at {self.threshold} questions",
                hint="promote 0 or more, at 1 question or more",
            )
        if self.bootstrap not in ("exact", "sample"):
            raise ScriptError(
                f"unknown bootstrap {self.bootstrap!r}", hint="choose exact or sample"
            )
        for name in ("observation", "stale"):
            span = getattr(self, name)
            if isinstance(span, timedelta):  # as text, which a checkpoint can hold
                object.__setattr__(self, name, f"{microseconds(span)} microseconds")
            length = span if isinstance(span, int) else microseconds(span)
            if length <= 0:
                raise ScriptError(f"{name} of {span}", hint="choose more than nothing")
        if not self.rebuild_after >= 0:
            raise ScriptError("rebuild_after cannot be negative")
