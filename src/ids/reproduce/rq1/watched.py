"""What the replays watch: a workload's rows, four predicates of its attributes, combinations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import ids
from ids.reproduce.bench import Bench
from ids.reproduce.subject import Subject

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
    equals: Mapping[str, tuple[str, object]]

    @property
    def conditions(self) -> dict[str, str]:
        """The predicates as they are registered."""
        return {
            name: f"{column} = {value!r}" if isinstance(value, str) else f"{column} = {value}"
            for name, (column, value) in self.equals.items()
        }

    @cached_property
    def holds(self) -> dict[str, npt.NDArray[np.bool_]]:
        """On which rows each of them holds, and each combination: by pyarrow, none of it ours."""
        yes = {name: self._compared(pc.equal, name) for name in self.equals}
        not_p4 = self._compared(pc.not_equal, "p4")
        combined = (yes["p1"] & yes["p3"], yes["p2"] | not_p4)
        return yes | dict(zip(COMBINATIONS, combined, strict=True))

    def _compared(self, comparison: object, name: str) -> npt.NDArray[np.bool_]:
        column, value = self.equals[name]
        plain = self.rows[column]
        if pa.types.is_dictionary(plain.type):
            plain = plain.cast(plain.type.value_type)
        found = comparison(plain, pa.scalar(value, plain.type))  # type: ignore[operator]
        held: npt.NDArray[np.bool_] = pc.fill_null(found, False).to_numpy()
        return held

    def engine(self, window: int = WINDOW) -> ids.Engine:
        """An engine without rows that has the four registered."""
        made = ids.Engine(window=ids.CountWindow(window), value=self.value, degree=4)
        for name, condition in self.conditions.items():
            made.register(name, condition)
        return made


def watched(bench: Bench, subject: Subject, rows: int) -> Watched:
    """The first rows of a workload; the predicates are its attributes' most frequent values.

    Two of the first attribute, which exclude each other, and one of each of the others.
    """
    table = bench.events(subject, rows)
    first, second, third = subject.attributes
    pairs = [
        (column, value)
        for column, count in ((first, 2), (second, 1), (third, 1))
        for value in _frequent(table, column, count)
    ]
    return Watched(table, subject.value, dict(zip(NAMES, pairs, strict=True)))


def ask(engine: ids.Engine, games: tuple[str, ...], predicates: tuple[str, ...]) -> Answers:
    """Every game of every predicate."""
    return {(g, p): engine.attribute(g, p).value for g in games for p in predicates}


def _frequent(table: pa.Table, column: str, count: int) -> list[object]:
    counted = pc.value_counts(table[column]).to_pylist()
    known = [each for each in counted if each["values"] is not None]
    known.sort(key=lambda each: (-each["counts"], each["values"]))
    return [each["values"] for each in known[:count]]
