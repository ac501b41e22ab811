"""Whole scripts over tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ids.engine.aside import Aside
from ids.engine.continuous import Progress, run_select
from ids.errors import ScriptError, UnknownNameError
from ids.games import GAMES
from ids.language import parse
from ids.model.query import Drop, Explain, Register, Select, Show, Statement
from ids.model.rendering import render
from ids.plan import Registry, explain, plan_select
from ids.source import Source, open_table

__all__ = ["Result", "run_script", "sql"]


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
    **tables: object,
) -> pa.Table:
    """Run a script in process; the last SELECT's emits as an Arrow table.

    A script without a SELECT gives what its last SHOW or EXPLAIN shows. ``bad_rows`` names a
    directory where rows that no window can take are set aside instead of stopping the run.
    """
    results = list(run_script(script, tables, bad_rows=bad_rows, progress=progress))
    selects = [r for r in results if isinstance(r.statement, Select)]
    if not results:
        raise ScriptError("the script asks for nothing", hint="end it with a SELECT … EMIT CHANGES")
    return (selects or results)[-1].table


def run_script(
    script: str,
    tables: Mapping[str, object],
    *,
    bad_rows: str | Path | None = None,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """Run a script statement by statement; yields what each SELECT, SHOW and EXPLAIN gives."""
    statements = parse(script, games=tuple(GAMES))
    sources = _Sources(tables)
    registry = Registry()
    for statement in statements:
        match statement:
            case Register():
                sources.check(statement.table, statement)
                registry.register(statement)
                if statement.table.lower() in sources:
                    registry.bound(statement.table, sources[statement.table].schema)
            case Drop():
                registry.drop(statement)
            case Show():
                yield Result(statement, _predicates(registry))
            case Explain(select):
                plan = plan_select(select, sources.of(select).schema, registry)
                yield Result(statement, pa.table({"plan": explain(plan)}))
            case Select():
                source = sources.of(statement)
                plan = plan_select(statement, source.schema, registry)
                aside = None if bad_rows is None else Aside(Path(bad_rows), statement.table)
                table = run_select(plan, source, aside, progress)
                yield Result(statement, table, 0 if aside is None else aside.rows)


def _predicates(registry: Registry) -> pa.Table:
    registered = list(registry)
    return pa.table(
        {
            "predicate": pa.array([r.name for r in registered], "string"),
            "table": pa.array([r.table for r in registered], "string"),
            "condition": pa.array([render(r.condition) for r in registered], "string"),
        }
    )


class _Sources:
    """The tables of a script, opened when first asked for; names fold case."""

    def __init__(self, tables: Mapping[str, object]) -> None:
        self._tables = {name.lower(): (name, data) for name, data in tables.items()}
        self._open: dict[str, Source] = {}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._tables

    def __getitem__(self, name: str) -> Source:
        folded = name.lower()
        if folded not in self._open:
            given, data = self._tables[folded]
            self._open[folded] = open_table(data, given)
        return self._open[folded]

    def check(self, name: str, statement: Register | Select) -> None:
        """Refuse a table nobody gave."""
        if name not in self:
            known = [given for given, _ in self._tables.values()]
            raise UnknownNameError("table", name, known, statement.at)

    def of(self, select: Select) -> Source:
        """The table a SELECT reads."""
        self.check(select.table, select)
        return self[select.table]
