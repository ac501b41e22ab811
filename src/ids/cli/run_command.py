"""``ids run`` runs a script over tables, ``ids explain`` prints the plans of its SELECTs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ids.cli.arguments import (
    ConfOption,
    DebugOption,
    FormatOption,
    Job,
    MasterOption,
    OptionError,
    SeedOption,
    StreamOptions,
    check_master,
    read_pairs,
)
from ids.cli.terminal import Bar, print_lines, reporting, show_result
from ids.errors import SourceError, closest

if TYPE_CHECKING:
    from ids.cli.delivery import Delivery
    from ids.query import Result
    from ids.sink import Target

ScriptArgument = Annotated[
    str, typer.Argument(metavar="QUERY.sql", help="The script, or - to read it from stdin.")
]
TableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="NAME=PATH",
        help="A table of the script: a .parquet, .csv or .jsonl file or a directory of them, here "
        "or on any file system of Spark's (s3a://BUCKET/IN), a table of its catalog (DB.NAME), or "
        "kafka://HOST:PORT/TOPIC. May be given several times.",
    ),
]
SchemaOption = Annotated[
    list[str] | None,
    typer.Option(
        "--schema",
        metavar="[NAME=]COLUMNS",
        help="Types of columns: 'event_time EPOCH_MILLIS, latency DOUBLE', or "
        "events='event_time TIMESTAMP' where there are several tables. Those of a Kafka topic of "
        "JSON objects must all be given.",
    ),
]
NullOption = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        metavar="TEXT",
        help="A text that means NULL in CSV and JSON Lines files, such as NA. May be repeated.",
    ),
]
BadRowsOption = Annotated[
    str | None,
    typer.Option(
        "--bad-rows",
        metavar="DIR",
        help="Set rows aside here that no aggregate can take, and go on without them.",
    ),
]
OutputOption = Annotated[
    str | None,
    typer.Option(
        "--output",
        metavar="OUT",
        help="Where the emits go: a .parquet, .csv or .jsonl file or a directory (end it with /), "
        "here or on any file system of Spark's (s3a://BUCKET/OUT/), kafka://HOST:PORT/TOPIC, a "
        "pipe, or - for standard output. A directory gets files for each SELECT.",
    ),
]
EngineOption = Annotated[
    str, typer.Option("--engine", help="What runs the script: spark, or local in this process.")
]
StreamOption = Annotated[
    bool, typer.Option("--stream", help="Go on as rows arrive, until interrupted.")
]
CheckpointOption = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Where a stream remembers how far it came; it resumes from there.",
    ),
]
LatenessOption = Annotated[
    str | None,
    typer.Option(
        "--lateness",
        metavar="SPAN",
        help="By how much a row of a stream may be late, as in '10 seconds' or 10s; later ones are "
        "dropped and counted. 0 by default.",
    ),
]
MaxAheadOption = Annotated[
    str | None,
    typer.Option(
        "--max-ahead",
        metavar="SPAN",
        help="How far ahead of the others a row of a stream may be, as in '1 hour'; rows that are "
        "farther ahead are set aside and counted. 1 day by default; none for no limit.",
    ),
]
TriggerOption = Annotated[
    str | None,
    typer.Option("--trigger", metavar="SPAN", help="How often a stream looks for new rows."),
]
AvailableNowOption = Annotated[
    bool,
    typer.Option("--available-now", help="With --stream: take what is there, then stop."),
]
RetainOption = Annotated[
    bool,
    typer.Option(
        "--retain",
        help="With --stream: keep the rows inside the window in the checkpoint, for ids ask.",
    ),
]


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
    available_now: AvailableNowOption = False,
    retain: RetainOption = False,
    debug: DebugOption = False,
) -> None:
    """Run a script over tables, on Spark or in this process.

    On a terminal each result is shown as a table; a pipe gets CSV.
    """
    if engine not in ("spark", "local"):
        raise OptionError("--engine", f"{engine!r} is not known; use spark or local")
    tables = read_pairs(table, "--table")
    job = Job(
        tables=tables,
        schemas=_read_schemas(schema, tables),
        nulls=tuple(null or ()),
        conf=read_pairs(conf, "--conf", "KEY=VALUE"),
        master=master,
        output=output,
        bad_rows=bad_rows,
        seed=seed or 0,
        debug=debug,
    )
    options = StreamOptions(checkpoint, lateness, max_ahead, trigger, available_now, retain)
    _refuse_strangers({"--stream": stream, **options.flags()}, job, engine)
    with reporting(debug):
        script = _read_script(query)
        # here, so that --help and wrong options need not wait for Arrow and the compiler
        from ids.cli.delivery import Delivery
        from ids.cli.on_spark import run_batch, run_stream
        from ids.plan import statements_of
        from ids.sink import check_directory

        if bad_rows is not None:
            check_directory(bad_rows)
        if stream:
            run_stream(script, job, options, format_)
            return
        to = Delivery.of(job.output, format_, statements_of(script))
        if engine == "spark":
            run_batch(script, job, to)
        else:
            _run_local(script, job, to)


def _run_local(script: str, job: Job, to: Delivery) -> None:
    from ids.cli.delivery import deliver, noted, printed
    from ids.model import Select
    from ids.sink import opening, write_stream

    if to.topic is not None:
        raise OptionError("--output", "a topic is for Spark; leave out --engine local")

    def results() -> Iterator[Result]:
        with Bar() as bar:
            from ids.query import run_script

            found = run_script(
                script,
                job.tables,
                bad_rows=job.bad_rows,
                progress=bar,
                seed=job.seed,
                schema=job.schemas,
                null=job.nulls,
            )
            for result in found:
                bar.clear()
                yield result
                bar.start()

    def show(result: Result, console: Console) -> None:
        is_select = isinstance(result.statement, Select)
        show_result(result.table, console, to.last if is_select else None)

    @contextmanager
    def writer(places: Sequence[Target]) -> Iterator[Callable[[Result, Target], int]]:
        def write(result: Result, place: Target) -> int:
            with (printed if place.device else open_)(place) as stream:
                return write_stream(result.table, stream, place.format)

        with opening(places) as open_:
            yield write

    deliver(noted(results(), job.bad_rows), to, show, writer)


def _refuse_strangers(of_streams: Mapping[str, object], job: Job, engine: str) -> None:
    """Options that would be passed over in silence are refused."""
    of_spark = {"--master": job.master, "--conf": job.conf}
    given = [flag for flag, value in {**of_streams, **of_spark}.items() if value]
    if engine == "local" and given:
        raise OptionError(given[0], "is for Spark; leave out --engine local")
    if not of_streams["--stream"] and given and given[0] in of_streams:
        raise OptionError(given[0], "is for streams; add --stream")
    check_master(job.master)


def explain(
    query: ScriptArgument,
    table: TableOption = None,
    schema: SchemaOption = None,
    null: NullOption = None,
    debug: DebugOption = False,
) -> None:
    """Print the plan of each SELECT in a script."""
    tables = read_pairs(table, "--table")
    schemas = _read_schemas(schema, tables)
    with reporting(debug):
        from ids.model import is_remote
        from ids.plan import explain as lines_of
        from ids.source import Declared
        from ids.spark import is_kafka, may_be_table, steps_of

        script = _read_script(query)
        for place in tables.values():
            if (is_remote(place) and not is_kafka(place)) or may_be_table(place):
                raise SourceError(
                    f"{place} is reached through Spark; put EXPLAIN before the SELECT, and run it "
                    "with ids run"
                )
        for step in steps_of(script, tables, Declared.of(schemas, null or (), tables)):
            if step.plan is not None:
                print_lines(lines_of(step.plan), Console())


def _read_script(query: str) -> str:
    """The text of the script."""
    try:
        if query == "-":
            return sys.stdin.read()
        return Path(query).expanduser().read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"cannot read {query}: it is not UTF-8 text") from error
    except FileNotFoundError as error:
        raise SourceError(_missing(Path(query))) from error
    except OSError as error:
        raise SourceError(f"cannot read {query}: {error.strerror}") from error


def _missing(path: Path) -> str:
    near = None
    if path.parent.is_dir():
        near = closest(path.name, [entry.name for entry in path.parent.glob("*.sql")])
    return f"no such script: {path}" + (f"; {near}" if near else "")


def _read_schemas(options: Iterable[str] | None, tables: Collection[str]) -> dict[str, str]:
    """The declared columns, by table; the only table need not be named."""
    only = next(iter(tables)) if len(tables) == 1 else None
    named = [f"{only}={each}" if only and "=" not in each else each for each in options or ()]
    schemas = read_pairs(named, "--schema", "NAME=COLUMNS")
    for name in schemas:
        if name not in tables:
            raise OptionError("--schema", f"no --table is called {name!r}")
    return schemas
