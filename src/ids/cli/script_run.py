"""Run a script for ``ids run``: in process, as a Spark batch, or as a stream; deliver the results.

``Delivery`` decides from ``--output`` and ``--format`` where each result goes. It is checked before
anything runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from io import TextIOWrapper
from typing import Any, BinaryIO

import pyarrow as pa
from rich.console import Console

from ids import spark  # its names are imported on first use, after the checks
from ids.cli.arguments import OptionError, session_for
from ids.cli.terminal import Bar, Screen, follow, is_terminal, note, show_result, spark_bar
from ids.errors import ArgumentError, ScriptError
from ids.model import Explain, Select, Show, Statement, is_remote, local_path, microseconds
from ids.plan import nothing_asked, statements_of
from ids.sink import (
    Format,
    Target,
    faults_named,
    is_device,
    is_directory,
    opened,
    opening,
    parts,
    resolve,
    write_stream,
)
from ids.source import Declared, find_files, has_files

STDOUT = "-"
TABLE = "table"

_SHOWN = 20  # emits of a SELECT that a terminal shows
_SMALL = 16 << 20  # bytes of input that one process answers before Java has started
_FORMATS = {format_.name.lower(): format_ for format_ in Format}


@dataclass(frozen=True, slots=True)
class Job:
    """The arguments of ``ids run`` that apply to batches and streams."""

    script: str
    tables: dict[str, str]
    schemas: dict[str, str] = field(default_factory=dict)
    nulls: tuple[str, ...] = ()
    output: str | None = None
    format_: str | None = None
    bad_rows: str | None = None
    seed: int = 0
    master: str | None = None
    conf: dict[str, str] = field(default_factory=dict)
    debug: bool = False

    def declared(self) -> Declared:
        """Return the columns and NULL texts that the command line declares."""
        return Declared.of(self.schemas, self.nulls, self.tables)

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments that every way to run the script takes."""
        read = {"schema": self.schemas, "null": self.nulls, "bad_rows": self.bad_rows}
        return {**read, "seed": self.seed}

    def session(self) -> Any:
        """Start the Spark session."""
        places = [*self.tables.values(), *([self.output] if self.output else [])]
        return session_for(self.master, self.conf, self.debug, places)


Result = Any  # of ids.query or of ids.spark
# Opens all targets and returns a function that writes one result. The files appear together when
# the block ends without an error.
Writer = Callable[[Sequence[Target]], AbstractContextManager[Callable[[Result, Target], int]]]


@dataclass(frozen=True, slots=True)
class Delivery:
    """Where the results of a script go. Results are numbered in the order of their statements.

    targets  the target of each result that is written
    topic    the Kafka topic for the only result
    shown    if there are no targets and no topic: where all results are shown as tables
    last     how many emits of a SELECT are shown; None shows all
    """

    targets: dict[int, Target] = field(default_factory=dict)
    topic: str | None = None
    shown: str = STDOUT
    last: int | None = None

    @classmethod
    def of(
        cls, output: str | None, format_: str | None, statements: Sequence[Statement]
    ) -> Delivery:
        """Interpret ``--output`` and ``--format`` for a script; raise OptionError if they conflict.

        If the script has no SELECT, the result of its last SHOW or EXPLAIN is written.
        """
        giving = [s for s in statements if isinstance(s, Select | Show | Explain)]
        if not giving:
            return cls()  # errors in its other statements are reported first
        selects = {number: s.table for number, s in enumerate(giving) if isinstance(s, Select)}
        wanted = list(selects) or [len(giving) - 1]
        place = output or STDOUT
        stdout = on_stdout(format_) if place == STDOUT else None
        if format_ == TABLE or (place == STDOUT and stdout is None):
            if place != STDOUT and not is_device(place):
                fact = "table is only available on standard output; use csv, jsonl or parquet"
                raise OptionError("--format", fact)
            return cls(shown=place, last=_SHOWN if is_terminal() else None)
        if len(wanted) > 1 and not is_directory(place):
            single, more = ("standard output", ", or --format table") if stdout else (place, "")
            raise OptionError(
                "--output",
                f"the script has {len(wanted)} SELECTs, and {single} can receive only one; use a "
                f"directory (out/), which gets a file for each{more}",
            )
        if place.startswith("kafka://"):
            _reject_format(format_, "a Kafka topic always receives JSON")
            return cls(topic=place)
        if len(wanted) > 1:
            targets = parts(place, _file_names(list(selects.values())), _format_named(format_))
            return cls(dict(zip(wanted, targets, strict=True)))
        return cls({wanted[0]: stdout or resolve(place, _format_named(format_))})


