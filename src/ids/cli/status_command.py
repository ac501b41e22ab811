"""``ids status``: how a stream stands, from its checkpoint alone."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from ids.cli.arguments import ConfOption, DebugOption, Job, MasterOption, check_master, read_pairs
from ids.cli.terminal import Bar, printable, reporting

if TYPE_CHECKING:
    from ids.spark import Status

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
_SIZES = ("bytes", "KB", "MB", "GB", "TB")


def status(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="The --checkpoint of a stream.")
    ],
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a table.")
    ] = False,
    master: MasterOption = None,
    conf: ConfOption = None,
    debug: DebugOption = False,
) -> None:
    """Show how a stream stands, running or not: rows, watermark, state, last batch.

    No Spark is started, unless the checkpoint lies where only Spark reaches it.
    """
    check_master(master)
    job = Job(tables={}, conf=read_pairs(conf, "--conf", "KEY=VALUE"), master=master, debug=debug)
    with reporting(debug):
        found = _status(checkpoint, job)
        if as_json:
            typer.echo(json.dumps(found.facts()))
        else:
            _print(found, Console())


def _status(checkpoint: str, job: Job) -> Status:
    from ids.model import is_remote
    from ids.spark import needs_session, status

    if not is_remote(checkpoint) or not (job.master or job.conf or needs_session(checkpoint)):
        return status(checkpoint)
    from ids.cli.on_spark import session_for

    with Bar():
        session = session_for(job)
    return status(checkpoint, spark=session)


def _print(found: Status, console: Console) -> None:
    lines = _lines(found)
    width = max(len(name) for name, _ in lines) + 3
    for name, text in lines:
        named = (name.ljust(width), "cyan")
        console.print(Text.assemble(named, printable(text)), soft_wrap=True)


def _lines(found: Status) -> list[tuple[str, str]]:
    """What is told, a line each: its name, then the text."""
    lines = [("stream", f"{found.table}, {found.window}"), ("output", found.output)]
    if found.batch is None or found.idle is None:
        return [*lines, ("last batch", "none yet")]
    for number, (name, asks) in enumerate(found.items.items()):
        lines.append(("" if number else "items", f"{name} = {asks}"))
    totals = found.totals
    rows = f"{totals.rows:,}: {totals.late:,} late, {totals.ahead:,} ahead, {totals.bad:,} bad"
    lines += [("rows", rows), ("emits", f"{totals.emits:,}")]
    if found.watermark is not None and found.lag is not None:
        where = _apart(found.lag, "behind the clock", "ahead of the clock")
        lines.append(("watermark", f"{found.watermark:%Y-%m-%d %H:%M:%S}, {where}"))
    if found.waiting:
        lines.append(("waiting", "1 row far ahead of the others"))
    took = f"{found.rows:,} rows in {found.seconds:,.1f} s, {found.rows_per_second:,.0f} rows/s"
    ago = _apart(found.idle, "ago", "from now")
    files = f"{found.state_files:,} " + ("file" if found.state_files == 1 else "files")
    return [
        *lines,
        ("last batch", f"number {found.batch:,}, {ago}: {took}"),
        ("state", f"{found.state_rows:,} rows, {_size(found.state_bytes)} in {files}"),
        ("written by", f"IDS {found.written_by}, format {found.format}"),
    ]


def _apart(span: timedelta, after: str, before: str) -> str:
    """A span as a person says it: its largest unit, and which way.

    >>> _apart(timedelta(minutes=90), "ago", "from now"), _apart(-timedelta(days=2), "a", "b")
    ('1 hour ago', '2 days b')
    """
    seconds = int(abs(span.total_seconds()))
    unit, size = next(((u, s) for u, s in _UNITS if seconds >= s), _UNITS[-1])
    count = seconds // size
    way = after if span >= timedelta(0) else before
    return f"{count:,} {unit}{'' if count == 1 else 's'} {way}"


def _size(count: int) -> str:
    """Bytes as a person says them.

    >>> _size(900), _size(123_456)
    ('900 bytes', '120.6 KB')
    """
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_SIZES) - 1:
        size, unit = size / 1024, unit + 1
    return f"{count:,} bytes" if unit == 0 else f"{size:,.1f} {_SIZES[unit]}"
