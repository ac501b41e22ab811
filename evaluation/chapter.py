"""A chapter of the evaluation: a research question, how it is measured, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from evaluation.size import Size
from evaluation.step import Row, Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

__all__ = ["Chapter", "Comparison", "Figure", "Section", "Table", "Tables"]


class Tables:
    """The rows that the steps found, by table; a table nobody filled is empty."""

    def __init__(self, rows: Mapping[str, Sequence[Row]]) -> None:
        self._rows = rows

    def __getitem__(self, name: str) -> list[dict[str, Any]]:
        return [dict(row) for row in self._rows.get(name, ())]

    def where(self, name: str, **equal: object) -> list[dict[str, Any]]:
        """The rows of a table whose columns have these values."""
        return [
            row for row in self[name] if all(row.get(key) == value for key, value in equal.items())
        ]

    def filled(self, names: Iterable[str]) -> bool:
        """Whether every one of these tables has rows."""
        return all(self._rows.get(name) for name in names)

    @property
    def names(self) -> list[str]:
        """The tables that have rows, in order of their names."""
        return sorted(name for name, rows in self._rows.items() if rows)


@dataclass(frozen=True)
class Comparison:
    """The paper's number beside ours.

    what     the quantity, for a reader who has the paper at hand
    unit     as it is printed after both numbers ("" where it is a ratio or a count)
    paper    None where the paper prints none
    ours     None where this run did not measure it
    better   which direction is the better one; "same" where ours should be the paper's, "neither"
             where it is a number of a method that both measure beside their own, or of unlike
             quantities (``what`` then says how they differ)
    where    the paper's table, figure or section
    reason   why ours is the worse one; printed only where it is
    """

    what: str
    unit: str
    paper: float | None
    ours: float | None
    better: Literal["lower", "higher", "same", "neither"]
    where: str
    reason: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over the paper's; None where either is 0, and a ratio says nothing."""
        if not self.ours or not self.paper:
            return None
        return self.ours / self.paper

    @property
    def verdict(self) -> Literal["better", "equal", "worse", ""]:
        """From the two numbers alone; equal within 5 %, and for "same" within 25 %."""
        if self.ours is None or self.paper is None or self.better == "neither":
            return ""
        slack = (0.25 if self.better == "same" else 0.05) * abs(self.paper)
        if abs(self.ours - self.paper) <= slack:
            return "equal"
        if self.better == "same":
            return "worse"
        return "better" if (self.ours < self.paper) == (self.better == "lower") else "worse"


@dataclass(frozen=True)
class Table:
    """A table to be read: cells are text, formatted; the paper's own columns where it has one."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class Section:
    """What a chapter says of its findings."""

    remarks: Sequence[str] = ()
    comparisons: Sequence[Comparison] = ()
    tables: Sequence[Table] = ()

    @classmethod
    def joined(cls, parts: Sequence[Section]) -> Section:
        """What the parts of a chapter say, one after the other."""
        return cls(
            [remark for part in parts for remark in part.remarks],
            [comparison for part in parts for comparison in part.comparisons],
            [table for part in parts for table in part.tables],
        )


@dataclass(frozen=True)
class Figure:
    """A drawing with one message, from tables alone; ``needs`` are the tables it reads."""

    name: str
    caption: str
    needs: tuple[str, ...]
    draw: Callable[[Tables], Drawing]


@dataclass(frozen=True)
class Chapter:
    """A research question."""

    key: str
    title: str
    question: str
    steps: Callable[[Size], list[Step]]
    show: Callable[[Tables], Section]
    figures: tuple[Figure, ...] = field(default=())
