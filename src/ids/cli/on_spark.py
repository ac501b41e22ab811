"""Scripts on Spark from the command line: a batch to its end, or a stream until it is stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.console import Console

from ids.cli.arguments import OptionError
from ids.cli.delivery import Delivery, deliver, lines_of, printed
from ids.cli.following import Screen, follow
from ids.cli.reporting import note
from ids.cli.terminal import Bar, emit_table, print_lines
from ids.errors import ScriptError
from ids.model.place import is_remote, local_path
from ids.model.query import Select
from ids.model.window import microseconds
from ids.sink.target import Target
from ids.source import Declared
from ids.source.folder import find_files, has_files

if TYPE_CHECKING:
    from ids.spark.script import Result
    from ids.spark.streaming import Running

__all__ = ["Following", "Job", "run_batch", "run_stream", "session_for", "spark_bar", "starting"]

# pyspark is not for this room to import: its objects only pass through
Session = Any
Frame = Any

_SMALL = 16 << 20  # bytes of files that one process answers sooner than Java starts


@dataclass(frozen=True, slots=True)
class Job:
    """What a run is given beside its script."""

    tables: dict[str, str]
    schemas: dict[str, str] = field(default_factory=dict)
    nulls: tuple[str, ...] = ()
    conf: dict[str, str] = field(default_factory=dict)
    master: str | None = None
    output: str | None = None
    bad_rows: str | None = None
    seed: int = 0
    debug: bool = False


@dataclass(frozen=True, slots=True)
class Following:
    """What only a stream is given."""

    checkpoint: str | None
    lateness: str | None
    max_ahead: str | None
    trigger: str | None
    once: bool
    retain: bool

    def flags(self) -> dict[str, object]:
        """The options by their names on the command line."""
        return {f"--{name.replace('_', '-')}": value for name, value in asdict(self).items()}

    @property
    def cap(self) -> str | None:
        """By how much a row may be ahead of the others; None: by any."""
        return None if str(self.max_ahead).lower() == "none" else self.max_ahead

    def checked(self) -> str:
        """The checkpoint, once every option is known to be right."""
        from ids.spark.limits import ahead_cap

        if self.checkpoint is None:
            raise OptionError("--checkpoint", "a stream needs one, to remember how far it came")
        for flag, read, text in (
            ("--lateness", microseconds, self.lateness),
            ("--trigger", microseconds, self.trigger),
            ("--max-ahead", ahead_cap, self.cap),
        ):
            try:
                if text is not None:
                    read(text)
            except ScriptError as error:
                raise OptionError(flag, str(error)) from error
        return self.checkpoint


def session_for(job: Job) -> Session:
    """A quiet session of our own, with the packages the tables and the output need."""
    from ids.spark.session import local_session
    from ids.spark.sources import packages_for

    places = [*job.tables.values(), *([job.output] if job.output else [])]
    level = {"log_level": "WARN"} if job.debug else {}
    return local_session(job.master, packages=packages_for(places), **level, **job.conf)


@contextmanager
def spark_bar(session: Session) -> Iterator[Bar]:
    """A bar of the session's tasks on stderr, while inside."""
    from ids.spark.watching import watching

    bar = Bar(Console(stderr=True))
    try:
        bar.start()
        with watching(session, bar):
            yield bar
    finally:
        bar.clear()


def run_batch(script: str, job: Job, to: Delivery) -> None:
    """Run a script over finite tables."""
    from ids.spark.preflight import check_batch

    check_batch(script, job.tables, Declared.of(job.schemas, job.nulls, job.tables))
    _hint_at_local(job)
    with starting():
        session = session_for(job)
    from ids.spark.failures import translated
    from ids.spark.script import run_script
    from ids.spark.sinks import write as write_topic

    with translated(), spark_bar(session) as bar:
        found = run_script(
            script,
            job.tables,
            spark=session,
            bad_rows=job.bad_rows,
            seed=job.seed,
            schema=job.schemas,
            null=job.nulls,
        )

        def show(result: Result, console: Console) -> None:
            shown = _tail(result.table, to.last if isinstance(result.statement, Select) else None)
            bar.clear()
            _show(*shown, console)
            bar.start()

        results = _noted(found, job)
        if to.topic is None:
            deliver(results, to, show, partial(_writing, session))
            return
        (only,) = [r for r in results if isinstance(r.statement, Select)]
        write_topic(only.table, to.topic, only.keys)


