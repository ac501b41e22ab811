"""``ids run``: a script over tables, its result to a file, a pipe or the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.console import Console

from ids.cli.arguments import (
    BadRowsOption,
    ConfOption,
    DebugOption,
    MasterOption,
    NullOption,
    OptionError,
    SchemaOption,
    ScriptArgument,
    TableOption,
    check_master,
    read_pairs,
    read_schemas,
    read_script,
    read_tables,
)
from ids.cli.delivery import Delivery, deliver, delivery, printed
from ids.cli.on_spark import Following, Job, run_batch, run_stream
from ids.cli.options import (
    CheckpointOption,
    EngineOption,
    FormatOption,
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
from ids.cli.terminal import Bar, emit_table, print_lines
from ids.model.query import Select
from ids.sink.target import Target, check_directory
from ids.sink.writing import opening, write_stream

if TYPE_CHECKING:
    from ids.engine import Result

__all__ = ["run"]


def run(
    query: ScriptArgument,
    table: TableOption = None,
    output: OutputOption = None,
    format_: FormatOption = None,
    engine: EngineOption = "spark",
    bad_rows: BadRowsOption = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    schema: SchemaOption = None,
    null: NullOption = None,
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

    On a terminal each result is shown as a table; a pipe gets CSV.
    """
    if engine not in ("spark", "local"):
        raise OptionError("--engine", f"{engine!r} is not known; use spark or local")
    tables = read_tables(table)
    job = Job(
        tables=tables,
        schemas=read_schemas(schema, tables),
        nulls=tuple(null or ()),
        conf=read_pairs(conf, "--conf", "KEY=VALUE"),
        master=master,
        output=output,
        bad_rows=bad_rows,
        seed=seed or 0,
        debug=debug,
    )
    following = Following(checkpoint, lateness, max_ahead, trigger, once, retain)
    _refuse_strangers({"--stream": stream, **following.flags()}, job, engine)
    with reporting(debug):
        script = read_script(query)
        if bad_rows is not None:
            check_directory(bad_rows)
        if stream:
            run_stream(script, job, following, format_)
            return
        from ids.plan import statements_of

        to = delivery(job.output, format_, statements_of(script))
        if engine == "spark":
            run_batch(script, job, to)
        else:
            _run_local(script, job, to)


def _run_local(script: str, job: Job, to: Delivery) -> None:
    if to.topic is not None:
        raise OptionError("--output", "a topic is for Spark; leave out --engine local")
    found = _results(script, job)

    def show(result: Result, console: Console) -> None:
        _show(result, console, to.last)

    deliver(found, to, show, _writing)


@contextmanager
def _writing(places: Sequence[Target]) -> Iterator[Callable[[Result, Target], int]]:
    with opening(places) as open_:

        def write(result: Result, place: Target) -> int:
            with (printed if place.device else open_)(place) as stream:
                return write_stream(result.table, stream, place.format)

        yield write


def _refuse_strangers(of_streams: Mapping[str, object], job: Job, engine: str) -> None:
    """Options that would be passed over in silence are refused."""
    of_spark = {"--master": job.master, "--conf": job.conf}
    given = [flag for flag, value in {**of_streams, **of_spark}.items() if value]
    if engine == "local" and given:
        raise OptionError(given[0], "is for Spark; leave out --engine local")
    if not of_streams["--stream"] and given and given[0] in of_streams:
        raise OptionError(given[0], "is for streams; add --stream")
    check_master(job.master)


def _results(script: str, job: Job) -> Iterator[Result]:
    """What each statement gives, with a bar while it is worked on and a note of its bad rows."""
    bar = Bar(Console(stderr=True))
    try:
        bar.start()
        from ids.engine import run_script  # here, so that --help need not wait for the compiler

        for result in run_script(
            script,
            job.tables,
            bad_rows=job.bad_rows,
            progress=bar,
            seed=job.seed,
            schema=job.schemas,
            null=job.nulls,
        ):
            bar.clear()
            if result.bad_rows:
                rows = "row" if result.bad_rows == 1 else "rows"
                note(f"{result.bad_rows:,} bad {rows} set aside in {job.bad_rows}")
            yield result
            bar.start()
    finally:
        bar.clear()


def _show(result: Result, console: Console, last: int | None) -> None:
    """A result on the terminal: emits as a table, a plan as its text."""
    table = result.table
    if isinstance(result.statement, Select):
        console.print(emit_table(table, console.width, last))
    elif table.num_columns == 1 and pa.types.is_string(table.schema.field(0).type):
        print_lines(table.column(0).to_pylist(), console)
        return
    else:
        console.print(emit_table(table, console.width, last=None))
    console.print()
