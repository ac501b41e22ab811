"""A continuous query over a whole table: rows to atoms, atoms to emits, emits to a table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.engine.answers import Answers
from ids.engine.arrow import EMIT_TIME, doubles, to_array
from ids.engine.asked import Progress, asked_of
from ids.engine.dense import answer_dense
from ids.engine.emitting import answer_measure
from ids.engine.rows import BadRows, Prepared, prepare
from ids.errors import StateError
from ids.model.query import ItemKind
from ids.model.scale import MAX_ROWS
from ids.model.table import ColumnData, Kind
from ids.model.window import CountWindow
from ids.plan import PlannedItem, SelectPlan
from ids.predicates.refinement import Refinement
from ids.source import Source
from ids.window import CountEmits, EmitPlan, Emits, plan_time

__all__ = ["run_select"]


def run_select(
    plan: SelectPlan, source: Source, set_aside: BadRows | None, progress: Progress | None
) -> pa.Table:
    """Every emit of a query, as one Arrow table."""
    prepared = prepare(plan, source, set_aside)
    refinement = Refinement(plan.predicates)
    atoms = refinement.assign(prepared.table)
    emits = _emits(plan, prepared)
    if plan.final:
        emits = _last_of_each_key(emits)
    _refuse_wide_windows(emits)
    held = refinement.holds(np.arange(refinement.atoms))
    answers = Answers.empty()
    steps = len(plan.measures)
    for number in range(steps):
        tick = None if progress is None else _part(progress, number, steps)
        asked = asked_of(plan, number, prepared, atoms, held, emits, tick)
        answers |= answer_dense(asked) or answer_measure(asked)
    return _assemble(plan, prepared, emits, answers)


def _part(progress: Progress, number: int, steps: int) -> Progress:
    """Progress of one measure as a part of the whole."""
    return lambda done, total: progress(number * total + done, steps * total)


def _emits(plan: SelectPlan, prepared: Prepared) -> EmitPlan:
    if isinstance(plan.window, CountWindow):
        return CountEmits(plan.window, prepared.ordering.starts)
    times = prepared.table.columns[plan.order_by[0]].values.astype(np.int64, copy=False)
    return plan_time(plan.window, times, prepared.ordering.starts)


def _last_of_each_key(emits: EmitPlan) -> Emits:
    """The last emit of each key, and the one before it where a delta will look back at it."""
    last = np.flatnonzero(np.diff(emits.key, append=-1))
    before = last[emits.continues[last]] - 1
    chosen = np.union1d(last, before)
    return Emits(
        arrived=emits.arrived[chosen],
        expired=emits.expired[chosen],
        instant=None if emits.instant is None else emits.instant[chosen],
        key=emits.key[chosen],
        continues=emits.continues[chosen] & np.isin(chosen, last),
    )


def _refuse_wide_windows(emits: EmitPlan) -> None:
    if isinstance(emits, CountEmits) and emits.window.size <= MAX_ROWS:
        return
    widest = int((emits.arrived - emits.expired).max(initial=0))
    if widest > MAX_ROWS:
        raise StateError(
            f"a window of {widest:,} rows is more than the {MAX_ROWS:,} that are summed exactly; "
            "choose a shorter window"
        )


def _assemble(plan: SelectPlan, prepared: Prepared, emits: EmitPlan, answers: Answers) -> pa.Table:
    """The output: keys, emit_at, n, then the items in the order they were asked."""
    columns: dict[str, pa.Array] = {}
    for name in plan.partition_by:
        column = prepared.table.columns[name]
        columns[name] = to_array(column.take(prepared.ordering.starts[emits.key]))
    columns["emit_at"] = _emit_at(plan, prepared, emits)
    counts = answers.counts
    if counts is None:
        counts = (emits.arrived - emits.expired).view(np.int64)
    columns["n"] = pa.array(counts)
    for item in plan.items:
        for suffix, values, missing in _item_columns(item, answers, emits):
            columns[item.name + suffix] = doubles(values, missing)
    table = pa.table(columns)
    order = _emission_order(prepared, emits)
    if plan.final:
        last = np.flatnonzero(np.diff(emits.key, append=-1))
        return table.take(last if order is None else order[np.isin(order, last)])
    return table if order is None else table.take(order)


def _item_columns(
    item: PlannedItem, answers: Answers, emits: EmitPlan
) -> list[tuple[str, npt.NDArray[np.float64], npt.NDArray[np.bool_] | None]]:
    if item.kind is ItemKind.AGGREGATE:
        worth, missing = answers.aggregate(item)
        return [("", worth, missing)]
    attributed = answers.attributed(item)
    if item.kind is ItemKind.DELTA:
        before = np.zeros_like(attributed.value)
        before[1:] = attributed.value[:-1]
        return [("", attributed.value - np.where(emits.continues, before, 0.0), None)]
    parts = {"SHARE": attributed.share, "LIFT": attributed.lift}
    return [
        ("", attributed.value, None),
        *((f"_{part.lower()}", parts[part], None) for part in item.parts),
    ]


def _emit_at(plan: SelectPlan, prepared: Prepared, emits: EmitPlan) -> pa.Array:
    """The instant, or the newest row's event time."""
    if emits.instant is not None:
        return pa.array(emits.instant).cast(EMIT_TIME)
    column: ColumnData = prepared.table.columns[plan.order_by[0]]
    every_row = len(emits) == prepared.table.rows and len(prepared.ordering.starts) == 2
    newest = column if every_row else column.take((emits.arrived - 1).view(np.int64))
    if newest.kind is Kind.TIME:
        return pa.array(newest.values).cast(EMIT_TIME)
    return to_array(newest)


def _emission_order(prepared: Prepared, emits: EmitPlan) -> npt.NDArray[np.int64] | None:
    """Emits in the order of the stream (count) or by instant, then key (time)."""
    if len(prepared.ordering.starts) == 2:
        return None
    if emits.instant is not None:
        return np.lexsort((emits.key, emits.instant)).astype(np.int64)
    assert prepared.ordering.stream is not None
    newest = (emits.arrived - 1).view(np.int64)
    return np.argsort(prepared.ordering.stream[newest], kind="stable").astype(np.int64)
