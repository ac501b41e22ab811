"""Streams to be sampled, what must be drawn from them, and a statistic that knows bias."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ids.kernels import mix
from ids.model import ColumnData, CountWindow, Kind, Sampling, Table, TimeWindow, extremes_of
from ids.predicates import Measure
from ids.state import Drawing, WindowSample

__all__ = ["KINDS", "Row", "Stream", "chi_square", "expected", "limit", "numbers", "subsets"]

KINDS = {"id": Kind.NUMBER, "group": Kind.TEXT}
GROUPS = np.array(["a", "b", "c"], dtype=object)


class Row(NamedTuple):
    time: int
    sequence: int
    group: int
    y: float
    plays: bool


def table(rows: Sequence[Row]) -> Table:
    """The raw columns; the id is the arrival number, and group 3 is NULL."""
    ids = np.array([row.sequence for row in rows], np.int64)
    groups = np.array([row.group for row in rows], np.int32)
    return Table(
        {
            "id": ColumnData(Kind.NUMBER, ids),
            "group": ColumnData(Kind.TEXT, groups % 3, groups != 3, GROUPS),
        },
        len(rows),
    )


class Stream:
    """A sample that is fed like the engine does, and the rows truly inside the window."""

    def __init__(
        self,
        sampling: Sampling,
        window: CountWindow | TimeWindow,
        kind: type[WindowSample] = WindowSample,
    ) -> None:
        self.sampling, self.window = sampling, window
        self.sample = kind(KINDS, 1, sampling, window)
        self.inside: list[Row] = []
        self._codes: dict[int, int] = {}
        self._arrived = 0

    def feed(
        self,
        times: Sequence[int],
        groups: Sequence[int] | None = None,
        values: Sequence[float] | None = None,
        plays: Sequence[bool] | None = None,
    ) -> None:
        """A batch arrives; what is too late for a time window is refused, as the engine does."""
        n = len(times)
        arrived = range(self._arrived, self._arrived + n)
        self._arrived += n
        rows = [
            Row(*row)
            for row in zip(
                times,
                arrived,
                groups or [0] * n,
                values or [float(i * 5 % 13) for i in arrived],  # no trend: else all are extremes
                plays or [True] * n,
                strict=True,
            )
        ]
        if isinstance(self.window, TimeWindow) and self.inside:
            horizon = max(row.time for row in self.inside) - self.window.duration
            rows = [row for row in rows if row.time > horizon]
        self.enter(sorted(rows))
        self.expire()

    def feed_rows(self, times: Sequence[int], rows: Sequence[tuple[int, int, float, bool]]) -> None:
        """``feed`` with a group, a y and a part to play for each row, behind any number."""
        self.feed(
            times, [row[1] for row in rows], [row[2] for row in rows], [row[3] for row in rows]
        )

    def enter(self, rows: list[Row]) -> None:
        given = table(rows)
        codes = self.sample.strata_of(given)
        self._codes.update(zip([row.sequence for row in rows], codes.tolist(), strict=True))
        plays = np.array([row.plays for row in rows], np.bool_)
        values = np.array([row.y for row in rows], np.float64)
        self.sample.insert(
            given,
            [Measure(values, None if plays.all() else plays, 0.0)],
            np.array([row.time for row in rows], np.int64),
            np.array([row.sequence for row in rows], np.int64),
            codes,
        )
        self.inside = sorted(self.inside + rows)

    def expire(self) -> None:
        if isinstance(self.window, CountWindow):
            gone = max(0, len(self.inside) - self.window.size)
        else:
            newest = max((row.time for row in self.inside), default=0)
            gone = sum(row.time <= newest - self.window.duration for row in self.inside)
        left = np.array([self._codes[row.sequence] for row in self.inside[:gone]], np.int32)
        self.inside = self.inside[gone:]
        oldest = self.inside[0][:2] if self.inside else None
        self.sample.expire(oldest, left)


def numbers(drawing: Drawing) -> list[int]:
    """The arrival numbers of the rows drawn, those taken whole first."""
    return [int(n) for n in drawing.rows.columns["id"].values]


def expected(
    rows: list[Row], sampling: Sampling, measure: int, size: int
) -> tuple[list[int], dict[int | None, list[int]]]:
    """The rows taken whole (ascending) and those drawn of each stratum, by sorting everything."""
    whole = sampling.extremes
    whole = extremes_of(size) if whole is None else whole
    if measure == 0:
        whole = 0
    strata = {row.group if sampling.strata else None for row in rows}
    of = {s: [row for row in rows if s is None or row.group == s] for s in strata}
    if all(len(part) <= size + 2 * whole for part in of.values()):
        return [row.sequence for row in rows], {}
    newest_first = [row for row in reversed(rows) if row.plays]
    held = {row.sequence for row in sorted(newest_first, key=lambda row: -row.y)[:whole]}
    held |= {row.sequence for row in sorted(newest_first, key=lambda row: row.y)[:whole]}
    drawn = {}
    for stratum, part in of.items():
        rest = np.array([row.sequence for row in part if row.sequence not in held], np.int64)
        priority = np.empty(len(rest))
        mix(np.uint64(sampling.seed), rest, priority)
        if len(rest):
            drawn[stratum] = [int(n) for n in rest[np.argsort(-priority)][:size]]
    return [row.sequence for row in rows if row.sequence in held], drawn


def limit(freedom: int) -> float:
    """What a chi-square passes less than once in 10⁶ (Wilson and Hilferty)."""
    step = 2 / (9 * freedom)
    return float(freedom * (1 - step + 4.8 * step**0.5) ** 3)


def chi_square(counts: Any, trials: int, cells: int) -> float:
    """How far the counts of equally likely cells are from equal; a cell not named counts 0.

    A draw that is in no cell (a row outside the window) is missing from all, and shows.
    """
    named = np.array(list(counts), np.float64)
    fair = trials / cells
    return float(((named - fair) ** 2).sum() / fair + (cells - len(named)) * fair)


def subsets(draw: Callable[[int], tuple[list[int], list[int]]], size: int, trials: int) -> float:
    """Draw under many seeds: the statistic over all subsets of ``size`` rows, less its limit.

    ``draw(seed)`` gives the rows inside and the rows drawn. All subsets equally likely means every
    row is, and every pair: below 0 for a sample without replacement.
    """
    counts: dict[tuple[int, ...], int] = {}
    for seed in range(trials):
        inside, drawn = draw(seed)
        if not counts:
            counts = dict.fromkeys(combinations(sorted(inside), size), 0)
        key = tuple(sorted(drawn))
        if key in counts:
            counts[key] += 1
    return chi_square(counts.values(), trials, len(counts)) - limit(len(counts) - 1)
