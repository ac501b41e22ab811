"""Panes: the rows between two instants, as exact sums; a pane table is a delta to the window.

    rows ─▶ (key, pane, cell) sums ─▶ (key, pane) sums of the window and of every predicate

The first step is the only one that sees rows. All sums are of whole numbers (``ids.exact``), hence
the same whatever the order, the partitions and the micro-batches they were added in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ids.exact import Parts, Program, split, split_integer
from ids.model import TimeWindow
from ids.plan import SelectPlan
from ids.spark.cell_columns import Cells
from ids.spark.frame import applied
from ids.spark.spark_prepare import TIME, Ready, measure

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PANE = "ids_p"
INSTANT = "ids_i"
COUNT = "ids_n"

_FEW = 4  # predicates of measures whose sums are worked out row by row


@dataclass(frozen=True, slots=True)
class Item:
    """The rows a sum is over: those of measure ``number``, on which ``predicate`` holds if any.

    A predicate below 0 stands for whichever one a row is about.
    """

    number: int
    predicate: int | None

    @property
    def _tag(self) -> str:
        item = "w" if self.predicate is None else "any" if self.predicate < 0 else self.predicate
        return f"{self.number}_{item}"

    @property
    def count(self) -> str:
        """The column of m."""
        return f"ids_m{self._tag}"

    def first(self, level: int) -> str:
        """The column of Σ a_k."""
        return f"ids_a{self._tag}_{level}"

    def second(self, level: int) -> str:
        """The column of Σ b_k."""
        return f"ids_b{self._tag}_{level}"

    def columns(self, parts: Parts) -> list[str]:
        """Every column of the item's sums."""
        first = [self.first(k) for k in range(parts.levels)]
        return [self.count, *first, *(self.second(k) for k in range(parts.squares))]


@dataclass(frozen=True, slots=True)
class Layout:
    """What a pane table holds: for every measure its parts, and the predicates asked of it."""

    parts: tuple[Parts, ...]
    predicates: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, plan: SelectPlan, parts: Sequence[Parts]) -> Layout:
        """The layout of a plan's panes."""
        asked = [
            sorted({i.predicate for i in plan.items if i.measure == n and i.predicate is not None})
            for n in range(len(plan.measures))
        ]
        return cls(tuple(parts), tuple(tuple(each) for each in asked))

    def items(self, number: int) -> list[Item]:
        """The window's item of a measure, then its predicates'."""
        return [Item(number, None), *(Item(number, p) for p in self.predicates[number])]

    def columns(self) -> Iterator[tuple[str, str, int | None]]:
        """Every column of a measure's sums; with the one of the whole window, and its predicate."""
        for number, parts in enumerate(self.parts):
            window, *_ = items = self.items(number)
            for item in items:
                for name, whole in zip(item.columns(parts), window.columns(parts), strict=True):
                    yield name, whole, item.predicate

    @property
    def sums(self) -> list[str]:
        """Every column of sums."""
        return [COUNT, *(name for name, _, _ in self.columns())]


def slide_and_width(plan: SelectPlan) -> tuple[int, int]:
    """The slide of a plan's time window, µs, and how many panes (slides) long the window is."""
    assert isinstance(plan.window, TimeWindow)
    assert plan.window.slide is not None
    return plan.window.slide, plan.window.duration // plan.window.slide


def pane_of(slide: int) -> str:
    """The pane of a row: the first instant at or after its event time, in slides."""
    # BIGINT division drops the fraction: that rounds up below 0, and above it after this addition
    return f"(({TIME} + if({TIME} > 0L, {slide - 1}L, 0L)) div {slide}L)"


def atoms(
    plan: SelectPlan, rows: Ready, cells: Cells, layout: Layout, pane: str | None = None
) -> DataFrame:
    """The (key, pane, cell) table of sound rows.

    ``pane`` names a column to group by; without it the pane's number is worked out.
    """
    data, sums = _summands(plan, rows, cells, layout, pane)
    groups = [name for name, _ in cells.groups]
    return data.groupBy(*rows.keys, pane or PANE, *groups).agg(*_aggregates(sums))


