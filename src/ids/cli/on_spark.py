"""Scripts on Spark from the command line: a batch to its end, or a stream until it is stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.console import Console

from ids import spark  # whose names are imported on first use: mistakes are told before Java starts
from ids.cli.arguments import Job, StreamOptions
from ids.cli.delivery import Delivery, deliver, lines_of, noted, printed
from ids.cli.terminal import Bar, Screen, follow, note, show_result
from ids.model import Select, is_remote, local_path
from ids.sink import Target
from ids.source import Declared, find_files, has_files

if TYPE_CHECKING:
    from ids.spark import Result, Stream

# Only ids.spark imports pyspark: its objects pass through here.
Session = Any
Frame = Any

_SMALL = 16 << 20  # bytes of files that one process answers sooner than Java starts


def session_for(job: Job) -> Session:
    """A quiet session of our own, with the packages the tables and the output need."""
    places = [*job.tables.values(), *([job.output] if job.output else [])]
    level = {"log_level": "WARN"} if job.debug else {}
    packages = spark.packages_for(places)
    return spark.local_session(job.master, packages=packages, **level, **job.conf)


@contextmanager
def spark_bar(session: Session) -> Iterator[Bar]:
    """A bar of the session's tasks on stderr, while inside."""
    with Bar() as bar, spark.watching(session, bar):
        yield bar


def run_batch(script: str, job: Job, to: Delivery) -> None:
    """Run a script over finite tables."""
    spark.check_batch(script, job.tables, Declared.of(job.schemas, job.nulls, job.tables))
    _hint_at_local(job)
    with Bar():
        session = session_for(job)
    with spark.translated(), spark_bar(session) as bar:
        found = spark.run_script(
            script,
            job.tables,
            spark=session,
            bad_rows=job.bad_rows,
            seed=job.seed,
            schema=job.schemas,
            null=job.nulls,
        )

        def show(result: Result, console: Console) -> None:
            last = to.last if isinstance(result.statement, Select) else None
            table, total = _tail(result.table, last)
            bar.clear()
            show_result(table, console, total=total)
            bar.start()

        results = noted(found, job.bad_rows)
        if to.topic is None:
            deliver(results, to, show, partial(_writer, session))
            return
        (only,) = [r for r in results if isinstance(r.statement, Select)]
        spark.write(only.table, to.topic, only.keys)


@contextmanager
def _writer(
    session: Session, places: Sequence[Target]
) -> Iterator[Callable[[Result, Target], int]]:
    def write(result: Result, place: Target) -> int:
        with printed(place) as stream:
            return spark.write_stream(result.table, stream, place)

    if places[0].device:
        yield write
        return
    with spark.writing(places, session) as put:
        yield lambda result, place: put(result.table, place)


def _hint_at_local(job: Job) -> None:
    """Tell who runs a few files on a Spark of our own that they need none."""
    places = job.tables.values()
    ours = job.master is None and not job.conf
    far = any(is_remote(place) or spark.may_be_table(place) for place in places)
    if not ours or far or not sys.stderr.isatty():
        return
    files = [file for place in places for file in find_files(local_path(place))[1]]
    size = sum(file.stat().st_size for file in files)
    if files and size <= _SMALL:
        told = "1 KB" if size < 2048 else f"{size / 1024:,.0f} KB"
        note(f"{told} of data need no Spark: --engine local takes about a second")


def _tail(table: Frame, last: int | None) -> tuple[pa.Table, int]:
    """The last rows of a result, and how many there are."""
    if last is None:
        whole = table.toArrow()
        return whole, whole.num_rows
    kept = table.persist()
    try:
        rows = [row.asDict() for row in kept.tail(last)]
        return pa.Table.from_pylist(rows, spark.arrow_schema(table)), kept.count()
    finally:
        kept.unpersist()


def run_stream(script: str, job: Job, options: StreamOptions, format_: str | None) -> None:
    """Run a script as rows arrive; Ctrl-C stops it between two micro-batches, to be resumed."""
    checkpoint, lines = options.checked(), lines_of(job.output, format_)
    files = None if lines is not None or job.output == "-" else job.output
    spark.check_stream(
        script,
        job.tables,
        Declared.of(job.schemas, job.nulls, job.tables),
        checkpoint=checkpoint,
        output=files,
        retain=options.retain,
        seed=job.seed,
    )
    with Bar():
        session = session_for(job)

    def begin(screen: Screen) -> Stream:
        return spark.start(
            script,
            checkpoint=checkpoint,
            output=files or screen.show,
            lateness=options.lateness or "0 seconds",
            max_ahead=options.cap if options.max_ahead else spark.MAX_AHEAD,
            trigger=options.trigger,
            available_now=options.available_now,
            bad_rows=job.bad_rows,
            retain=options.retain,
            seed=job.seed,
            spark=session,
            on_progress=screen.advance,
            schema=job.schemas,
            null=job.nulls,
            **job.tables,
        )

    if not options.available_now:
        _note_waiting(job, session)
    with spark.translated():
        live = Console(stderr=files is not None or lines is not None)
        if lines is None:
            follow(begin, Screen(), live)
            return
        with printed(lines) as stream:
            follow(begin, Screen(stream, lines.format), live)


def _note_waiting(job: Job, session: Session) -> None:
    """Say that a stream waits for the first file of a directory."""
    for name, place in job.tables.items():
        if place.startswith("kafka://") or spark.may_be_table(place):
            continue
        if not has_files(spark.path_at(place, session), declared=name in job.schemas):
            note(f"waiting for the first file in {place}")
