"""Terminal output: results as tables, the live view of a stream, progress, notes and errors.

pyarrow is imported in functions, so that ``--help`` and invalid options need not wait for it.
"""

from __future__ import annotations

import math
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from textwrap import indent
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ids.errors import IdsError

if TYPE_CHECKING:
    import pyarrow as pa

    from ids.sink import Format
    from ids.spark import Stream, StreamProgress

_NULL = "NULL"
_GAP = 3
_HEADER = 12  # a column name is folded only if it is longer
_DIGITS = 5  # significant digits of the largest number in a column


def is_terminal() -> bool:
    """Return whether stdout is a terminal (the environment can override Rich's own test)."""
    return sys.stdout.isatty()


def print_lines(lines: Iterable[str], console: Console) -> None:
    """Print the lines without markup, then an empty line."""
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    console.print()


def show_result(
    table: pa.Table, console: Console, last: int | None = None, total: int | None = None
) -> None:
    """Print a result, emits as a table and a plan as text, then an empty line."""
    if table.column_names == ["plan"]:
        print_lines(table["plan"].to_pylist(), console)
    else:
        console.print(emit_table(table, console.width, last, total))
        console.print()


def emit_table(
    table: pa.Table, width: int, last: int | None = None, total: int | None = None
) -> RenderableType:
    """Render the ``last`` emits; columns that do not fit are shown below, after the same keys.

    ``total`` is the number of all emits, if ``table`` has only the last ones.
    """
    total = table.num_rows if total is None else total
    shown = table if last is None else table.slice(max(0, table.num_rows - last))
    names = shown.column_names
    keys = names.index("emit_at") + 1 if "emit_at" in names else 0
    columns = [_Column(names[i], shown.column(i), i < keys) for i in range(len(names))]
    blocks: list[RenderableType] = []
    for block in _blocks(columns, width):
        blocks += ["", _block(block)] if blocks else [_block(block)]
    if shown.num_rows < total:
        blocks.append(Text(f"the last {shown.num_rows} of {total:,} emits", style="dim"))
    elif total == 0:
        blocks.append(Text("no emits", style="dim"))
    return Group(*blocks)


class _Column:
    """The cells of a column, and their width including the gap before the next column."""

    def __init__(self, name: str, values: pa.ChunkedArray, key: bool) -> None:
        from pyarrow import types

        self.cells = cells(values)
        self.header = _folded(printable(name, keep="\n"), max(map(len, self.cells), default=0))
        self.key = key
        self.right = types.is_floating(values.type) or types.is_integer(values.type)
        lines = [*self.header.split("\n"), *self.cells]
        self.width = max(map(len, lines)) + _GAP


def _folded(name: str, width: int) -> str:
    """Break a long name after its underscores, so that columns of short numbers stay narrow.

    >>> _folded("eu_attribution_share", 8)
    'eu_\\nattribution_\\nshare'
    """
    lines = [""]
    for piece in re.findall(r"[^_]*_+|[^_]+", name):
        if lines[-1] and len(lines[-1] + piece) > max(width, _HEADER):
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def _blocks(columns: list[_Column], width: int) -> Iterator[list[_Column]]:
    """Split the columns into blocks that fit the width; each repeats the keys."""
    keys = [column for column in columns if column.key]
    block: list[_Column] = []
    for column in columns:
        if len(block) > len(keys) and sum(c.width for c in [*block, column]) - _GAP > width:
            yield block
            block = list(keys)
        block.append(column)
    yield block