def _summands(
    plan: SelectPlan, rows: Ready, cells: Cells, layout: Layout, pane: str | None
) -> tuple[DataFrame, dict[str, str]]:
    """Rows with their keys, pane, cell and parts; and the window's sums over these."""
    program = Program("ids_v")
    sums = {COUNT: "count(1)"}
    for number, parts in enumerate(layout.parts):
        sums |= _window_sums(program, rows, number, parts)
    data = rows.data
    if pane is None:
        slide, _ = slide_and_width(plan)
        data, pane = data.withColumn(PANE, F.expr(pane_of(slide))), PANE
    measures = [
        _present(number, rows) for number, typed in enumerate(rows.measures) if typed is not None
    ]
    named = [f"{text} AS {name}" for name, text in cells.groups]
    slim = cells.prepared(data).selectExpr(*rows.keys, pane, *measures, *named)
    return applied(slim, program), sums


def _present(number: int, rows: Ready) -> str:
    """A measure; where it is NULL nowhere Spark is told so, and need not look at every step."""
    name, typed = measure(number), rows.measures[number]
    if number not in rows.present or typed is None:
        return name
    return f"coalesce({name}, {'0L' if typed.whole else '0.0D'}) AS {name}"


def _window_sums(program: Program, rows: Ready, number: int, parts: Parts) -> dict[str, str]:
    """The sums of one measure over a group of rows; NULL is no player."""
    typed = rows.measures[number]
    whole = Item(number, None)
    if typed is None:
        return {whole.count: "count(1)"}
    value = program.column(measure(number))
    cut = split_integer if typed.whole else split
    first, second = cut(value, parts) if parts.levels else ([], [])
    # counted once: where no value is missing, the players are the rows
    sums = {whole.count: f"count({1 if number in rows.present else measure(number)})"}
    sums |= {whole.first(level): f"sum({part.text})" for level, part in enumerate(first)}
    sums |= {whole.second(level): f"sum({part.text})" for level, part in enumerate(second)}
    return sums


def item_sums(cells: Cells, layout: Layout, condition: str = "true", tag: str = "") -> list[Column]:
    """Aggregates over atoms: the sums of the window and of every predicate.

    Only atoms where ``condition`` holds are added up; ``tag`` goes before the columns' names.
    """

    def added(column: str, test: str) -> str:
        return f"sum({column})" if test == "true" else f"sum(if({test}, {column}, 0L))"

    sums = {COUNT: added(COUNT, condition)}
    for name, whole, predicate in layout.columns():
        test = condition
        if predicate is not None:
            test = f"({condition} AND {cells.predicates[predicate]})"
        sums[name] = added(whole, test)
    return [F.expr(text).alias(tag + name) for name, text in sums.items()]


def panes(plan: SelectPlan, rows: Ready, cells: Cells, layout: Layout) -> DataFrame:
    """The (key, pane) table of sound rows."""
    if sum(map(len, layout.predicates)) > _FEW:
        table = atoms(plan, rows, cells, layout)
        return table.groupBy(*rows.keys, PANE).agg(*item_sums(cells, layout))
    # few sums are added up at once: that takes one shuffle, of fewer groups
    data, window = _summands(plan, rows, cells, layout, None)
    sums = {COUNT: window[COUNT]}
    for name, whole, predicate in layout.columns():
        only = "" if predicate is None else f" FILTER (WHERE {cells.predicates[predicate]})"
        sums[name] = window[whole] + only
    return data.groupBy(*rows.keys, PANE).agg(*_aggregates(sums))


def _aggregates(sums: dict[str, str]) -> list[Column]:
    return [F.expr(f"coalesce({text}, 0L)").alias(name) for name, text in sums.items()]
