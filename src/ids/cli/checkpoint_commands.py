"""``ids ask`` and ``ids status``: questions about a stream, answered from its checkpoint."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from ids.cli.arguments import (
    ConfOption,
    DebugOption,
    MasterOption,
    OptionError,
    SeedOption,
    check_master,
    option,
    read_conf,
    require_spark,
    session_for,
)
from ids.cli.terminal import emit_table, printable, reporting, spark_bar

if TYPE_CHECKING:
    import pyarrow as pa

    from ids.spark import Reply, Status

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_SIZES = ("bytes", "KB", "MB", "GB", "TB")


CheckpointArgument = Annotated[
    str,
    typer.Argument(metavar="CHECKPOINT", help="The checkpoint of a stream started with --retain."),
]
AggregateArgument = Annotated[
    str,
    typer.Argument(
        metavar="AGGREGATE", help="The aggregate to attribute: 'AVG(latency)', 'COUNT(*)'."
    ),
]
PredicateArgument = Annotated[
    str,
    typer.Argument(metavar="PREDICATE", help="Any condition on columns and registered predicates."),
]
SampleOption = Annotated[
    int | None,
    option("--sample", "ROWS", "Estimate from a sample of this many rows, with an error bound."),
]
ConfidenceOption = Annotated[
    float | None,
    option("--confidence", "P", "The confidence of the error bound. Default: 0.95."),
]


def ask(
    checkpoint: CheckpointArgument,
    aggregate: AggregateArgument,
    predicate: PredicateArgument,
    sample: SampleOption = None,
    confidence: ConfidenceOption = None,
    seed: SeedOption = None,
    format_: Annotated[
        str | None,
        option(
            "--format",
            "FORMAT",
            "table, csv, jsonl or parquet. Default: table on a terminal, csv in a pipe.",
        ),
    ] = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    debug: DebugOption = False,
) -> None:
    """Attribute an aggregate to any predicate, over the current window of a stream.

    The stream can be running or stopped. It must have been started with --retain.
    """
    check_master(master)
    settings = read_conf(conf)
    if sample is None and (confidence is not None or seed is not None):
        flag = "--seed" if confidence is None else "--confidence"
        raise OptionError(flag, "only available for samples; add --sample ROWS")
    with reporting(debug):
        require_spark()
        from ids import spark
        from ids.cli.script_run import on_stdout
        from ids.sink import write_stream

        to = on_stdout(format_)
        bound = 0.95 if confidence is None else confidence
        question = spark.StreamQuestion(aggregate, predicate, sample, bound, seed or 0)
        spark.check(checkpoint, question)
        session = session_for(master, settings, debug)
        with spark.translated(), spark_bar(session):
            answer = _answer_table(spark.replied(checkpoint, question, session))
        if to is None:
            console = Console()
            console.print(emit_table(answer, console.width))
        else:
            write_stream(answer, sys.stdout.buffer, to.format)


def _answer_table(reply: Reply) -> pa.Table:
    """Return one row per key: the answer, then the window and the mechanism."""
    import pyarrow as pa

    behind = len(reply.keys) + 2  # the keys, emit_at, n
    *keys, _, n = reply.table.columns[:behind]
    answer, parts = reply.table.columns[behind:], reply.table.column_names[behind:]
    end = pa.array([reply.window_end] * len(n), pa.timestamp("us", "UTC"))
    mechanism = pa.array([reply.mechanism] * len(n), pa.string())
    names = [*reply.keys, *parts, "n", "window_end", "mechanism"]
    return pa.table([*keys, *answer, n, end, mechanism], names=names)


def status(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="The checkpoint of a stream.")
    ],
    as_json: Annotated[
        bool,
        option("--json", "", "Print one JSON object instead of text."),
    ] = False,
    master: MasterOption = None,
    conf: ConfOption = None,
    debug: DebugOption = False,
) -> None:
    """Show the progress of a stream, running or stopped: rows, watermark, state, last batch.

    Spark is started only if the checkpoint is on a file system that requires it.
    """
    check_master(master)
    settings = read_conf(conf)
    with reporting(debug):
        found = _status(checkpoint, master, settings, debug)
        if as_json:
            typer.echo(json.dumps(found.facts()))
        else:
            _print(found, Console())


def _status(checkpoint: str, master: str | None, settings: dict[str, str], debug: bool) -> Status:
    from ids.model import is_remote
    from ids.spark import needs_session, status

    if not is_remote(checkpoint) or not (master or settings or needs_session(checkpoint)):
        return status(checkpoint)
    require_spark()
    return status(checkpoint, spark=session_for(master, settings, debug))


def _print(found: Status, console: Console) -> None:
    lines = _lines(found)
    width = max(len(name) for name, _ in lines) + 3
    for name, text in lines:
        named = (name.ljust(width), "cyan")
        console.print(Text.assemble(named, printable(text)), soft_wrap=True)


def _lines(found: Status) -> list[tuple[str, str]]:
    """Return the lines to print, each as a name and a text."""
    lines = [("stream", f"{found.table}, {found.window}"), ("output", found.output)]
    if found.batch is None or found.idle is None:
        return [*lines, ("last batch", "none yet")]
    for number, (name, asks) in enumerate(found.items.items()):
        lines.append(("" if number else "items", f"{name} = {asks}"))
    totals = found.totals
    rows = f"{totals.rows:,}: {totals.late:,} late, {totals.ahead:,} ahead, {totals.bad:,} bad"
    lines += [("rows", rows), ("emits", f"{totals.emits:,}")]
    if found.watermark is not None and found.lag is not None:
        where = _relative(found.lag, "behind the clock", "ahead of the clock")
        lines.append(("watermark", f"{found.watermark:%Y-%m-%d %H:%M:%S}, {where}"))
    if found.waiting:
        lines.append(("waiting", "1 row far ahead of the others"))
    took = f"{found.rows:,} rows in {found.seconds:,.1f} s, {found.rows_per_second:,.0f} rows/s"
    ago = _relative(found.idle, "ago", "from now")
    files = f"{found.state_files:,} " + ("file" if found.state_files == 1 else "files")
    return [
        *lines,
        ("last batch", f"number {found.batch:,}, {ago}: {took}"),
        ("state", f"{found.state_rows:,} rows, {_size(found.state_bytes)} in {files}"),
        ("written by", f"IDS {found.written_by}, format {found.format}"),
    ]


def _relative(span: timedelta, after: str, before: str) -> str:
    """Format a time span in its largest unit; ``after`` follows it, or ``before`` if negative.

    >>> _relative(timedelta(minutes=90), "ago", "from now"), _relative(-timedelta(days=2), "a", "b")
    ('1 hour ago', '2 days b')
    """
    seconds = int(abs(span.total_seconds()))
    unit, size = next(((u, s) for u, s in _UNITS if seconds >= s), _UNITS[-1])
    count = seconds // size
    way = after if span >= timedelta(0) else before
    return f"{count:,} {unit}{'' if count == 1 else 's'} {way}"


def _size(count: int) -> str:
    """Format a number of bytes.

    >>> _size(900), _size(123_456)
    ('900 bytes', '120.6 KB')
    """
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_SIZES) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count:,} bytes" if unit == 0 else f"{size:,.1f} {_SIZES[unit]}"
