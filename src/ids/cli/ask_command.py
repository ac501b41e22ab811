"""``ids ask``: what any predicate accounts for in the window of a stream, running or not."""

from __future__ import annotations

import sys
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
    check_master,
    read_pairs,
)
from ids.cli.terminal import Bar, emit_table, reporting

if TYPE_CHECKING:
    import pyarrow as pa

    from ids.spark import Reply, StreamQuestion


def ask(
    checkpoint: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT", help="The --checkpoint of a stream that runs with --retain."
        ),
    ],
    aggregate: Annotated[
        str, typer.Argument(metavar="AGGREGATE", help="Of what: 'AVG(latency)', 'COUNT(*)'.")
    ],
    predicate: Annotated[
        str,
        typer.Argument(
            metavar="PREDICATE",
            help="By which rows: any condition over columns and registered predicates.",
        ),
    ],
    approximate: Annotated[
        int | None,
        typer.Option(
            "--approximate",
            metavar="ROWS",
            help="Estimate from a sample of so many rows, with a bound of the error.",
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option("--confidence", metavar="P", help="Of that bound; 0.95 by default."),
    ] = None,
    seed: SeedOption = None,
    format_: FormatOption = None,
    master: MasterOption = None,
    conf: ConfOption = None,
    debug: DebugOption = False,
) -> None:
    """Ask what a predicate accounts for in the window of a stream's last emits."""
    check_master(master)
    job = Job(tables={}, conf=read_pairs(conf, "--conf", "KEY=VALUE"), master=master, debug=debug)
    if approximate is None and (confidence is not None or seed is not None):
        flag = "--seed" if confidence is None else "--confidence"
        raise OptionError(flag, "is for samples; add --approximate ROWS")
    with reporting(debug):
        from ids.cli.delivery import on_stdout
        from ids.sink import write_stream
        from ids.spark import StreamQuestion

        to = on_stdout(format_)
        bound = 0.95 if confidence is None else confidence
        question = StreamQuestion(aggregate, predicate, approximate, bound, seed or 0)
        shown = _shown(_replied(checkpoint, question, job))
        if to is None:
            console = Console()
            console.print(emit_table(shown, console.width))
        else:
            write_stream(shown, sys.stdout.buffer, to.format)


def _replied(checkpoint: str, question: StreamQuestion, job: Job) -> Reply:
    from ids import spark
    from ids.cli.on_spark import session_for, spark_bar

    spark.check(checkpoint, question)
    with Bar():
        session = session_for(job)
    with spark.translated(), spark_bar(session):
        return spark.replied(checkpoint, question, session)


def _shown(reply: Reply) -> pa.Table:
    """A row a key: the answer, then what it is an answer for."""
    import pyarrow as pa

    behind = len(reply.keys) + 2  # the keys, emit_at, n
    *keys, _, n = reply.table.columns[:behind]
    answer, parts = reply.table.columns[behind:], reply.table.column_names[behind:]
    end = pa.array([reply.window_end] * len(n), pa.timestamp("us", "UTC"))
    mechanism = pa.array([reply.mechanism] * len(n), pa.string())
    names = [*reply.keys, *parts, "n", "window_end", "mechanism"]
    return pa.table([*keys, *answer, n, end, mechanism], names=names)
