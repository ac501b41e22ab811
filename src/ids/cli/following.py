"""A stream on the screen: its last emits and how far it has come, until it ends or is stopped."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from ids.cli.reporting import note
from ids.cli.terminal import emit_table
from ids.sink.target import Format
from ids.sink.writing import stream_csv, write_stream

if TYPE_CHECKING:
    from ids.spark.streaming import Progress, Running

__all__ = ["Screen", "follow", "summary"]

_SHOWN = 10
_TICK = 0.25


class Screen:
    """What is shown of a stream: given emits and progress from its own thread, drawn from ours."""

    def __init__(self, lines: BinaryIO | None = None, format_: Format = Format.CSV) -> None:
        self._lock = Lock()
        self._emits: pa.Table | None = None
        self._progress: Progress | None = None
        self._lines, self._format = lines, format_
        self._header = True

    def show(self, emits: pa.Table) -> None:
        """Take a batch's emits in; where there is a stream for them, they go out as lines."""
        with self._lock:
            if self._lines is not None:
                if self._format is Format.CSV:
                    stream_csv(emits, self._lines, header=self._header)
                else:
                    write_stream(emits, self._lines, self._format)
                self._lines.flush()
                self._header = False
                return
            kept = emits if self._emits is None else pa.concat_tables([self._emits, emits])
            self._emits = kept.slice(max(0, kept.num_rows - _SHOWN))

    def advance(self, progress: Progress) -> None:
        """Take progress in."""
        with self._lock:
            self._progress = progress

    def drawn(self, width: int) -> RenderableType:
        """The screen as it is now."""
        with self._lock:
            status = "waiting for rows" if self._progress is None else summary(self._progress)
            # on top, where it stays in sight when the table is higher than the screen
            lines: list[RenderableType] = [Text(status, style="dim")]
            if self._emits is not None and self._emits.num_rows:
                lines += ["", emit_table(self._emits, width, last=None)]
            return Group(*lines)


def summary(progress: Progress) -> str:
    """How far a stream has come, in one line; no row is passed over in silence."""
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


def follow(begin: Callable[[Screen], Running], screen: Screen, console: Console) -> None:
    """Start a stream and show it until it ends; Ctrl-C stops it, to be resumed."""
    running = begin(screen)
    try:
        if console.is_terminal:
            with Live(console=console, auto_refresh=False, transient=console.stderr) as live:
                while not running.wait(_TICK):
                    live.update(screen.drawn(console.width), refresh=True)
                live.update(screen.drawn(console.width), refresh=True)
        else:
            running.wait()
    finally:
        running.stop()
        note(summary(running.progress()))
