"""Conditions of a wanted selectivity, chosen from the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log

import pyarrow as pa

from evaluation.rq6.mechanisms.paper import SELECTIVITIES
from evaluation.subject import Subject
from evaluation.values import equality

__all__ = ["Case", "cases"]

_LEAST = 3  # rows: fewer tell nothing
_RARE = 1e-3  # of the rows, at most


@dataclass(frozen=True)
class Case:
    """A condition: equalities, all of which must hold, on so many of the rows."""

    label: str
    parts: tuple[str, ...]
    matches: int
    selectivity: float

    @property
    def condition(self) -> str:
        """As the engine takes it."""
        return " AND ".join(self.parts)


def cases(window: pa.Table, subject: Subject) -> list[Case]:
    """For each selectivity of the paper's, the equality or two that come nearest to it.

    The rare one goes along the strata, which are the values of the first attribute, as the paper's
    does; unless none of them is rare.
    """
    single = list(_candidates(window, subject.attributes[:1]))
    pairs = combinations(subject.attributes, 2)
    every = [
        *(one for name in subject.attributes for one in _candidates(window, (name,))),
        *(one for names in pairs for one in _candidates(window, names)),
    ]
    along = [one for one in single if one[1] <= _RARE * window.num_rows]
    found = []
    for label, wanted in SELECTIVITIES.items():
        aim = wanted * window.num_rows
        parts, count = min(
            along if along and label == "rare" else every,
            key=lambda one: (abs(log(one[1] / aim)), len(one[0]), one[0]),
        )
        found.append(Case(label, parts, count, count / window.num_rows))
    return found


def _candidates(window: pa.Table, names: Sequence[str]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Equalities on these attributes, one each, with the rows they hold on together."""
    counted = window.group_by(list(names)).aggregate([([], "count_all")])
    for row in counted.to_pylist():
        values = [row[name] for name in names]
        if row["count_all"] >= _LEAST and None not in values:
            pairs = zip(names, values, strict=True)
            yield tuple(equality(name, value) for name, value in pairs), row["count_all"]
