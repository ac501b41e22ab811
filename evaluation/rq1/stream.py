"""What the replays watch: a workload's rows, four predicates of its attributes, combinations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import ids
from evaluation.bench import Bench
from evaluation.engines import registered
from evaluation.subject import Subject
from evaluation.values import equality, frequent, plain, where

__all__ = ["ATOMS", "COMBINATIONS", "NAMES", "WINDOW", "Answers", "Watched", "ask", "watched"]

WINDOW = 10_000
NAMES = ("p1", "p2", "p3", "p4")
COMBINATIONS = ("p1 AND p3", "p2 OR NOT p4")
# TRUE or not, for each of the four: a partition of the rows, NULL or no NULL.
ATOMS = tuple(
    " AND ".join(
        f"{name} IS {'' if pattern >> k & 1 else 'NOT '}TRUE" for k, name in enumerate(NAMES)
    )
    for pattern in range(1 << len(NAMES))
)

Answers = dict[tuple[str, str], float]
"""An attribution by game and predicate."""


@dataclass(frozen=True)
class Watched:
    """Rows of a workload, and four equalities: ``column = value`` by the predicate's name."""

    rows: pa.Table
    value: str
    equals: Mapping[str, tuple[str, Any]]

    @property
    def conditions(self) -> dict[str, str]:
        """The predicates as they are registered."""
        return {name: equality(column, value) for name, (column, value) in self.equals.items()}

    @cached_property
    def holds(self) -> dict[str, npt.NDArray[np.bool_]]:
        """On which rows each of them holds, and each combination: by pyarrow, none of it ours."""
        yes = {
            name: where(plain(self.rows[column]), value)
            for name, (column, value) in self.equals.items()
        }
        known = pc.is_valid(self.rows[self.equals["p4"][0]]).to_numpy()
        combined = (yes["p1"] & yes["p3"], yes["p2"] | (known & ~yes["p4"]))
        return yes | dict(zip(COMBINATIONS, combined, strict=True))

    def engine(self, window: int = WINDOW) -> ids.Engine:
        """An engine without rows that has the four registered."""
        made = ids.Engine(window=ids.CountWindow(window), value=self.value, degree=4)
        return registered(made, self.conditions)


def watched(bench: Bench, subject: Subject, rows: int) -> Watched:
    """The first rows of a workload; the predicates are its attributes' most frequent values.

    Two of the first attribute, which exclude each other, and one of each of the others.
    """
    table = bench.events(subject, rows)
    first, second, third = subject.attributes
    pairs = [
        (column, value)
        for column, count in ((first, 2), (second, 1), (third, 1))
        for value, _ in frequent(table, column)[:count]
    ]
    return Watched(table, subject.value, dict(zip(NAMES, pairs, strict=True)))


def ask(engine: ids.Engine, games: tuple[str, ...], predicates: tuple[str, ...]) -> Answers:
    """Every game of every predicate."""
    return {(g, p): engine.attribute(g, p).value for g in games for p in predicates}