@contextmanager
def _writing(
    session: Session, places: Sequence[Target]
) -> Iterator[Callable[[Result, Target], int]]:
    from ids.spark.sinks import write_stream, writing

    if places[0].device:

        def write(result: Result, place: Target) -> int:
            with printed(place) as stream:
                return write_stream(result.table, stream, place)

        yield write
        return
    with writing(places, session) as put:
        yield lambda result, place: put(result.table, place)


def _noted(results: Iterable[Result], job: Job) -> Iterator[Result]:
    """The results, with a note of the bad rows of each."""
    for result in results:
        if result.bad_rows:
            rows = "row" if result.bad_rows == 1 else "rows"
            note(f"{result.bad_rows:,} bad {rows} set aside in {job.bad_rows}")
        yield result


def _hint_at_local(job: Job) -> None:
    """Tell who runs a few files on a Spark of our own that they need none."""
    from ids.spark.location import may_be_table

    places = job.tables.values()
    ours = job.master is None and not job.conf
    far = any(is_remote(place) or may_be_table(place) for place in places)
    if not ours or far or not sys.stderr.isatty():
        return
    files = [file for place in places for file in find_files(local_path(place))[1]]
    size = sum(file.stat().st_size for file in files)
    if files and size <= _SMALL:
        told = "1 KB" if size < 2048 else f"{size / 1024:,.0f} KB"
        note(f"{told} of data need no Spark: --engine local takes about a second")


@contextmanager
def starting() -> Iterator[None]:
    """Show that something is going on while Java starts."""
    bar = Bar(Console(stderr=True))
    try:
        bar.start()
        yield
    finally:
        bar.clear()


def _tail(table: Frame, last: int | None) -> tuple[pa.Table, int]:
    """The last rows of a result, and how many there are."""
    from ids.spark.sinks import arrow_schema

    if last is None:
        whole = table.toArrow()
        return whole, whole.num_rows
    kept = table.persist()
    try:
        rows = [row.asDict() for row in kept.tail(last)]
        return pa.Table.from_pylist(rows, arrow_schema(table)), kept.count()
    finally:
        kept.unpersist()


def _show(table: pa.Table, total: int, console: Console) -> None:
    if table.column_names == ["plan"]:
        print_lines(table["plan"].to_pylist(), console)
        return
    console.print(emit_table(table, console.width, last=None))
    if total > table.num_rows:
        console.print(f"the last {table.num_rows} of {total:,} emits", style="dim")
    console.print()


def run_stream(script: str, job: Job, following: Following, format_: str | None) -> None:
    """Run a script as rows arrive; Ctrl-C stops it between two micro-batches, to be resumed."""
    from ids.spark.preflight import check_stream

    checkpoint, lines = following.checked(), lines_of(job.output, format_)
    files = None if lines is not None or job.output == "-" else job.output
    check_stream(
        script,
        job.tables,
        Declared.of(job.schemas, job.nulls, job.tables),
        checkpoint=checkpoint,
        output=files,
        retain=following.retain,
        seed=job.seed,
    )
    with starting():
        session = session_for(job)
    from ids.spark.failures import translated
    from ids.spark.streaming import MAX_AHEAD, start

    cap = following.cap if following.max_ahead else MAX_AHEAD

    def begin(screen: Screen) -> Running:
        return start(
            script,
            checkpoint=checkpoint,
            output=files or screen.show,
            lateness=following.lateness or "0 seconds",
            max_ahead=cap,
            trigger=following.trigger,
            available_now=following.once,
            once=False,
            bad_rows=job.bad_rows,
            retain=following.retain,
            seed=job.seed,
            spark=session,
            on_progress=screen.advance,
            schema=job.schemas,
            null=job.nulls,
            **job.tables,
        )

    _note_waiting(job, following, session)
    with translated():
        live = Console(stderr=files is not None or lines is not None)
        if lines is None:
            follow(begin, Screen(), live)
            return
        with printed(lines) as stream:
            follow(begin, Screen(stream, lines.format), live)


def _note_waiting(job: Job, following: Following, session: Session) -> None:
    """Say that a stream waits for the first file of a directory."""
    from ids.spark.files import path_at
    from ids.spark.location import may_be_table

    for name, place in job.tables.items():
        if following.once or place.startswith("kafka://") or may_be_table(place):
            continue
        if not has_files(path_at(place, session), declared=name in job.schemas):
            note(f"waiting for the first file in {place}")
