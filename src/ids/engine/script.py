"""Whole scripts over tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from ids.engine.aside import Aside
from ids.engine.asked import Progress
from ids.engine.continuous import run_select
from ids.model.place import local_path
from ids.model.query import Explain, Register, Select, Statement
from ids.model.rendering import render
from ids.model.sampling import checked_seed
from ids.plan import Schema, Step, Tables, explain, nothing_asked, planned
from ids.source import Declared, Source, misread_of, open_table

__all__ = ["Result", "run_script", "shown", "sql", "sql_all"]


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
            aside = Aside(local_path(bad_rows), statement.table, reasons)
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
