"""Whole scripts over tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from ids.engine.aside import Aside
from ids.engine.asked import Progress
from ids.engine.continuous import run_select
from ids.errors import ScriptError, UnknownNameError
from ids.games import GAMES
from ids.language import parse
from ids.model.query import Drop, Explain, Register, Select, Show, Statement
from ids.model.rendering import render
from ids.model.table import Kind
from ids.plan import Registry, SelectPlan, explain, plan_select
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
    statements = _parsed(script, tuple(GAMES))
    sources = _Sources(tables)
    registry = Registry()
    found: dict[str, dict[int, str]] = {}
    for statement in statements:
        match statement:
            case Register():
                source = sources.of(statement)
                registry.register(statement)
                with _unsupported_named(source):
                    registry.bound(statement.table, _kinds(source))
            case Drop():
                registry.drop(statement)
            case Show():
                yield Result(statement, _predicates(registry))
            case Explain(select):
                plan = _plan(select, sources.of(select), registry)
                yield Result(statement, pa.table({"plan": explain(plan)}))
            case Select():
                source = sources.of(statement)
                plan = _plan(statement, source, registry)
                aside = None
                if bad_rows is not None:
                    reasons = found.setdefault(statement.table.lower(), {})
                    aside = Aside(Path(bad_rows), statement.table, reasons)
                table = run_select(plan, source, aside, progress)
                yield Result(statement, table, 0 if aside is None else aside.rows)


def _plan(select: Select, source: Source, registry: Registry) -> SelectPlan:
    with _unsupported_named(source):
        return plan_select(select, _kinds(source), registry)


def _kinds(source: Source) -> dict[str, Kind | None]:
    return {**source.schema, **dict.fromkeys(source.untyped)}


@contextmanager
def _unsupported_named(source: Source) -> Iterator[None]:
    """A column that is there, but of a type IDS does not read, is no unknown column."""
    try:
        yield
    except UnknownNameError as error:
        for name, what in source.unsupported.items():
            if error.kind == "column" and name.lower() == error.name.lower():
                hint = "IDS reads numbers, text, booleans and timestamps"
                raise ScriptError(f"column {name!r} is {what}", error.at, hint) from error
        raise


# A service runs the same few scripts again and again.
_parsed = lru_cache(maxsize=64)(parse)


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

    def of(self, statement: Register | Select) -> Source:
        """The table a statement speaks of; one nobody gave is refused."""
        folded = statement.table.lower()
        if folded not in self._tables:
            known = [given for given, _ in self._tables.values()]
            raise UnknownNameError("table", statement.table, known, statement.at)
        if folded not in self._open:
            given, data = self._tables[folded]
            self._open[folded] = open_table(data, given)
        return self._open[folded]
