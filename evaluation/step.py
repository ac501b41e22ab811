"""A step: one measurement that is done whole or not at all, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluation.repeated import Repeated

if TYPE_CHECKING:
    from evaluation.bench import Bench
    from evaluation.size import Size

__all__ = ["Chapter", "Findings", "Row", "Step", "Value"]

Value = str | int | float | bool | None | Repeated
Row = Mapping[str, Value]
Findings = Mapping[str, Sequence[Row]]
"""Rows of tables, by the table's name; several steps may give rows of the same table."""


@dataclass(frozen=True)
class Step:
    """One measurement.

    name      unique, begins with its chapter's key: ``rq2-throughput-1000000``
    does      what the progress bar says it does
    seconds   how long it takes on two cores, about: the bar's measure of time left
    work      measures; the same bench, the same findings up to times
    needs     the workloads it reads; it is left out, and said so, where one cannot be had
              (``real``: what ``Bench.real`` gives, which always can)
    """

    name: str
    does: str
    seconds: float
    work: Callable[[Bench], Findings]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Chapter:
    """A research question: the package that bears its key says in ``report.md`` what was found."""

    key: str
    steps: Callable[[Size], list[Step]]
