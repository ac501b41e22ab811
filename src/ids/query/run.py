"""Runs scripts in process: prepares the rows of each SELECT, evaluates it, and returns Arrow.

    table ─▶ WHERE ─▶ bad rows out ─▶ window order ─▶ atoms ─▶ emits ─▶ output columns

On Spark, ``spark_run`` and ``spark_prepare`` do the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.model import (
    CountWindow,
    Explain,
    Kind,
    Register,
    Select,
    Statement,
    Table,
    checked_seed,
    local_path,
    nulls,
    render,
)
from ids.plan import (
    Schema,
    SelectPlan,
    Step,
    Tables,
    explain,
    merged_tables,
    nothing_asked,
    planned,
)
from ids.predicates import Measure, Refinement, evaluate_measure, holds
from ids.query.bad_rows import BadRowsFolder, bad_row_error, find_bad_rows
from ids.query.emits import CountEmits, EmitPlan, plan_time
from ids.query.evaluate import (
    Segment,
    evaluate_segment,
    last_of_each_key,
    output_columns,
    refuse_wide_windows,
    scale_of,
)
from ids.query.replay import Answers, Progress
from ids.query.row_order import Ordering, arrange
from ids.source import (
    ARROW_TYPES,
    Declared,
    Source,
    misread_of,
    open_table,
    to_array,
)
from ids.state import contents, priorities

Rows = npt.NDArray[np.int64]


class Prepared(NamedTuple):
    """The rows of a SELECT and their measures, in window order."""

    table: Table
    measures: list[Measure | None]
    ordering: Ordering

    def take(self, rows: Rows) -> Prepared:
        """Return the given rows, in the given order."""
        measures = [None if m is None else _take(m, rows) for m in self.measures]
        return self._replace(table=self.table.take(rows), measures=measures)


def prepare(plan: SelectPlan, source: Source, bad_rows: BadRowsFolder | None) -> Prepared:
    """Read the columns of a plan, apply WHERE, remove bad rows, and sort into window order."""
    table = source.read(plan.columns)
    if plan.order_by[0] in source.untyped:
        table.columns[plan.order_by[0]] = nulls(Kind.TIME, table.rows)
    kept: Rows | None = None
    if plan.where is not None:
        true = holds(plan.where, table)
        if not true.all():
            kept = np.flatnonzero(true)
            table = table.take(kept)
    measures = [None if x is None else evaluate_measure(x, table) for x in plan.measures]
    found = Prepared(table, measures, Ordering(None, np.zeros(0, np.int64), None))
    bad = find_bad_rows(plan, source, table, measures, kept)
    if bad:
        positions = np.array(list(bad), np.int64)
        original = (positions if kept is None else kept[positions]).tolist()
        reasons = dict(zip(original, bad.values(), strict=True))
        if bad_rows is None:
            raise bad_row_error(reasons[original[0]], plan.table, source.where(original[0]))
        bad_rows.add(source, reasons)
        found = found.take(np.delete(np.arange(table.rows), positions))
    columns = found.table.columns
    ordering = arrange(
        [columns[name] for name in plan.order_by],
        [columns[name] for name in plan.partition_by],
        found.table.rows,
    )
    found = found._replace(ordering=ordering)
    return found if ordering.rows is None else found.take(ordering.rows)


def _take(one: Measure, rows: Rows) -> Measure:
    players = None if one.players is None else one.players[rows]
    return Measure(one.values[rows], players, one.largest, one.smallest)


def run_select(
    plan: SelectPlan, source: Source, bad_rows: BadRowsFolder | None, progress: Progress | None
) -> pa.Table:
    """Evaluate a query, and return a table with one row per emit."""
    prepared = prepare(plan, source, bad_rows)
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
    """Build the output table: keys, emit_at, n, then the items in SELECT order."""
    columns: dict[str, pa.Array] = {}
    for name in plan.partition_by:
        column = prepared.table.columns[name].take(prepared.ordering.starts[emits.key])
        if column.values.dtype == np.float64:  # -0.0 and 0.0 are the same key, as in Spark
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
    """Return the instant of each emit, or the event time of its newest row."""
    if emits.instant is not None:
        return pa.array(emits.instant).cast(ARROW_TYPES["TIMESTAMP"])
    column = prepared.table.columns[plan.order_by[0]]
    every_row = len(emits) == prepared.table.rows and len(prepared.ordering.starts) == 2
    return to_array(column if every_row else column.take((emits.arrived - 1).view(np.int64)))


def _emission_order(prepared: Prepared, emits: EmitPlan) -> Rows | None:
    """Order emits as in the stream (count windows), or by instant and key (time windows)."""
    stream = prepared.ordering.stream
    if stream is None or len(prepared.ordering.starts) == 2:
        return None
    if emits.instant is not None:
        return np.lexsort((emits.key, emits.instant)).astype(np.int64)
    newest = (emits.arrived - 1).view(np.int64)
    return np.argsort(stream[newest], kind="stable").astype(np.int64)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one statement.

    statement  the parsed SELECT, SHOW or EXPLAIN
    table      the output
    bad_rows   the number of bad rows written to the directory
    """

    statement: Statement
    table: pa.Table
    bad_rows: int = 0


