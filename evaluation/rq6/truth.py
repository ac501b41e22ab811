"""What is known of the planted incident: read beside the events, never shown to the engine."""

from __future__ import annotations

import json
from typing import NamedTuple

from evaluation.bench import Bench
from evaluation.rq6.candidates import PLANTED

__all__ = ["Truth", "truth"]


class Truth(NamedTuple):
    """The first row of the incident, the first after it, and what latencies were multiplied by."""

    onset: int
    end: int
    factor: float


def truth(bench: Bench) -> Truth:
    """Of the synthetic workload; its predicate must be the one that is registered."""
    path = bench.library.place("synthetic") / "truth.json"
    known = json.loads(path.read_text(encoding="utf-8"))
    if known["predicate"] != PLANTED.condition:
        raise ValueError(f"planted is {known['predicate']}, not {PLANTED.condition}")
    return Truth(known["from_row"], known["before_row"], known["factor"])
