"""Rows made ready: WHERE applied, bad rows named or set aside, measures evaluated, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ids.errors import DataError
from ids.kernels.survey import survey
from ids.model.expression import Expression
from ids.model.rendering import render
from ids.model.table import ColumnData, Table
from ids.plan import SelectPlan
from ids.predicates.truth import measure, truth
from ids.source import Source
from ids.window import Ordering, arrange

__all__ = ["BadRows", "Measure", "Prepared", "evaluate_measure", "prepare"]

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

BadRows = Callable[[Source, npt.NDArray[np.int64], list[str]], None]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure's values in window order, its players, and the largest magnitude among them."""

    values: Floats
    players: Mask | None
    largest: float


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the slide loop needs: the table and its measures in window order."""

    table: Table
    measures: tuple[Measure | None, ...]
    ordering: Ordering


def prepare(plan: SelectPlan, source: Source, set_aside: BadRows | None) -> Prepared:
    """Read the columns a plan asks for and bring their rows into window order."""
    table = source.read(plan.columns)
    rows: npt.NDArray[np.int64] | None = None
    if plan.where is not None:
        kept = truth(plan.where, table) == 1
        if not kept.all():
            rows = np.flatnonzero(kept)
            table = table.take(rows)
    measures = [_evaluate(expression, table) for expression in plan.measures]
    bad, reasons = _find_bad(plan, table, measures)
    if len(bad):
        original = bad if rows is None else rows[bad]
        if set_aside is None:
            raise DataError(
                f"{reasons[0]} in {source.where(int(original[0]))} of {plan.table}; "
                "leave such rows out with WHERE, or set them aside with --bad-rows DIR"
            )
        set_aside(source, original, reasons)
        keep = np.delete(np.arange(table.rows), bad)
        table = table.take(keep)
        measures = [None if m is None else _take(m, keep) for m in measures]
    ordering = arrange(
        [table.columns[name] for name in plan.order_by],
        [table.columns[name] for name in plan.partition_by],
        table.rows,
    )
    if ordering.rows is not None:
        table = table.take(ordering.rows)
        measures = [None if m is None else _take(m, ordering.rows) for m in measures]
    return Prepared(table, tuple(measures), ordering)


def _take(one: Measure, rows: npt.NDArray[np.int64]) -> Measure:
    players = None if one.players is None else one.players[rows]
    return Measure(one.values[rows], players, one.largest)


def _evaluate(expression: Expression | None, table: Table) -> Measure | None:
    return None if expression is None else evaluate_measure(expression, table)


def evaluate_measure(expression: Expression, table: Table) -> Measure:
    """A measure over a table; a NULL row is no player (its value reads 0)."""
    values, players = measure(expression, table)
    values = np.ascontiguousarray(values)
    if players is not None:
        values = np.where(players, values, 0.0)
    _, largest = survey(values)
    return Measure(values, players, float(largest))


def _find_bad(
    plan: SelectPlan, table: Table, measures: list[Measure | None]
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The rows no window can take, ascending, and why each of them."""
    reasons: dict[int, str] = {}
    event_time: ColumnData = table.columns[plan.order_by[0]]
    if event_time.valid is not None:
        for row in np.flatnonzero(~event_time.valid):
            reasons[int(row)] = f"NULL event time {plan.order_by[0]!r}"
    for expression, one in zip(plan.measures, measures, strict=True):
        if one is None or expression is None or survey(one.values)[0] < 0:
            continue
        for row in np.flatnonzero(~np.isfinite(one.values)):
            value = "NaN" if np.isnan(one.values[row]) else "an infinite value"
            reasons.setdefault(int(row), f"{value} of {render(expression)!r}")
    bad = sorted(reasons)
    return np.array(bad, dtype=np.int64), [reasons[row] for row in bad]
