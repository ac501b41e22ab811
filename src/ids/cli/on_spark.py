"""Scripts on Spark from the command line: a batch to its end, or a stream until it is stopped."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import copyfileobj
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.console import Console

from ids.cli.arguments import OptionError
from ids.cli.following import Screen, follow
from ids.cli.reporting import note
from ids.cli.terminal import Bar, emit_table, is_terminal, print_lines
from ids.errors import ScriptError
from ids.model.query import Select
from ids.model.window import microseconds

if TYPE_CHECKING:
    from ids.spark.script import Result
    from ids.spark.streaming import Running

__all__ = ["Following", "Job", "run_batch", "run_stream", "session_for", "spark_bar", "starting"]

_SHOWN = 20

# pyspark is not for this room to import: its objects only pass through
Session = Any
Frame = Any


@dataclass(frozen=True, slots=True)
class Job:
    """What a run is given beside its script."""

    tables: dict[str, str]
    schemas: dict[str, str] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)
    master: str | None = None
    output: str | None = None
    bad_rows: Path | None = None
    seed: int = 0
    debug: bool = False


@dataclass(frozen=True, slots=True)
class Following:
    """What only a stream is given."""

    checkpoint: Path | None
    lateness: str | None
    max_ahead: str | None
    trigger: str | None
    once: bool
    retain: bool

    @property
    def cap(self) -> str | None:
        """By how much a row may be ahead of the others; None: by any."""
        return None if str(self.max_ahead).lower() == "none" else self.max_ahead

    def checked(self) -> Path:
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


def run_batch(script: str, job: Job) -> None:
    """Run a script over finite tables; the last SELECT goes to the output."""
    from ids.spark.preflight import check_batch

    check_batch(script, job.tables, job.schemas)
    with starting():
        session = session_for(job)
    from ids.spark.failures import translated
    from ids.spark.script import run_script

    last: Result | None = None
    with translated(), spark_bar(session) as bar:
        tables = _frames(session, job, stream=False)
        found = run_script(script, tables, spark=session, bad_rows=job.bad_rows, seed=job.seed)
        for result in found:
            if result.bad_rows:
                rows = "row" if result.bad_rows == 1 else "rows"
                note(f"{result.bad_rows:,} bad {rows} set aside in {job.bad_rows}")
            if job.output is None and is_terminal():
                shown = _tail(result.table, isinstance(result.statement, Select))
                bar.clear()
                _show(*shown)
                bar.start()
            if last is None or isinstance(result.statement, Select):
                last = result
        if last is None:
            hint = "end it with a SELECT … EMIT CHANGES"
            raise ScriptError("the script asks for nothing", hint=hint)
        if job.output is not None or not is_terminal():
            _write(last, job.output)


@contextmanager
def starting() -> Iterator[None]:
    """Show that something is going on while Java starts."""
    bar = Bar(Console(stderr=True))
    try:
        bar.start()
        yield
    finally:
        bar.clear()


def _frames(session: Session, job: Job, *, stream: bool) -> dict[str, Any]:
    """The tables as streams, or as files with the schemas given for them."""
    from ids.spark.sources import read

    return {
        name: read(session, place, schema=job.schemas.get(name), stream=stream)
        if stream or name in job.schemas
        else place
        for name, place in job.tables.items()
    }


def _tail(table: Frame, emits: bool) -> tuple[pa.Table, int]:
    """The last rows of a result, and how many there are."""
    from ids.spark.sinks import arrow_schema

    if not emits:
        whole = table.toArrow()
        return whole, whole.num_rows
    kept = table.persist()
    try:
        rows = [row.asDict() for row in kept.tail(_SHOWN)]
        return pa.Table.from_pylist(rows, arrow_schema(table)), kept.count()
    finally:
        kept.unpersist()


def _show(table: pa.Table, total: int) -> None:
    console = Console()
    if table.column_names == ["plan"]:
        print_lines(table["plan"].to_pylist(), console)
        return
    console.print(emit_table(table, console.width, last=None))
    if total > table.num_rows:
        console.print(f"the last {table.num_rows} of {total:,} emits", style="dim")
    console.print()


def _write(result: Result, output: str | None) -> None:
    from ids.spark.sinks import write

    if output is None:
        with tempfile.TemporaryDirectory(prefix="ids-") as folder:
            file = Path(folder) / "emits.csv"
            write(result.table, file)
            with file.open("rb") as stream:
                copyfileobj(stream, sys.stdout.buffer)
        return
    written = write(result.table, output, result.keys)
    if sys.stderr.isatty():
        note(f"wrote {written:,} rows to {output}")


def run_stream(script: str, job: Job, following: Following) -> None:
    """Run a script as rows arrive; Ctrl-C stops it between two micro-batches, to be resumed."""
    from ids.spark.preflight import check_stream

    checkpoint = following.checked()
    check_stream(
        script,
        job.tables,
        job.schemas,
        checkpoint=checkpoint,
        output=job.output,
        retain=following.retain,
        seed=job.seed,
    )
    with starting():
        session = session_for(job)
    from ids.spark.failures import translated
    from ids.spark.streaming import MAX_AHEAD, start

    frames: dict[str, Any] = {}
    cap = following.cap if following.max_ahead else MAX_AHEAD

    def begin(screen: Screen) -> Running:
        return start(
            script,
            checkpoint=checkpoint,
            output=job.output or screen.show,
            lateness=following.lateness or "0 seconds",
            max_ahead=cap,
            trigger=following.trigger,
            once=following.once,
            bad_rows=job.bad_rows,
            retain=following.retain,
            seed=job.seed,
            spark=session,
            on_progress=screen.advance,
            **frames,
        )

    with translated():
        frames = _frames(session, job, stream=True)
        seen = job.output is None and is_terminal()
        screen = Screen(piped=job.output is None and not seen)
        follow(begin, screen, Console(stderr=not seen))
