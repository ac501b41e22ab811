"""The Spark job of a micro-batch: its rows as panes on the driver, and what was seen on the way.

    rows ─▶ watched ─▶ not late ─▶ (key, pane, cell) sums ─▶ driver: (key, pane) sums

Few atoms are added up to panes on the driver, which spares a shuffle; many of them in the JVM.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from ids.model.window import TimeWindow
from ids.plan import SelectPlan
from ids.spark.cells import Cells, cells_of, wordy_columns
from ids.spark.frames import Frame, Typed
from ids.spark.panes import COUNT, PANE, Item, Layout, atoms, pane_of, panes
from ids.spark.rows import FAULT, TIME, Ready, measure
from ids.spark.streaming.ahead import AHEAD
from ids.spark.streaming.pane_table import Panes
from ids.spark.streaming.step import Counts
from ids.spark.streaming.time_state import TimeState
from ids.spark.streaming.widening import Reach

__all__ = ["Collector", "Seen", "arrow_type"]

_LATE = "ids_late"
_FEW_VALUES = 1_000
_FEW_SUMS = 2**24
_TYPES = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}


def arrow_type(typed: Typed) -> pa.DataType:
    """The Arrow type of a column of ours."""
    return _TYPES.get(typed.type, pa.bool_())


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pass over a micro-batch tells besides its panes.

    last     the last event time of a sound row, µs
    reaches  of each measure, (largest, smallest but 0) magnitude; None: nothing but 0
    raw      columns with few values, which are cheap to group by as they are
    atoms    about how many atoms there are
    """

    counts: Counts
    last: int | None
    reaches: tuple[Reach | None, ...]
    raw: tuple[str, ...]
    atoms: int


class Collector:
    """Runs that job for one query."""

    def __init__(self, plan: SelectPlan, frame: Frame) -> None:
        assert isinstance(plan.window, TimeWindow)
        assert plan.window.slide is not None
        self._plan, self._columns, self._slide = plan, frame.columns, plan.window.slide
        self._keys = [arrow_type(frame.columns[name]) for name in plan.partition_by]
        self._wordy = wordy_columns(plan.predicates, frame.columns)
        self._known: dict[tuple[str, ...], Cells] = {}

    def survey(self, rows: Ready, passed: int | None = None) -> Seen:
        """What there is to see, without panes; one job without a shuffle."""
        cells = self._cells(())
        data = self._timed(rows, passed)
        data = data.selectExpr("*", *(f"{text} AS {name}" for name, text in cells.subjects))
        groups = [text for _, text in cells.groups]
        pane = f"if({FAULT} IS NULL, {pane_of(self._slide)}, NULL)"  # others may leave 64 bits
        atom = ", ".join([*rows.keys, pane, *groups])
        watched = [
            *self._watched(rows),
            F.expr(f"approx_count_distinct(xxhash64({atom}))").alias("atoms"),
        ]
        for number, name in enumerate(self._wordy):
            text = self._columns[name].text
            watched.append(F.approx_count_distinct(F.expr(text)).alias(f"words{number}"))
        (found,) = data.agg(*watched).toArrow().to_pylist()
        return self._seen(found)

    def collect(self, rows: Ready, state: TimeState) -> tuple[Panes, Seen]:
        """The panes of the rows that are not late, under the state's layout."""
        seen = Observation()
        data = self._timed(rows, state.passed).observe(seen, *self._watched(rows))
        # here a stage of generated code ends: what follows does not know the watermark, so that
        # the next batch finds it compiled
        data = data.filter(F.expr(f"{FAULT} IS NULL AND NOT {_LATE}"))
        sound = replace(rows, data=data.withColumns(self._inside(rows, state.layout)))
        cells, layout = self._cells(state.raw or ()), state.layout
        if state.atoms * len(layout.sums) > _FEW_SUMS:
            table = panes(self._plan, sound, cells, layout)
            count = state.atoms
            found = Panes.of(self._fetched(table, rows, layout.sums), len(self._keys))
        else:
            table = atoms(self._plan, sound, cells, layout)
            found, count = self._added(table, rows, cells, layout)
        if not len(found):
            # a plan that turns out empty forgets what it has watched
            return found, self.survey(rows, state.passed)
        return found, self._seen(seen.get, count)

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
        return [F.expr(text).alias(name) for name, text in columns.items()]

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

    def _seen(self, found: dict[str, Any], count: int | None = None) -> Seen:
        reaches = []
        for number in range(len(self._plan.measures)):
            largest = found.get(f"largest{number}")
            reaches.append(largest and (largest, found[f"smallest{number}"]))
        raw = [n for k, n in enumerate(self._wordy) if found.get(f"words{k}", 0) <= _FEW_VALUES]
        counts = Counts(found["rows"], found["late"], found["bad"], found["ahead"])
        known = found["atoms"] if count is None else count
        return Seen(counts, found["last"], tuple(reaches), tuple(raw), known)

    def _fetched(self, table: DataFrame, rows: Ready, numbers: list[str], *more: str) -> pa.Table:
        """Key columns, the pane, numbers, and more, on the driver."""
        found = table.selectExpr(*rows.keys, PANE, *numbers, *more).toArrow()
        types = [*self._keys, *[pa.int64()] * (1 + len(numbers)), *[pa.bool_()] * len(more)]
        fields = zip(found.column_names, types, strict=True)
        return found.cast(pa.schema([pa.field(name, type_) for name, type_ in fields]))

    def _added(
        self, table: DataFrame, rows: Ready, cells: Cells, layout: Layout
    ) -> tuple[Panes, int]:
        """Atoms to panes on the driver, and how many atoms there were."""
        own = [COUNT]
        for number, parts in enumerate(layout.parts):
            own.extend(Item(number, None).columns(parts))
        holds = [f"coalesce({text}, false) AS ids_q{p}" for p, text in enumerate(cells.predicates)]
        fetched = self._fetched(table, rows, own, *holds)
        whole = Panes.of(fetched.select([*rows.keys, PANE, *own]), len(rows.keys))
        columns = dict(zip(own, whole.sums, strict=True))
        held = [fetched[f"ids_q{p}"].to_numpy(zero_copy_only=False) for p in range(len(holds))]
        sums = _item_sums(layout, columns, held)
        return Panes.added(whole.keys, whole.pane, sums), len(whole)


def _item_sums(
    layout: Layout,
    columns: dict[str, npt.NDArray[np.int64]],
    held: list[npt.NDArray[np.bool_]],
) -> Iterator[npt.NDArray[np.int64]]:
    """The layout's sums of every atom, in their order: 0 where a predicate does not hold."""
    yield columns[COUNT]
    for number, parts in enumerate(layout.parts):
        names = Item(number, None).columns(parts)
        for item in layout.items(number):
            for name in names:
                row = columns[name]
                yield row if item.predicate is None else row * held[item.predicate]
