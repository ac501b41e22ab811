"""The formula: what a batch costs, as a sum of a few products of a load's numbers.

    cpu seconds = fixed + a·rows + b·rows·predicates + c·(sums written)·columns
                + d·(sums read)·columns + e·emits·items + f·(times that windows are written)

It holds for up to four predicates; beyond, rows are grouped by what predicates look at first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from capacity.load import Load

__all__ = ["UNITS", "Model", "sums_read", "sums_written", "task_rows"]

# the stream's own: windows are written down once they reach this far
_MANY, _FAR = 8, 4
# and a task takes so many rows of sums, at least and at most
_TASK_ROWS, _MOST_TASK_ROWS = 100_000, 400_000
_CORES = 2

UNITS = {
    "a batch": (1.0, "s"),
    "a row": (1e6, "µs"),
    "a row and predicate": (1e6, "µs"),
    "a number written to the state": (1e6, "µs"),
    "a number read from the state": (1e6, "µs"),
    "an item of an emit": (1e6, "µs"),
    "writing down all windows, beside their numbers": (1.0, "s"),
}


def _standing(load: Load) -> int:
    """After how many batches windows are written down; 0: never."""
    return -(-_FAR // load.minutes) if load.panes + load.minutes >= _MANY else 0


def sums_written(load: Load) -> float:
    """Rows of sums that a batch writes, on average: panes, and now and then all windows."""
    every = _standing(load)
    return load.pane_rows + (load.live_keys / every if every else 0)


def sums_read(load: Load) -> float:
    """Rows of sums that a batch reads, on average."""
    every, a_minute = _standing(load), load.pane_rows / load.minutes
    if not every:
        return a_minute * (load.panes + load.minutes)
    # since the windows were written: panes that have come, and as many that have gone
    distances = [2 * load.minutes * number for number in range(1, every + 1)]
    read = [load.live_keys + a_minute * distance for distance in distances]
    return (sum(read) + read[-1]) / every  # once more to write them again


def task_rows(load: Load) -> float:
    """Rows of sums that a task reads."""
    rows = sums_read(load)
    tasks = max(1, -(-rows // _TASK_ROWS))
    if tasks > _CORES:
        tasks = _CORES * -(-rows // (_CORES * _MOST_TASK_ROWS))
    return rows / tasks


def _terms(load: Load) -> list[float]:
    every = _standing(load)
    return [
        1.0,
        load.rows,
        load.rows * load.predicates,
        sums_written(load) * load.columns,
        sums_read(load) * load.columns,
        load.emits * (1 + load.predicates),
        1 / every if every else 0.0,
    ]


class Model(NamedTuple):
    """The formula's constants, in seconds."""

    constants: tuple[float, ...]

    @classmethod
    def fit(cls, loads: Sequence[Load], seconds: Sequence[float]) -> Model:
        """Constants, none below 0, with the smallest relative errors."""
        measured = np.array(seconds)
        terms = np.array([_terms(load) for load in loads]) / measured[:, None]
        size = terms.max(axis=0)
        found, _ = nnls(terms / size, np.ones(len(measured)))
        return cls(tuple(float(value) for value in found / size))

    def seconds(self, load: Load) -> float:
        """CPU seconds of a batch."""
        return float(np.dot(_terms(load), self.constants))

    def shares(self, load: Load) -> list[float]:
        """What each term costs, in seconds."""
        return [float(value) for value in np.multiply(_terms(load), self.constants)]
