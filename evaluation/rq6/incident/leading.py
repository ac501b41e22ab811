"""Who leads, and when it counts: rules over the candidates' signals, emit by emit.

One of four is always first, so being first says nothing by itself. The paper asks for three emits
in a row; it leaves open what a lead is before anything has happened. Here a rule may also ask that
the leader stand out from its own calm: that its signal exceed its calm mean by so many of its calm
standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluation.baselines.coalitions import Floats

__all__ = ["IN_A_ROW", "RULES", "Calm", "Rule", "leads", "led_from"]

IN_A_ROW = 3  # the paper's
_NOBODY = -1

Leads = npt.NDArray[np.intp]
"""[emits]: the candidate that has led for three emits, this one the last; −1 where none has."""


@dataclass(frozen=True)
class Calm:
    """Each candidate's mean and standard deviation while nothing happened; float64[candidates]."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, signal: Floats) -> Calm:
        """Of float64[candidates, emits]."""
        return cls(signal.mean(axis=1), signal.std(axis=1))


@dataclass(frozen=True)
class Rule:
    """The largest signal, and so many ``deviations`` above its own calm (None: wherever it is)."""

    label: str
    deviations: float | None


RULES = (
    Rule("first of four", None),
    Rule("first, 2 σ above its calm", 2.0),
    Rule("first, 3 σ above its calm", 3.0),
)


def leads(signal: Floats, rule: Rule, calm: Calm) -> Leads:
    """Who leads at each emit by this rule; the largest signed signal is the first."""
    first = signal.argmax(axis=0)
    if rule.deviations is not None:
        above = calm.mean + rule.deviations * calm.deviation
        first = np.where(signal.max(axis=0) > above[first], first, _NOBODY)
    runs = np.lib.stride_tricks.sliding_window_view(first, IN_A_ROW)
    held = np.where((runs == runs[:, :1]).all(axis=1), runs[:, 0], _NOBODY)
    return np.concatenate([np.full(IN_A_ROW - 1, _NOBODY), held])


def led_from(held: Leads, tuples: npt.NDArray[np.int64], candidate: int = 0) -> int | None:
    """Tuples after the onset when a candidate first has led; its three emits all lie after it."""
    begun = np.roll(tuples, IN_A_ROW - 1)  # of the run that ends here; nobody leads where it wraps
    after = tuples[(held == candidate) & (begun > 0)]
    return int(after[0]) if after.size else None