def on_stdout(format_: str | None) -> Target | None:
    """Return standard output as a target, or None if the result is shown as a table."""
    name = format_ or (TABLE if is_terminal() else "csv")
    chosen = None if name == TABLE else _format_named(name)
    if chosen is Format.PARQUET and is_terminal():
        fact = "cannot show Parquet on a terminal; use table, csv or jsonl, or redirect the output"
        raise OptionError("--format", fact)
    return None if chosen is None else Target(STDOUT, chosen, device=True)


def _line_target(output: str | None, format_: str | None) -> Target | None:
    """Return where a stream prints its emits as lines, or None for files and the live table."""
    place = output or STDOUT
    if place != STDOUT and not is_device(place):
        _reject_format(format_, "a stream takes it from the output's name (out.csv/, out.jsonl/)")
        return None
    if place == STDOUT:
        target = on_stdout(format_)
        if target is None and is_terminal():
            return None
    else:
        target = resolve(place, _format_named(format_))
    if target is None or target.format is Format.PARQUET:
        raise OptionError("--format", "a stream in a pipe must be csv or jsonl")
    return target


def _format_named(name: str | None) -> Format | None:
    if name is None or name in _FORMATS:
        return None if name is None else _FORMATS[name]
    raise OptionError("--format", f"unknown format {name!r}; use table, csv, jsonl or parquet")


def _reject_format(name: str | None, why: str) -> None:
    if name is not None:
        raise OptionError("--format", f"{why}; remove --format")


def _file_names(tables: Sequence[str]) -> list[str]:
    """Name the file of each SELECT by its number in the script and its table.

    >>> _file_names(["trips", "a/b"])
    ['1-trips', '2-a_b']
    """
    width = len(str(len(tables)))
    names = [re.sub(r"[^\w.-]", "_", table) for table in tables]
    return [f"{number:0{width}}-{name}" for number, name in enumerate(names, start=1)]


@contextmanager
def _device_stream(target: Target) -> Iterator[BinaryIO]:
    """Open a device, or standard output."""
    if target.place == STDOUT:
        yield sys.stdout.buffer
        return
    with faults_named(target.place), opened(target) as stream:
        yield stream


@contextmanager
def _console(shown: str) -> Iterator[Console]:
    if shown == STDOUT:
        yield Console()
        return
    with _device_stream(Target(shown, Format.CSV, device=True)) as stream:
        yield Console(file=TextIOWrapper(stream, encoding="utf-8", write_through=True))


def _deliver(
    results: Iterable[Result],
    to: Delivery,
    show: Callable[[Result, Console], None],
    writer: Writer,
) -> None:
    """Show each result as soon as it is ready, or write the results that have a target."""
    if not to.targets:
        nothing = True
        with _console(to.shown) as console:
            for result in results:
                show(result, console)
                nothing = False
        if nothing:
            raise nothing_asked()
        return
    with writer(list(to.targets.values())) as write:
        for number, result in enumerate(results):
            target = to.targets.get(number)
            if target is None:
                continue
            with faults_named(target.place):
                rows = write(result, target)
            if not target.device and sys.stderr.isatty():
                note(f"wrote {rows:,} rows to {target.place}")


def _note_bad_rows(results: Iterable[Result], directory: str | None) -> Iterator[Result]:
    """Yield the results; note on stderr how many bad rows of each are in ``directory``."""
    for result in results:
        if result.bad_rows:
            rows = "row" if result.bad_rows == 1 else "rows"
            note(f"{result.bad_rows:,} bad {rows} set aside in {directory}")
        yield result


def run_local(job: Job) -> None:
    """Run a script over finite tables in this process."""
    to = Delivery.of(job.output, job.format_, statements_of(job.script))
    if to.topic is not None:
        raise OptionError("--output", "writing to Kafka requires Spark; remove --engine local")

    def results() -> Iterator[Result]:
        with Bar() as bar:
            from ids.query import run_script  # compiles, so the bar is shown before

            for result in run_script(job.script, job.tables, progress=bar, **job.arguments()):
                bar.clear()
                yield result
                bar.start()

    def show(result: Result, console: Console) -> None:
        is_select = isinstance(result.statement, Select)
        show_result(result.table, console, to.last if is_select else None)

    @contextmanager
    def writer(targets: Sequence[Target]) -> Iterator[Callable[[Result, Target], int]]:
        def write(result: Result, target: Target) -> int:
            with (_device_stream if target.device else open_)(target) as stream:
                return write_stream(result.table, stream, target.format)

        with opening(targets) as open_:
            yield write

    _deliver(_note_bad_rows(results(), job.bad_rows), to, show, writer)