def _block(columns: list[_Column]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(
            Text(column.header),
            justify="right" if column.right else "left",
            style="cyan" if column.key else "",
            vertical="bottom",
            no_wrap=True,
            min_width=column.width - _GAP,
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*(Text(cell, "dim" if cell == _NULL else "") for cell in row))
    return table


def cells(values: pa.ChunkedArray) -> list[str]:
    """Format each value; all numbers in a column have the same number of decimals.

    >>> import pyarrow
    >>> cells(pyarrow.chunked_array([[1234.5, None, -0.2]]))
    ['1,234.5', 'NULL', '-0.2']
    """
    from pyarrow import types

    if types.is_timestamp(values.type):
        return _instants(values)
    python = values.to_pylist()
    if types.is_floating(values.type):
        text_of = _number_format([abs(value) for value in python if value is not None])
    elif types.is_integer(values.type):
        text_of = "{:,}".format
    else:
        text_of = printable
    return [_NULL if value is None else text_of(value) for value in python]


def _number_format(sizes: list[float]) -> Callable[[float], str]:
    largest = max((size for size in sizes if math.isfinite(size)), default=0.0)
    if largest != 0 and not 1e-4 <= largest < 1e12:
        return f"{{:.{_DIGITS - 1}e}}".format
    magnitude = math.floor(math.log10(largest)) if largest else 0
    return f"{{:,.{min(max(_DIGITS - 1 - magnitude, 0), 6)}f}}".format


def _instants(values: pa.ChunkedArray) -> list[str]:
    """Format timestamps in UTC, all with the fewest decimals that preserve every value."""
    import numpy as np
    import pyarrow as pa

    micros = values.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    known = [value for value in micros if value is not None]
    whole = [u for u, size in (("s", 10**6), ("ms", 10**3)) if all(v % size == 0 for v in known)]
    unit = whole[0] if whole else "us"

    def text_of(value: int) -> str:
        return str(np.datetime64(value, "us").astype(f"M8[{unit}]")).replace("T", " ")

    return [_NULL if value is None else text_of(value) for value in micros]


def printable(value: object, keep: str = "") -> str:
    """Return the value as text, with control characters replaced."""
    return "".join(c if c.isprintable() or c in keep else "·" for c in str(value))


class Bar:
    """A progress bar on stderr for the duration of a ``with`` block.

    It appears after ``patience`` seconds, and only if stderr is a terminal. Call it with the amount
    done and the total, from any thread. Before the first call (the first run compiles) it shows
    only that work is in progress.
    """

    def __init__(self, console: Console | None = None, patience: float = 0.5) -> None:
        self._console = console or Console(stderr=True)
        self._patience = patience
        self._lock = Lock()
        self._timer: Timer | None = None
        self._progress: Progress | None = None
        self._at: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def start(self) -> None:
        """Start the timer; the bar appears when it fires."""
        if self._console.is_terminal:
            self._timer = Timer(self._patience, self._appear)
            self._timer.daemon = True
            self._timer.start()

    def __call__(self, done: int, total: int) -> None:
        with self._lock:
            self._at = (done, total)
            self._update()

    def _appear(self) -> None:
        with self._lock:
            if self._timer is None:
                return
            columns = ("{task.description}", BarColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, console=self._console, transient=True)
            self._progress.add_task("starting", total=None)
            self._update()
            self._progress.start()

    def _update(self) -> None:
        if self._progress is not None and self._at is not None:
            done, total = self._at
            task = self._progress.task_ids[0]
            self._progress.update(
                task, description=f"{done:,} of {total:,}", completed=done, total=total
            )

    def clear(self) -> None:
        """Remove the bar, so that other output can be printed."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            if self._progress is not None:
                self._progress.stop()
            self._timer, self._progress, self._at = None, None, None


@contextmanager
def spark_bar(session: Any) -> Iterator[Bar]:
    """Show the progress of the session's tasks on stderr for the duration of the block."""
    from ids import spark

    with Bar() as bar, spark.watching(session, bar):
        yield bar


# Remedies in error messages: as Python arguments, and as options of the command line.
_OPTIONS = (
    (r"; [^;]*?(\w+)=…$", r"; add --table \1=PATH"),
    (r"; [^;]*?tables=\{(.*): …\}$", r"; add --table \1=PATH"),
    (r"\bbad_rows='(.*?)'", r"--bad-rows \1"),
    (r"\bnull='(.*?)'", r"--null '\1'"),
    (r"\bretain=True", "--retain"),
    (r"\bformat='(\w+)' or '(\w+)'", r"--format \1 or \2"),
    (r"\bids\.spark\.read\(.*schema=(.*)\)", r"--schema NAME=\1"),
    (r"\bschema=(?='.*?')", "--schema "),
    (r"\b(in process )?with ids\.sql\b", "with --engine local"),
    (r"\buse ids\.spark(\.sql)?,? or ", "remove --engine local, or use "),
)


def note(text: str) -> None:
    """Print a note on stderr, so that stdout has only the result."""
    typer.echo(f"note: {text}", err=True)


@contextmanager
def reporting(debug: bool) -> Iterator[None]:
    """Turn any error in the block into one line on stderr; ``debug`` prints its traceback first."""
    try:
        yield
        sys.stdout.flush()  # here, where a closed pipe is not an error
    except BrokenPipeError:
        # the interpreter flushes stdout again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (typer.Exit, typer.BadParameter):
        raise
    except BaseException as error:
        if _interrupted(error):
            raise _end("interrupted", 130, debug=False) from error
        if isinstance(error, IdsError):
            raise _end(f"error: {_with_options(str(error))}", 1, debug, error.excerpt) from error
        fact = f"{type(error).__name__}: {error}"
        remedy = "" if debug else "; run again with --debug"
        raise _end(f"internal error: {fact}{remedy}", 70, debug) from error


def _end(line: str, code: int, debug: bool, excerpt: str | None = None) -> typer.Exit:
    if debug:
        traceback.print_exc()
    typer.echo(" ".join(line.split("\n")), err=True)
    if excerpt is not None:
        typer.echo(indent(excerpt, "  "), err=True)
    return typer.Exit(code)


def _interrupted(error: BaseException | None) -> bool:
    """Return whether Ctrl-C is the cause, even if a library has replaced it with another error."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _with_options(message: str) -> str:
    """Replace the Python arguments in a message with the options of the command line.

    >>> _with_options("unknown table 'trips'; pass it as trips=…")
    "unknown table 'trips'; add --table trips=PATH"
    """
    for argument, option in _OPTIONS:
        message = re.sub(argument, option, message)
    return message


_SHOWN = 10
_TICK = 0.25


class Screen:
    """The live view of a stream. The stream's thread updates it, the main thread draws it."""

    def __init__(self, lines: BinaryIO | None = None, format_: Format | None = None) -> None:
        self._lock = Lock()
        self._emits: pa.Table | None = None
        self._progress: StreamProgress | None = None
        self._lines, self._format = lines, format_
        self._header = True

    def show(self, emits: pa.Table) -> None:
        """Add the emits of a batch; if there is an output stream, write them to it as lines."""
        import pyarrow as pa

        from ids.sink import Format, stream_csv, write_stream

        with self._lock:
            if self._lines is not None and self._format is not None:
                if self._format is Format.CSV:
                    stream_csv(emits, self._lines, header=self._header)
                else:
                    write_stream(emits, self._lines, self._format)
                self._lines.flush()
                self._header = False
                return
            kept = emits if self._emits is None else pa.concat_tables([self._emits, emits])
            self._emits = kept.slice(max(0, kept.num_rows - _SHOWN))

    def advance(self, progress: StreamProgress) -> None:
        """Update the progress."""
        with self._lock:
            self._progress = progress

    def drawn(self, width: int) -> RenderableType:
        """Render the current view."""
        with self._lock:
            status = "waiting for rows" if self._progress is None else summary(self._progress)
            # on top, so that it is visible even if the table is taller than the screen
            lines: list[RenderableType] = [Text(status, style="dim")]
            if self._emits is not None and self._emits.num_rows:
                lines += ["", emit_table(self._emits, width)]
            return Group(*lines)


def summary(progress: StreamProgress) -> str:
    """Summarize the progress of a stream in one line, including late and bad rows."""
    totals = progress.totals
    parts = [f"{totals.rows:,} rows", f"{totals.emits:,} emits"]
    if progress.seconds:
        parts.append(f"{progress.rows_per_second:,.0f} rows/s")
    parts += [f"{totals.late:,} late", f"{totals.ahead:,} ahead", f"{totals.bad:,} bad"]
    if progress.waiting:
        parts.append("1 far ahead waits for others")
    if progress.watermark is not None:
        parts.append(f"up to {progress.watermark:%Y-%m-%d %H:%M:%S}")
    return " · ".join(parts)


def follow(begin: Callable[[Screen], Stream], screen: Screen, console: Console) -> None:
    """Start a stream and show it until it ends; Ctrl-C stops it, and it can be resumed."""
    running = begin(screen)
    try:
        if console.is_terminal:
            with Live(console=console, auto_refresh=False, transient=console.stderr) as live:
                while not running.await_termination(_TICK):
                    live.update(screen.drawn(console.width), refresh=True)
                live.update(screen.drawn(console.width), refresh=True)
        else:
            running.await_termination()
    finally:
        running.stop()
        note(summary(running.last_progress))
