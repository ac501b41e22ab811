"""A script run over tables: each SELECT takes rows to atoms, atoms to emits, emits to a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.model import (
    ColumnData,
    CountWindow,
    Explain,
    Kind,
    Register,
    Select,
    Statement,
    checked_seed,
    local_path,
    render,
)
from ids.plan import Schema, SelectPlan, Step, Tables, explain, nothing_asked, planned
from ids.predicates import Refinement
from ids.query.bad_rows import BadRowsFolder
from ids.query.emits import CountEmits, EmitPlan, plan_time
from ids.query.evaluate import (
    EMIT_TIME,
    Segment,
    evaluate_segment,
    last_of_each_key,
    output_columns,
    refuse_wide_windows,
    scale_of,
    to_array,
)
from ids.query.prepare import BadRows, Prepared, prepare
from ids.query.replay import Answers, Progress
from ids.source import Declared, Source, misread_of, open_table
from ids.state import contents, priorities


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
    priority = np.zeros(0, np.int64)
    if plan.sampled:
        priority = priorities(contents(prepared.table, plan.columns, plan.seed))
    segment = Segment(atoms, held, prepared.measures, scales, emits, priority)
    return _assemble(plan, prepared, emits, evaluate_segment(plan, segment, progress))


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
    stream = prepared.ordering.stream
    if stream is None or len(prepared.ordering.starts) == 2:
        return None
    if emits.instant is not None:
        return np.lexsort((emits.key, emits.instant)).astype(np.int64)
    newest = (emits.arrived - 1).view(np.int64)
    return np.argsort(stream[newest], kind="stable").astype(np.int64)


@dataclass(frozen=True, slots=True)
class Result:
    """What one statement gave: its table, and how many bad rows were set aside for it."""

    statement: Statement
    table: pa.Table
    bad_rows: int = 0


def sql(
    script: str,
    /,
    *,
    bad_rows: str | Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    **tables: object,
) -> pa.Table:
    """Run a script in process; the last SELECT's emits as an Arrow table.

    A script without a SELECT gives what its last SHOW or EXPLAIN shows. ``bad_rows`` names a
    directory where rows that no window can take are set aside instead of stopping the run.
    ``seed`` decides which rows an APPROXIMATE item samples.

    ``schema`` declares types of some columns: ``"ts EPOCH_SECONDS, latency DOUBLE"``, or a dict of
    them by table. ``null`` is a text, or several, that means NULL in CSV and JSON Lines files.
    """
    results = sql_all(
        script,
        bad_rows=bad_rows,
        progress=progress,
        seed=seed,
        schema=schema,
        null=null,
        **tables,
    )
    selects = [r for r in results if isinstance(r.statement, Select)]
    return (selects or results)[-1].table


def sql_all(
    script: str,
    /,
    *,
    bad_rows: str | Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    **tables: object,
) -> list[Result]:
    """Run a script in process; what each SELECT, SHOW and EXPLAIN gives, in their order.

    The arguments are those of ``sql``.

    >>> select = "SELECT SUM(x) AS s FROM t WINDOW w AS (ORDER BY x ROWS 2 PRECEDING) EMIT CHANGES;"
    >>> [result.table["s"].to_pylist() for result in sql_all(select * 2, t={"x": [1, 2]})]
    [[1.0, 3.0], [1.0, 3.0]]
    """
    results = list(
        run_script(
            script,
            tables,
            bad_rows=bad_rows,
            progress=progress,
            seed=seed,
            schema=schema,
            null=null,
        )
    )
    if not results:
        raise nothing_asked()
    return results


def run_script(
    script: str,
    tables: Mapping[str, object],
    *,
    bad_rows: str | Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
) -> Iterator[Result]:
    """Run a script statement by statement; yields what each SELECT, SHOW and EXPLAIN gives."""
    seed, known = checked_seed(seed), Declared.of(schema, null, tables)
    sources = Tables(tables, lambda data, n: open_table(data, n, known.columns(n), known.nulls))
    found: dict[str, dict[int, str]] = {}
    for step in planned(script, lambda statement: _schema(sources.of(statement))):
        statement = step.statement
        if not isinstance(statement, Select) or step.plan is None:
            yield Result(statement, shown(step))
            continue
        aside = None
        if bad_rows is not None:
            reasons = found.setdefault(statement.table.lower(), {})
            aside = BadRowsFolder(local_path(bad_rows), statement.table, reasons)
        plan = replace(step.plan, seed=seed)
        table = run_select(plan, sources.of(statement), aside, progress)
        yield Result(statement, table, 0 if aside is None else aside.rows)


def _schema(source: Source) -> Schema:
    kinds = {**source.schema, **dict.fromkeys(source.untyped)}
    return Schema(kinds, source.unsupported, partial(misread_of, source))


def shown(step: Step) -> pa.Table:
    """What SHOW and EXPLAIN show."""
    if isinstance(step.statement, Explain) and step.plan is not None:
        return pa.table({"plan": explain(step.plan)})
    return _predicates(step.registered)


def _predicates(registered: tuple[Register, ...]) -> pa.Table:
    return pa.table(
        {
            "predicate": pa.array([r.name for r in registered], "string"),
            "table": pa.array([r.table for r in registered], "string"),
            "condition": pa.array([render(r.condition) for r in registered], "string"),
        }
    )
