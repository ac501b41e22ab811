"""Panes: the rows between two instants, as exact sums; a pane table is a delta to the window.

    rows ─▶ (key, pane, cell) sums ─▶ (key, pane) sums of the window and of every predicate

The first step is the only one that sees rows. All sums are of whole numbers (``ids.exact``), hence
the same whatever the order, the partitions and the micro-batches they were added in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ids.exact import Parts, Program, split, split_integer
from ids.model.window import TimeWindow
from ids.plan import SelectPlan
from ids.spark.cells import Cells
from ids.spark.rows import TIME, Ready, measure

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = [
    "COUNT",
    "PANE",
    "Item",
    "Layout",
    "applied",
    "atoms",
    "item_sums",
    "pane_of",
    "panes",
]

PANE = "ids_p"
COUNT = "ids_n"


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

    @property
    def sums(self) -> list[str]:
        """Every column of sums."""
        columns = [COUNT]
        for number, parts in enumerate(self.parts):
            for item in self.items(number):
                columns.extend(item.columns(parts))
        return columns


def applied(data: DataFrame, program: Program) -> DataFrame:
    """The named intermediates of a program as columns."""
    for stage in program.stages():
        data = data.selectExpr("*", *(f"{text} AS {name}" for name, text in stage))
    return data


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
    assert isinstance(plan.window, TimeWindow)
    assert plan.window.slide is not None
    program = Program("ids_v")
    sums: list[Column] = [F.count(F.lit(1)).alias(COUNT)]
    for number, parts in enumerate(layout.parts):
        sums.extend(_atom_sums(program, rows, number, parts))
    data = rows.data
    if pane is None:
        data, pane = data.withColumn(PANE, F.expr(pane_of(plan.window.slide))), PANE
    if cells.subjects:
        data = data.withColumns({name: F.expr(text) for name, text in cells.subjects})
    groups = {name: F.expr(text) for name, text in cells.groups}
    kept = [F.col(name) for name in (*rows.keys, pane)]
    measures = [
        _present(number, rows) for number, typed in enumerate(rows.measures) if typed is not None
    ]
    named = [column.alias(name) for name, column in groups.items()]
    data = data.select(*kept, *measures, *named)
    return applied(data, program).groupBy(*rows.keys, pane, *groups).agg(*sums)


def _present(number: int, rows: Ready) -> Column:
    """A measure; where it is NULL nowhere Spark is told so, and need not look at every step."""
    name, typed = measure(number), rows.measures[number]
    if number not in rows.present or typed is None:
        return F.col(name)
    nothing = "0L" if typed.whole else "0.0D"
    return F.expr(f"coalesce({name}, {nothing})").alias(name)


def _atom_sums(program: Program, rows: Ready, number: int, parts: Parts) -> list[Column]:
    """The sums of one measure over a group of rows; NULL is no player."""
    typed = rows.measures[number]
    whole = Item(number, None)
    if typed is None:
        return [F.count(F.lit(1)).alias(whole.count)]
    value = program.column(measure(number))
    cut = split_integer if typed.whole else split
    first, second = cut(value, parts) if parts.levels else ([], [])
    # counted once: where no value is missing, the players are the rows
    counted = F.lit(1) if number in rows.present else F.col(measure(number))
    columns = [F.count(counted).alias(whole.count)]
    for level, part in enumerate(first):
        columns.append(F.expr(f"coalesce(sum({part.text}), 0L)").alias(whole.first(level)))
    for level, part in enumerate(second):
        columns.append(F.expr(f"coalesce(sum({part.text}), 0L)").alias(whole.second(level)))
    return columns


def item_sums(cells: Cells, layout: Layout, condition: str = "true", tag: str = "") -> list[Column]:
    """Aggregates over atoms: the sums of the window and of every predicate.

    Only atoms where ``condition`` holds are added up; ``tag`` goes before the columns' names.
    """
    sums = [F.expr(_sum_if(condition, COUNT)).alias(tag + COUNT)]
    for number, parts in enumerate(layout.parts):
        whole = Item(number, None)
        for item in layout.items(number):
            test = condition
            if item.predicate is not None:
                test = f"({condition} AND {cells.predicates[item.predicate]})"
            for name, source in zip(item.columns(parts), whole.columns(parts), strict=True):
                sums.append(F.expr(_sum_if(test, source)).alias(tag + name))
    return sums


def _sum_if(test: str, column: str) -> str:
    return f"sum({column})" if test == "true" else f"sum(if({test}, {column}, 0L))"


def panes(plan: SelectPlan, rows: Ready, cells: Cells, layout: Layout) -> DataFrame:
    """The (key, pane) table of sound rows."""
    table = atoms(plan, rows, cells, layout)
    return table.groupBy(*rows.keys, PANE).agg(*item_sums(cells, layout))
