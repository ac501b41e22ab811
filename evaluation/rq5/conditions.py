"""The conditions that a trace asks about: forty of a stream's own columns, none registered."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluation.subject import Subject
from evaluation.values import equality, frequent, literal

__all__ = ["COUNT", "conditions"]

COUNT = 40
_VALUES = 6  # of an attribute, the most frequent
_ABOVE = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_BETWEEN = ((0.1, 0.4), (0.4, 0.6), (0.6, 0.9))
_HOURS = 6


def conditions(events: pa.Table, subject: Subject, count: int = COUNT) -> list[str]:
    """So many, all different: equalities, ranges of the measure, hours; then conjunctions.

    The values are those the stream has most of, the bounds are quantiles: whatever the workload,
    some hold on most rows and some on few.
    """
    equalities = {name: _equalities(events, name) for name in subject.attributes}
    singles = [condition for each in equalities.values() for condition in each]
    found = dict.fromkeys([*singles, *_ranges(events, subject.value), *_hours(events)])
    for one, other in combinations(equalities.values(), 2):
        found |= dict.fromkeys(f"{a} AND {b}" for a in one[:4] for b in other[:3])
    if len(found) < count:
        raise ValueError(f"{subject.workload} has columns for {len(found)} conditions only")
    return list(found)[:count]


def _equalities(events: pa.Table, name: str) -> list[str]:
    return [equality(name, value) for value, _ in frequent(events, name)[:_VALUES]]


def _ranges(events: pa.Table, value: str) -> list[str]:
    column = events[value].to_numpy()

    def at(share: float) -> str:
        return literal(np.quantile(column, share, method="lower").item())

    above = [f"{value} > {at(share)}" for share in _ABOVE]
    return above + [f"{value} BETWEEN {at(low)} AND {at(high)}" for low, high in _BETWEEN]


def _hours(events: pa.Table) -> list[str]:
    """Quarters of the day, where the stream has more than one."""
    hours = pc.hour(events["event_time"]).to_numpy() // _HOURS
    quarters = np.unique(hours).tolist()
    if len(quarters) < 2:
        return []
    return [
        f"HOUR(event_time) BETWEEN {_HOURS * quarter} AND {_HOURS * quarter + _HOURS - 1}"
        for quarter in quarters
    ]
