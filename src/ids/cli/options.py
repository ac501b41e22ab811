"""The options of ``ids run``: where its result goes, and how a stream behaves."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "CheckpointOption",
    "EngineOption",
    "FormatOption",
    "LatenessOption",
    "MaxAheadOption",
    "OnceOption",
    "OutputOption",
    "RetainOption",
    "SeedOption",
    "StreamOption",
    "TriggerOption",
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
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="table, csv, jsonl or parquet, where the name of OUT does not say it: for -, pipes "
        "and directories. By default a table on a terminal, CSV in a pipe, Parquet in a directory.",
    ),
]
EngineOption = Annotated[
    str, typer.Option("--engine", help="What runs the script: spark, or local in this process.")
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="NUMBER",
        help="Which rows APPROXIMATE samples: the same number, the same rows. 0 by default.",
    ),
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
OnceOption = Annotated[
    bool,
    typer.Option("--available-now", "--once", help="With --stream: take what is there, then stop."),
]
RetainOption = Annotated[
    bool,
    typer.Option(
        "--retain",
        help="With --stream: keep the rows inside the window in the checkpoint, for ids ask.",
    ),
]
