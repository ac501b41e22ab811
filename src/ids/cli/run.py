"""``ids run``: a script over tables, its result to a file, a pipe or the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import typer
from rich.console import Console

from ids import sink
from ids.cli.arguments import (
    BadRowsOption,
    ConfOption,
    DebugOption,
    MasterOption,
    SchemaOption,
    ScriptArgument,
    TableOption,
    read_pairs,
    read_script,
    read_tables,
)
from ids.cli.on_spark import Following, Job, run_batch, run_stream
from ids.cli.options import (
    CheckpointOption,
    EngineOption,
    LatenessOption,
    MaxAheadOption,
    OnceOption,
    OutputOption,
    RetainOption,
    SeedOption,
    StreamOption,
    TriggerOption,
)
from ids.cli.reporting import note, reporting
from ids.cli.terminal import Bar, emit_table, is_terminal
from ids.errors import ScriptError
from ids.model.query import Select

if TYPE_CHECKING:
    from ids.engine import Result

__all__ = ["results", "run", "show"]


def run(
    query: ScriptArgument,
    table: TableOption = None,
    output: OutputOption = None,
    engine: EngineOption = "spark",
    bad_rows: BadRowsOption = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    schema: SchemaOption = None,
    seed: SeedOption = None,
    stream: StreamOption = False,
    checkpoint: CheckpointOption = None,
    lateness: LatenessOption = None,
    max_ahead: MaxAheadOption = None,
    trigger: TriggerOption = None,
    once: OnceOption = False,
    retain: RetainOption = False,
    debug: DebugOption = False,
) -> None:
    """Run a script over tables, on Spark or in this process.

    On a terminal each result is shown as a table; a pipe gets the last SELECT as CSV.
    """
    if engine not in ("spark", "local"):
        raise typer.BadParameter(
            f"{engine!r} is not known; use spark or local", param_hint="--engine"
        )
    job = Job(
        tables=read_tables(table),
        schemas=read_pairs(schema, "--schema", "NAME=COLUMNS"),
        conf=read_pairs(conf, "--conf", "KEY=VALUE"),
        master=master,
        output=None if output == "-" else output,
        bad_rows=bad_rows,
        seed=seed or 0,
        debug=debug,
    )
    following = (
        Following(checkpoint, lateness, max_ahead, trigger, once, retain) if stream else None
    )
    given = (checkpoint, lateness, max_ahead, trigger, once or None, retain or None)
    _refuse_strangers(engine, job, stream, given)
    with reporting(debug):
        script = read_script(query)
        if job.output is not None and not job.output.startswith("kafka://") and not stream:
            sink.check(job.output)
        if engine == "local":
            _deliver(results(script, job.tables, bad_rows, job.seed), job.output)
        elif following is None:
            run_batch(script, job)
        else:
            run_stream(script, job, following)


def _refuse_strangers(engine: str, job: Job, stream: bool, following: tuple[object, ...]) -> None:
    """Options that would be passed over in silence are refused."""
    if engine == "local" and (stream or job.master or job.conf or job.schemas):
        raise typer.BadParameter(
            "is for Spark; leave out --engine local",
            param_hint="--stream, --master, --conf, --schema",
        )
    if not stream and any(option is not None for option in following):
        hint = "--checkpoint, --lateness, --max-ahead, --trigger, --once, --retain"
        raise typer.BadParameter("is for streams; add --stream", param_hint=hint)
    unknown = sorted(set(job.schemas) - set(job.tables))
    if unknown:
        raise typer.BadParameter(f"no --table is called {unknown[0]!r}", param_hint="--schema")


def results(
    script: str, tables: dict[str, str], bad_rows: Path | None, seed: int = 0
) -> Iterator[Result]:
    """What each statement gives, with a bar while it is worked on and a note of its bad rows."""
    bar = Bar(Console(stderr=True))
    try:
        bar.start()
        from ids.engine import run_script  # here, so that --help need not wait for the compiler

        for result in run_script(script, tables, bad_rows=bad_rows, progress=bar, seed=seed):
            bar.clear()
            if result.bad_rows:
                rows = "row" if result.bad_rows == 1 else "rows"
                note(f"{result.bad_rows:,} bad {rows} set aside in {bad_rows}")
            yield result
            bar.start()
    finally:
        bar.clear()


def _deliver(given: Iterator[Result], output: str | None) -> None:
    on_terminal = output is None and is_terminal()
    last: Result | None = None
    for result in given:
        if on_terminal:
            show(result, Console())
        if _is_select(result) or not _is_select(last):
            last = result
    if last is None:
        raise ScriptError("the script asks for nothing", hint="end it with a SELECT … EMIT CHANGES")
    if on_terminal:
        return
    if output is None:
        sink.stream_csv(last.table, sys.stdout.buffer)
        return
    written = sink.write(last.table, output)
    if sys.stderr.isatty():
        note(f"wrote {written:,} rows to {output}")


def _is_select(result: Result | None) -> bool:
    return result is not None and isinstance(result.statement, Select)


def show(result: Result, console: Console) -> None:
    """A result on the terminal: emits as a table, a plan as its text."""
    table = result.table
    if isinstance(result.statement, Select):
        console.print(emit_table(table, console.width))
    elif table.num_columns == 1 and pa.types.is_string(table.schema.field(0).type):
        for line in table.column(0).to_pylist():
            console.print(line, markup=False, highlight=False, soft_wrap=True)
    else:
        console.print(emit_table(table, console.width, last=None))
    console.print()
