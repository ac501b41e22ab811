"""``ids run``: a script over tables, its result to a file, a pipe or the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import typer
from rich.console import Console

from ids import sink
from ids.cli.arguments import (
    DebugOption,
    ScriptArgument,
    TableOption,
    read_script,
    read_tables,
)
from ids.cli.reporting import note, reporting
from ids.cli.terminal import Bar, emit_table, is_terminal
from ids.errors import ScriptError, UnknownNameError
from ids.model.query import Select

if TYPE_CHECKING:
    from ids.engine import Result

__all__ = ["results", "run", "show"]


def run(
    query: ScriptArgument,
    table: TableOption = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="OUT",
            help="Where the result of the last SELECT goes: a .parquet, .csv or .jsonl file, a "
            "directory (end it with /), or - for the terminal or a pipe.",
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="What runs the script: local, in this process.")
    ] = "local",
    bad_rows: Annotated[
        Path | None,
        typer.Option(
            "--bad-rows",
            metavar="DIR",
            help="Set rows aside here that no aggregate can take, and go on without them.",
        ),
    ] = None,
    debug: DebugOption = False,
) -> None:
    """Run a script over tables.

    On a terminal each result is shown as a table; a pipe gets the last SELECT as CSV.
    """
    if engine != "local":
        known = "is not in this version" if engine == "spark" else "is not known"
        raise typer.BadParameter(f"{engine!r} {known}; use local", param_hint="--engine")
    with reporting(debug):
        tables = read_tables(table)
        script = read_script(query)
        if output not in (None, "-"):
            sink.check(str(output))
        _deliver(results(script, tables, bad_rows), None if output == "-" else output)


def results(script: str, tables: dict[str, str], bad_rows: Path | None) -> Iterator[Result]:
    """What each statement gives, with a bar while it is worked on and a note of its bad rows."""
    bar = Bar(Console(stderr=True))
    try:
        bar.start()
        from ids.engine import run_script  # here, so that --help need not wait for the compiler

        for result in run_script(script, tables, bad_rows=bad_rows, progress=bar):
            bar.clear()
            if result.bad_rows:
                rows = "row" if result.bad_rows == 1 else "rows"
                note(f"{result.bad_rows:,} bad {rows} set aside in {bad_rows}")
            yield result
            bar.start()
    except UnknownNameError as error:
        if tables or error.hint:
            raise
        raise ScriptError(error.fact, error.at, "give it with --table NAME=PATH") from error
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