def sql(
    script: str,
    /,
    *,
    tables: Mapping[str, object] | None = None,
    bad_rows: str | Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    **named_tables: object,
) -> pa.Table:
    """Run a script in process and return the emits of its last SELECT as a pyarrow Table.

    A script without a SELECT returns the output of its last SHOW or EXPLAIN.

    script    str: the statements, separated by ``;``
    tables    dict of str to table, default None: the script's tables, keyed by name. A table is a
              path (Parquet, CSV, JSON Lines, or a directory of them), a pyarrow Table or
              RecordBatch, a pandas or Polars DataFrame, or a dict of arrays
    bad_rows  str or Path, default None: a directory for rows with a NULL event time, or a NaN or
              infinite value; if None, the first such row raises DataError
    progress  function, default None: called as ``progress(done, total)`` during each SELECT
    seed      int, default 0: the random seed for the samples of APPROXIMATE items
    schema    str, default None: types of some columns, as in ``"ts EPOCH_SECONDS, x DOUBLE"``; with
              several tables, a dict from table to such a str. Other types are inferred
    null      str or a sequence of str, default (): texts that mean NULL in CSV and JSON Lines files
    named_tables  every other keyword argument is a table with that name

    Raises a subclass of IdsError: ScriptError for a mistake in the script, SourceError for a table
    that cannot be read, DataError for a bad row, SinkError if ``bad_rows`` cannot be written.

    >>> script = "SELECT SHAPLEY_ATTRIBUTE(SUM(x), x > 1) AS high FROM events "
    >>> script += "WINDOW w AS (ORDER BY x ROWS 2 PRECEDING) EMIT CHANGES"
    >>> sql(script, events={"x": [1, 2, 4]})["high"].to_pylist()
    [0.0, 2.0, 6.0]
    """
    given = merged_tables(tables, named_tables)
    results = sql_all(
        script, tables=given, bad_rows=bad_rows, progress=progress, seed=seed, schema=schema,
        null=null,
    )  # fmt: skip
    selects = [r for r in results if isinstance(r.statement, Select)]
    return (selects or results)[-1].table


def sql_all(
    script: str,
    /,
    *,
    tables: Mapping[str, object] | None = None,
    bad_rows: str | Path | None = None,
    progress: Progress | None = None,
    seed: int = 0,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    **named_tables: object,
) -> list[Result]:
    """Run a script in process and return a Result for each SELECT, SHOW and EXPLAIN, in order.

    A ``Result`` has ``statement``, ``table`` (a pyarrow Table) and ``bad_rows`` (the number of bad
    rows written). The parameters and errors are the same as for ``ids.sql``.

    >>> select = "SELECT SUM(x) AS s FROM t WINDOW w AS (ORDER BY x ROWS 2 PRECEDING) EMIT CHANGES;"
    >>> [result.table["s"].to_pylist() for result in sql_all(select * 2, t={"x": [1, 2]})]
    [[1.0, 3.0], [1.0, 3.0]]
    """
    given = merged_tables(tables, named_tables)
    steps = run_script(
        script, given, bad_rows=bad_rows, progress=progress, seed=seed, schema=schema, null=null
    )
    results = list(steps)
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
    """Run a script, yielding the result of each SELECT, SHOW and EXPLAIN once it is complete."""
    seed, known = checked_seed(seed), Declared.of(schema, null, tables)
    sources = Tables(tables, lambda data, n: open_table(data, n, known.columns(n), known.nulls))
    found: dict[str, dict[int, str]] = {}
    for step in planned(script, lambda statement: _schema(sources.of(statement))):
        statement = step.statement
        if not isinstance(statement, Select) or step.plan is None:
            yield Result(statement, shown(step))
            continue
        folder = None
        if bad_rows is not None:
            reasons = found.setdefault(statement.table.lower(), {})
            folder = BadRowsFolder(local_path(bad_rows), statement.table, reasons)
        plan = replace(step.plan, seed=seed)
        table = run_select(plan, sources.of(statement), folder, progress)
        yield Result(statement, table, 0 if folder is None else folder.rows)


def _schema(source: Source) -> Schema:
    kinds = {**source.schema, **dict.fromkeys(source.untyped)}
    return Schema(kinds, source.unsupported, partial(misread_of, source))


def shown(step: Step) -> pa.Table:
    """Return the output of SHOW PREDICATES or EXPLAIN."""
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
