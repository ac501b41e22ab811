"""``ids ask``: what any predicate accounts for in the window of a stream, running or not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import pyarrow as pa
import typer
from rich.console import Console

from ids.cli.arguments import (
    ConfOption,
    DebugOption,
    MasterOption,
    OptionError,
    check_master,
    read_pairs,
)
from ids.cli.delivery import on_stdout
from ids.cli.on_spark import Job, session_for, spark_bar, starting
from ids.cli.options import FormatOption, SeedOption
from ids.cli.reporting import reporting
from ids.cli.terminal import emit_table
from ids.sink.writing import write_stream

if TYPE_CHECKING:
    from ids.spark.streaming.retained.asking import Reply
    from ids.spark.streaming.retained.question import StreamQuestion

__all__ = ["ask"]


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
    to = on_stdout(format_)
    with reporting(debug):
        from ids.spark.streaming.retained.question import StreamQuestion

        bound = 0.95 if confidence is None else confidence
        question = StreamQuestion(aggregate, predicate, approximate, bound, seed or 0)
        shown = _shown(_replied(checkpoint, question, job))
        if to is None:
            console = Console()
            console.print(emit_table(shown, console.width, last=None))
        else:
            write_stream(shown, sys.stdout.buffer, to.format)


def _replied(checkpoint: str, question: StreamQuestion, job: Job) -> Reply:
    from ids.spark.streaming.retained.question import check

    check(checkpoint, question)
    with starting():
        session = session_for(job)
    from ids.spark.failures import translated
    from ids.spark.streaming.retained.asking import replied

    with translated(), spark_bar(session):
        return replied(checkpoint, question, session)


def _shown(reply: Reply) -> pa.Table:
    """A row a key: the answer, then what it is an answer for."""
    behind = len(reply.keys) + 2  # the keys, emit_at, n
    *keys, _, n = reply.table.columns[:behind]
    answer, parts = reply.table.columns[behind:], reply.table.column_names[behind:]
    end = pa.array([reply.window_end] * len(n), pa.timestamp("us", "UTC"))
    mechanism = pa.array([reply.mechanism] * len(n), pa.string())
    names = [*reply.keys, *parts, "n", "window_end", "mechanism"]
    return pa.table([*keys, *answer, n, end, mechanism], names=names)
