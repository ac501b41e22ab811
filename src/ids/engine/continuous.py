"""A continuous query over a whole table: rows to atoms, atoms to emits, emits to a table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.engine.answers import Answers
from ids.engine.arrow import EMIT_TIME, to_array
from ids.engine.asked import Progress, scale_of
from ids.engine.contents import contents, priorities
from ids.engine.rows import BadRows, Prepared, prepare
from ids.engine.stretch import (
    Stretch,
    answer,
    last_of_each_key,
    output_columns,
    refuse_wide_windows,
)
from ids.model.table import ColumnData, Kind
from ids.model.window import CountWindow
from ids.plan import SelectPlan
from ids.predicates.refinement import Refinement
from ids.source import Source
from ids.window import CountEmits, EmitPlan, plan_time

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
        emits = last_of_each_key(emits)
    refuse_wide_windows(emits)
    held = refinement.holds(np.arange(refinement.atoms))
    scales = [scale_of(plan, n, measure) for n, measure in enumerate(prepared.measures)]
    priority = None
    if plan.sampled:
        priority = priorities(contents(prepared.table, plan.columns, plan.seed))
    stretch = Stretch(atoms, held, prepared.measures, scales, emits, priority)
    return _assemble(plan, prepared, emits, answer(plan, stretch, progress))


def _emits(plan: SelectPlan, prepared: Prepared) -> EmitPlan:
    if isinstance(plan.window, CountWindow):
        return CountEmits(plan.window, prepared.ordering.starts)
    times = prepared.table.columns[plan.order_by[0]].values.astype(np.int64, copy=False)
    return plan_time(plan.window, times, prepared.ordering.starts)


def _assemble(plan: SelectPlan, prepared: Prepared, emits: EmitPlan, answers: Answers) -> pa.Table:
    """The output: keys, emit_at, n, then the items in the order they were asked."""
    columns: dict[str, pa.Array] = {}
    for name in plan.partition_by:
        column = prepared.table.columns[name].take(prepared.ordering.starts[emits.key])
        if column.values.dtype == np.float64:  # -0.0 is the key 0.0, as in Spark
            column = replace(column, values=column.values.astype(np.float64) + 0.0)
        columns[name] = to_array(column)
    columns["emit_at"] = _emit_at(plan, prepared, emits)
    columns |= output_columns(plan, emits, answers)
    table = pa.table(columns)
    order = _emission_order(prepared, emits)
    if plan.final:
        last = np.flatnonzero(np.diff(emits.key, append=-1))
        return table.take(last if order is None else order[np.isin(order, last)])
    return table if order is None else table.take(order)


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
