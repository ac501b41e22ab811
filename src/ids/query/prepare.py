"""Rows made ready: WHERE applied, bad rows named or set aside, measures evaluated, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ids.model import FIRST_INSTANT, LAST_INSTANT, Expression, Kind, Table, nulls, render
from ids.plan import SelectPlan
from ids.predicates import Measure, evaluate_measure, holds
from ids.query.bad_rows import FAR_TIME, INFINITE, NAN, NULL_TIME, bad_row_error
from ids.query.emits import Ordering, arrange
from ids.source import Source, unfit_rows

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]

BadRows = Callable[[Source, npt.NDArray[np.int64], list[str]], None]


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the slide loop needs: the table and its measures in window order."""

    table: Table
    measures: tuple[Measure | None, ...]
    ordering: Ordering


def prepare(plan: SelectPlan, source: Source, set_aside: BadRows | None) -> Prepared:
    """Read the columns a plan asks for and bring their rows into window order."""
    table = _read(plan, source)
    rows: npt.NDArray[np.int64] | None = None
    if plan.where is not None:
        kept = holds(plan.where, table)
        if not kept.all():
            rows = np.flatnonzero(kept)
            table = table.take(rows)
    measures = [_evaluate(expression, table) for expression in plan.measures]
    bad, reasons = _with_unfit(_find_bad(plan, table, measures), plan, source, rows)
    if len(bad):
        original = bad if rows is None else rows[bad]
        if set_aside is None:
            raise bad_row_error(reasons[0], plan.table, source.where(int(original[0])))
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


def _with_unfit(
    found: tuple[Rows, list[str]], plan: SelectPlan, source: Source, kept: Rows | None
) -> tuple[Rows, list[str]]:
    """The bad rows of the table, and those with a value that is not of its declared type."""
    unfit, why = unfit_rows(source, plan.columns)
    if not len(unfit):
        return found
    reasons = dict(zip(found[0].tolist(), found[1], strict=True))
    if kept is None:
        places = unfit.tolist()
    else:
        inside = np.isin(unfit, kept)
        places = np.searchsorted(kept, unfit[inside]).tolist()
        why = [reason for reason, held in zip(why, inside, strict=True) if held]
    reasons |= dict(zip(places, why, strict=True))
    return np.array(sorted(reasons), np.int64), [reasons[row] for row in sorted(reasons)]


def _read(plan: SelectPlan, source: Source) -> Table:
    """The columns of the plan; an event time without a type is a timestamp that is always NULL."""
    table = source.read(plan.columns)
    name = plan.order_by[0]
    if name in source.untyped:
        table.columns[name] = nulls(Kind.TIME, table.rows)
    return table


def _take(one: Measure, rows: npt.NDArray[np.int64]) -> Measure:
    players = None if one.players is None else one.players[rows]
    return Measure(one.values[rows], players, one.largest, one.smallest)


def _evaluate(expression: Expression | None, table: Table) -> Measure | None:
    return None if expression is None else evaluate_measure(expression, table)


def _find_bad(
    plan: SelectPlan, table: Table, measures: list[Measure | None]
) -> tuple[npt.NDArray[np.int64], list[str]]:
    """The rows no window can take, ascending, and why each of them."""
    faults: list[tuple[Mask, str]] = []
    event_time = table.columns[plan.order_by[0]]
    if event_time.valid is not None:
        faults.append((~event_time.valid, NULL_TIME.format(plan.order_by[0])))
    if event_time.kind is Kind.TIME and event_time.values.size:
        times = event_time.values.astype(np.int64, copy=False)
        if times.min() < FIRST_INSTANT or times.max() > LAST_INSTANT:
            outside = (times < FIRST_INSTANT) | (times > LAST_INSTANT)
            faults.append((outside, FAR_TIME.format(plan.order_by[0])))
    for expression, one in zip(plan.measures, measures, strict=True):
        if one is not None and expression is not None and one.first_bad >= 0:
            text = render(expression)
            faults.append((np.isnan(one.values), NAN.format(text)))
            faults.append((np.isinf(one.values), INFINITE.format(text)))
    first = np.zeros(table.rows if faults else 0, np.int64)
    for number, (mask, _) in reversed(list(enumerate(faults, start=1))):
        first[mask] = number
    bad = np.flatnonzero(first)
    return bad, [faults[number - 1][1] for number in first[bad]]
