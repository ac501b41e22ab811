"""The Spark job of a micro-batch: its rows as panes, and what was seen on the way.

rows ─▶ watched ─▶ not late ─▶ (key, pane, cell) sums ─▶ (key, pane) sums ─▶ a piece
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from ids.model.window import TimeWindow
from ids.plan import SelectPlan
from ids.spark.cells import Cells, cells_of, wordy_columns
from ids.spark.frames import Frame
from ids.spark.panes import Layout, panes
from ids.spark.rows import FAULT, TIME, Ready, measure
from ids.spark.streaming.ahead import AHEAD
from ids.spark.streaming.pane_store import PaneStore
from ids.spark.streaming.step import Counts
from ids.spark.streaming.store import Piece
from ids.spark.streaming.widening import Reach

__all__ = ["Collector", "Seen"]

_LATE = "ids_late"
# The number of a task, in its first row: a counter of Spark's has it in the bits from 33 on.
_TASK, _TASK_OF = "ids_task", "spark_partition_id()"
_FIRST = f"monotonically_increasing_id() = shiftleft(cast({_TASK_OF} as bigint), 33)"
# Spark adds up what is observed in every run of a task, and runs one again, after a shuffle too,
# when the worker that has its output is lost.
_RUNS = {"runs": f"count({_TASK})", "tasks": f"size(collect_set({_TASK}))"}
_FEW_VALUES = 1_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pass over a micro-batch tells besides its panes.

    last     the last event time of a sound row, µs
    reaches  of each measure, (largest, smallest but 0) magnitude; None: nothing but 0
    raw      columns with few values, which are cheap to group by as they are
    """

    counts: Counts
    last: int | None
    reaches: tuple[Reach | None, ...]
    raw: tuple[str, ...]


class Collector:
    """Runs that job for one query."""

    def __init__(self, plan: SelectPlan, frame: Frame) -> None:
        assert isinstance(plan.window, TimeWindow)
        assert plan.window.slide is not None
        self._plan, self._columns = plan, frame.columns
        self._wordy = wordy_columns(plan.predicates, frame.columns)
        self._known: dict[tuple[str, ...], Cells] = {}

    def survey(self, rows: Ready, passed: int | None = None) -> Seen:
        """What there is to see, without panes; one job without a shuffle."""
        watched = self._watched(rows)
        for number, name in enumerate(self._wordy):
            text = self._columns[name].text
            watched.append(F.approx_count_distinct(F.expr(text)).alias(f"words{number}"))
        (found,) = self._timed(rows, passed).agg(*watched).toArrow().to_pylist()
        return self._seen(found)

    def collect(
        self,
        rows: Ready,
        passed: int | None,
        raw: tuple[str, ...],
        sums: PaneStore,
    ) -> tuple[Piece, Seen]:
        """Write the panes of the rows that are not late."""
        watching = Observation()
        timed = self._timed(rows, passed).selectExpr("*", f"if({_FIRST}, {_TASK_OF}, NULL) {_TASK}")
        runs = [F.expr(text).alias(name) for name, text in _RUNS.items()]
        data = timed.observe(watching, *self._watched(rows), *runs)
        # here a stage of generated code ends: what follows does not know the watermark, so that
        # the next batch finds it compiled
        data = data.filter(F.expr(f"{FAULT} IS NULL AND NOT {_LATE}"))
        sound = replace(rows, data=data.withColumns(self._inside(rows, sums.layout)))
        piece = sums.write(panes(self._plan, sound, self._cells(raw), sums.layout))
        # a plan that turns out empty forgets what it has watched
        found = watching.get if piece.rows else {"runs": 1, "tasks": 0}
        once = found["runs"] == found["tasks"]
        seen = self._seen(found) if once else self.survey(rows, passed)
        if piece.total != seen.counts.taken:
            raise sums.store.lacking(piece.name, piece.total, seen.counts.taken)
        return piece, seen

    def _cells(self, raw: tuple[str, ...]) -> Cells:
        if raw not in self._known:
            self._known[raw] = cells_of(self._plan.predicates, self._columns, raw)
        return self._known[raw]

    def _timed(self, rows: Ready, passed: int | None) -> DataFrame:
        """The columns that are needed, and whether a row is late."""
        late = "false" if passed is None else f"({FAULT} IS NULL AND {TIME} < {passed}L)"
        made = [TIME, FAULT, AHEAD, *rows.keys]
        made += [measure(number) for number, typed in enumerate(rows.measures) if typed]
        own = [self._columns[name].text for name in self._plan.columns]
        return rows.data.selectExpr(*own, *made, f"{late} AS {_LATE}")

    def _watched(self, rows: Ready) -> list[Column]:
        columns = {
            "rows": "count(*)",
            "bad": f"count_if({FAULT} IS NOT NULL AND NOT {AHEAD})",
            "ahead": f"count_if({AHEAD})",
            "late": f"count_if({_LATE})",
            "last": f"max(if({FAULT} IS NULL, {TIME}, NULL))",
        }
        for number in self._measured(rows):
            value = f"if({FAULT} IS NULL AND {measure(number)} != 0, abs({measure(number)}), NULL)"
            columns[f"largest{number}"] = f"max({value})"
            columns[f"smallest{number}"] = f"min({value})"
        return [F.expr(f"{text} AS {name}") for name, text in columns.items()]

    def _measured(self, rows: Ready) -> list[int]:
        """Measures of doubles that are summed."""
        return [
            number
            for number, typed in enumerate(rows.measures)
            if typed is not None and not typed.whole and self._plan.degrees[number]
        ]

    def _inside(self, rows: Ready, layout: Layout) -> dict[str, Column]:
        """Doubles beyond their parts as 0: they are seen, and the job is run again for them."""
        guarded = {}
        for number in self._measured(rows):
            name, unit = measure(number), 2.0 ** -layout.parts[number].exponent
            inside = f"abs({name} * double('{unit!r}')) < 1.0D"
            guarded[name] = F.expr(f"if({inside} OR {name} IS NULL, {name}, 0.0D)")
        return guarded

    def _seen(self, found: dict[str, Any]) -> Seen:
        reaches = []
        for number in range(len(self._plan.measures)):
            largest = found.get(f"largest{number}")
            reaches.append(largest and (largest, found[f"smallest{number}"]))
        raw = [n for k, n in enumerate(self._wordy) if found.get(f"words{k}", 0) <= _FEW_VALUES]
        counts = Counts(found["rows"], found["late"], found["bad"], found["ahead"])
        return Seen(counts, found["last"], tuple(reaches), tuple(raw))
