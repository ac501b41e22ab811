"""``ids run`` runs a script over tables, ``ids explain`` prints the plans of its SELECTs."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ids.cli.arguments import (
    ConfOption,
    DebugOption,
    MasterOption,
    OptionError,
    SeedOption,
    check_master,
    option,
    read_conf,
    read_pairs,
    require_spark,
)
from ids.cli.terminal import print_lines, reporting
from ids.errors import SourceError, closest

INPUT, OUTPUT, STREAMS = "Input", "Output", "Streams"  # panels of --help

ScriptArgument = Annotated[
    str, typer.Argument(metavar="QUERY.sql", help="The script file, or - for standard input.")
]
TableOption = Annotated[
    list[str] | None,
    option(
        "--table",
        "NAME=PATH",
        "A table of the script: a .parquet, .csv or .jsonl file, a directory of such files, a URI "
        "that Spark can read (s3a://BUCKET/IN), a Spark catalog table (DB.NAME), or "
        "kafka://HOST:PORT/TOPIC. Can be repeated.",
        INPUT,
    ),
]
SchemaOption = Annotated[
    list[str] | None,
    option(
        "--schema",
        "[NAME=]COLUMNS",
        "Column types, such as 'event_time EPOCH_MILLIS, latency DOUBLE'. With several tables: "
        "events='event_time TIMESTAMP'. A Kafka topic requires all its columns.",
        INPUT,
    ),
]
NullOption = Annotated[
    list[str] | None,
    option(
        "--null",
        "TEXT",
        "A text that means NULL in CSV and JSON Lines files, such as NA. Can be repeated.",
        INPUT,
    ),
]
BadRowsOption = Annotated[
    str | None,
    option(
        "--bad-rows",
        "DIR",
        "Write invalid rows to this directory and continue, instead of stopping.",
        INPUT,
    ),
]
OutputOption = Annotated[
    str | None,
    option(
        "--output",
        "OUT",
        "Where the results go: a .parquet, .csv or .jsonl file, a directory (ending in /), a URI "
        "that Spark can write (s3a://BUCKET/OUT/), kafka://HOST:PORT/TOPIC, a pipe, or - for "
        "standard output (the default). A script with several SELECTs requires a directory.",
        OUTPUT,
    ),
]
FormatOption = Annotated[
    str | None,
    option(
        "--format",
        "FORMAT",
        "table, csv, jsonl or parquet, if the output name has no extension. Default: table on a "
        "terminal, csv in a pipe, parquet in a directory.",
        OUTPUT,
    ),
]
EngineOption = Annotated[
    str, option("--engine", "ENGINE", "spark, or local to run the script in this process.")
]
StreamOption = Annotated[
    bool, option("--stream", "", "Process rows as they arrive, until interrupted.", STREAMS)
]
CheckpointOption = Annotated[
    str | None,
    option(
        "--checkpoint",
        "DIR",
        "Where the stream saves its state, so that it can resume. Required with --stream.",
        STREAMS,
    ),
]
LatenessOption = Annotated[
    str | None,
    option(
        "--lateness",
        "DURATION",
        "How late a row may be, such as '10 seconds' or 10s. Later rows are dropped and counted. "
        "Default: 0.",
        STREAMS,
    ),
]
MaxAheadOption = Annotated[
    str | None,
    option(
        "--max-ahead",
        "DURATION",
        "How far a row's time may be ahead of the other rows. Rows further ahead are set aside "
        "and counted. Default: 1 day; none for no limit.",
        STREAMS,
    ),
]
TriggerOption = Annotated[
    str | None,
    option("--trigger", "DURATION", "The time between micro-batches. Default: no pause.", STREAMS),
]
AvailableNowOption = Annotated[
    bool,
    option("--available-now", "", "Process the rows that are available now, then stop.", STREAMS),
]
RetainOption = Annotated[
    bool,
    option("--retain", "", "Keep the rows of the window in the checkpoint, for ids ask.", STREAMS),
]


def run(
    query: ScriptArgument,
    table: TableOption = None,
    schema: SchemaOption = None,
    null: NullOption = None,
    bad_rows: BadRowsOption = None,
    output: OutputOption = None,
    format_: FormatOption = None,
    engine: EngineOption = "spark",
    seed: SeedOption = None,
    debug: DebugOption = False,
    master: MasterOption = None,
    conf: ConfOption = None,
    stream: StreamOption = False,
    checkpoint: CheckpointOption = None,
    lateness: LatenessOption = None,
    max_ahead: MaxAheadOption = None,
    trigger: TriggerOption = None,
    available_now: AvailableNowOption = False,
    retain: RetainOption = False,
) -> None:
    """Run a script over tables, on Spark or in this process.

    Example: ids run query.sql --table events=events.parquet --engine local
    """
    if engine not in ("spark", "local"):
        raise OptionError("--engine", f"unknown engine {engine!r}; use spark or local")
    tables, settings = read_pairs(table, "--table"), read_conf(conf)
    schemas = _read_schemas(schema, tables)
    streaming: dict[str, Any] = {
        "checkpoint": checkpoint, "lateness": lateness, "max_ahead": max_ahead,
        "trigger": trigger, "available_now": available_now, "retain": retain,
    }  # fmt: skip
    _reject_unused(engine, {"stream": stream, **streaming}, {"master": master, "conf": settings})
    check_master(master)
    with reporting(debug):
        if engine == "spark":
            require_spark("" if stream else ", or use --engine local")
        script = _read_script(query)
        # imported here because --help and invalid options should not wait for pyarrow and Numba
        from ids.cli.script_run import Job, StreamOptions, run_batch, run_local, run_stream
        from ids.sink import check_directory

        if bad_rows is not None:
            check_directory(bad_rows)
        job = Job(
            script, tables, schemas, tuple(null or ()), output, format_, bad_rows, seed or 0,
            master, settings, debug,
        )  # fmt: skip
        if stream:
            run_stream(job, StreamOptions(**streaming))
        elif engine == "spark":
            run_batch(job)
        else:
            run_local(job)


def _reject_unused(
    engine: str, streaming: Mapping[str, object], of_spark: Mapping[str, object]
) -> None:
    """Reject options that would have no effect."""
    for name, value in {**streaming, **of_spark}.items():
        flag = f"--{name.replace('_', '-')}"
        if value and engine == "local":
            raise OptionError(flag, "only available on Spark; remove --engine local")
        if value and name in streaming and not streaming["stream"]:
            raise OptionError(flag, "only available for streams; add --stream")


def explain(
    query: ScriptArgument,
    table: TableOption = None,
    schema: SchemaOption = None,
    null: NullOption = None,
    debug: DebugOption = False,
) -> None:
    """Print the plan of each SELECT in a script, without running it."""
    tables = read_pairs(table, "--table")
    schemas = _read_schemas(schema, tables)
    with reporting(debug):
        from ids.model import is_remote
        from ids.plan import explain as explain_plan
        from ids.source import Declared
        from ids.spark import is_kafka, may_be_table, steps_of

        script = _read_script(query)
        for place in tables.values():
            if (is_remote(place) and not is_kafka(place)) or may_be_table(place):
                raise SourceError(
                    f"{place} can be read only by Spark; put EXPLAIN before the SELECT and use "
                    "ids run"
                )
        for step in steps_of(script, tables, Declared.of(schemas, null or (), tables)):
            if step.plan is not None:
                print_lines(explain_plan(step.plan), Console())


def _read_script(query: str) -> str:
    try:
        if query == "-":
            return sys.stdin.read()
        return Path(query).expanduser().read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"cannot read {query}: it is not UTF-8 text") from error
    except FileNotFoundError as error:
        path, near = Path(query), None
        if path.parent.is_dir():
            near = closest(path.name, [entry.name for entry in path.parent.glob("*.sql")])
        raise SourceError(f"no such script: {path}" + (f"; {near}" if near else "")) from error
    except OSError as error:
        raise SourceError(f"cannot read {query}: {error.strerror}") from error


def _read_schemas(options: Iterable[str] | None, tables: Collection[str]) -> dict[str, str]:
    """Return the declared columns by table; the table's name is optional if there is only one."""
    only = next(iter(tables)) if len(tables) == 1 else None
    named = [f"{only}={each}" if only and "=" not in each else each for each in options or ()]
    schemas = read_pairs(named, "--schema", "NAME=COLUMNS")
    for name in schemas:
        if name not in tables:
            raise OptionError("--schema", f"there is no --table named {name!r}")
    return schemas