def run_batch(job: Job) -> None:
    """Run a script over finite tables on Spark."""
    to = Delivery.of(job.output, job.format_, statements_of(job.script))
    spark.check_batch(job.script, job.tables, job.declared())
    _suggest_local(job)
    session = job.session()
    with spark.translated(), spark_bar(session) as bar:
        found = spark.run_script(job.script, job.tables, spark=session, **job.arguments())

        def show(result: Result, console: Console) -> None:
            last = to.last if isinstance(result.statement, Select) else None
            table, total = _tail(result.table, last)
            bar.clear()
            show_result(table, console, total=total)
            bar.start()

        @contextmanager
        def writer(targets: Sequence[Target]) -> Iterator[Callable[[Result, Target], int]]:
            def write(result: Result, target: Target) -> int:
                with _device_stream(target) as stream:
                    return spark.write_stream(result.table, stream, target)

            if targets[0].device:
                yield write
                return
            with spark.writing(targets, session) as put:
                yield lambda result, target: put(result.table, target)

        results = _note_bad_rows(found, job.bad_rows)
        if to.topic is None:
            _deliver(results, to, show, writer)
            return
        (only,) = [r for r in results if isinstance(r.statement, Select)]
        spark.write(only.table, to.topic, only.keys)


def _suggest_local(job: Job) -> None:
    """Suggest ``--engine local`` on a terminal if the tables are a few small local files."""
    places = job.tables.values()
    remote = any(is_remote(place) or spark.may_be_table(place) for place in places)
    if job.master is not None or job.conf or remote or not sys.stderr.isatty():
        return
    files = [file for place in places for file in find_files(local_path(place))[1]]
    size = sum(file.stat().st_size for file in files)
    if files and size <= _SMALL:
        text = "1 KB" if size < 2048 else f"{size / 1024:,.0f} KB"
        note(f"{text} of data does not need Spark: --engine local takes about a second")


def _tail(table: Any, last: int | None) -> tuple[pa.Table, int]:
    """Return the last rows of a DataFrame, and its number of rows."""
    if last is None:
        whole = table.toArrow()
        return whole, whole.num_rows
    kept = table.persist()
    try:
        rows = [row.asDict() for row in kept.tail(last)]
        return pa.Table.from_pylist(rows, spark.arrow_schema(table)), kept.count()
    finally:
        kept.unpersist()


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The arguments of ``ids run`` that apply to streams only."""

    checkpoint: str | None
    lateness: str | None
    max_ahead: str | None
    trigger: str | None
    available_now: bool
    retain: bool

    @property
    def cap(self) -> str | None:
        """How far ahead of the others a row may be; None for no limit."""
        if self.max_ahead is None:
            return spark.MAX_AHEAD
        return None if self.max_ahead.lower() == "none" else self.max_ahead

    def check(self) -> str:
        """Reject invalid options and return the checkpoint."""
        if self.checkpoint is None:
            raise OptionError("--checkpoint", "a stream requires one; add --checkpoint DIR")
        for flag, read, text in (
            ("--lateness", microseconds, self.lateness),
            ("--trigger", microseconds, self.trigger),
            ("--max-ahead", spark.ahead_cap, None if self.max_ahead is None else self.cap),
        ):
            try:
                if text is not None:
                    read(text)
            except (ArgumentError, ScriptError) as error:
                raise OptionError(flag, str(error)) from error
        return self.checkpoint


def run_stream(job: Job, options: StreamOptions) -> None:
    """Run a script as rows arrive. Ctrl-C stops it between two micro-batches; it can be resumed."""
    checkpoint, lines = options.check(), _line_target(job.output, job.format_)
    files = None if lines is not None or job.output == STDOUT else job.output
    spark.check_stream(
        job.script,
        job.tables,
        job.declared(),
        checkpoint=checkpoint,
        output=files,
        retain=options.retain,
        seed=job.seed,
    )
    session = job.session()

    def begin(screen: Screen) -> spark.Stream:
        return spark.start(
            job.script,
            checkpoint=checkpoint,
            output=files or screen.show,
            lateness=options.lateness or "0 seconds",
            max_ahead=options.cap,
            trigger=options.trigger,
            available_now=options.available_now,
            retain=options.retain,
            spark=session,
            on_progress=screen.advance,
            **job.arguments(),
            tables=job.tables,
        )

    if not options.available_now:
        _note_waiting(job, session)
    with spark.translated():
        live = Console(stderr=files is not None or lines is not None)
        if lines is None:
            follow(begin, Screen(), live)
            return
        with _device_stream(lines) as stream:
            follow(begin, Screen(stream, lines.format), live)


def _note_waiting(job: Job, session: Any) -> None:
    """Note that a stream waits for the first file of an empty directory."""
    for name, place in job.tables.items():
        if place.startswith("kafka://") or spark.may_be_table(place):
            continue
        if not has_files(spark.path_at(place, session), declared=name in job.schemas):
            note(f"waiting for the first file in {place}")
