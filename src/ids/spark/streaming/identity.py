"""Which stream a checkpoint belongs to: what must be the same when it is taken up again."""

from __future__ import annotations

import fcntl
import json
from typing import Any, BinaryIO

from ids.errors import CheckpointError
from ids.model.rendering import render
from ids.model.window import CountWindow, TimeWindow, span
from ids.plan import SelectPlan
from ids.spark.files import Files, LocalFiles, Readable
from ids.spark.streaming.manifest import FORMAT, altered, shown, unknown_format

__all__ = ["claim", "claimed", "identity", "lock", "refuse_another", "stream_at", "window_text"]

_FOLDER = "ids"
_FILE = "stream"
_LOCK = "lock"


def identity(plan: SelectPlan, output: str) -> dict[str, object]:
    """What a stream is for all its life, part by part; the rest of its script may change."""
    where = None if plan.where is None else render(plan.where)
    return {
        "version": FORMAT,
        "table": plan.table,
        "window": window_text(plan.window),
        "WHERE": where,
        "PARTITION BY": list(plan.partition_by),
        "ORDER BY": list(plan.order_by),
        "output": output,
    }


def window_text(window: CountWindow | TimeWindow) -> str:
    """A window as the script writes it.

    >>> window_text(CountWindow(100, 10)), window_text(TimeWindow("1 minute", "10 seconds"))
    ('ROWS 100 PRECEDING SLIDE 10 ROWS', 'RANGE 1 minute PRECEDING SLIDE 10 seconds')
    """
    if isinstance(window, CountWindow):
        return f"ROWS {window.size} PRECEDING SLIDE {window.slide} ROWS"
    return f"RANGE {span(window.duration)} PRECEDING SLIDE {span(window.slide or 0)}"


def claimed(files: Files) -> bool:
    """Whether a checkpoint is a stream's already."""
    return any(entry.name == _FILE for entry in files.entries(_FOLDER))


def claim(files: Files, stream: dict[str, object]) -> None:
    """Make the checkpoint this stream's own; refuse another's."""
    if claimed(files):
        refuse_another(files, stream)
        return
    try:
        files.write(f"{_FOLDER}/{_FILE}", json.dumps(stream, indent=1).encode())
    except OSError as error:
        fault = error.strerror or str(error)
        raise CheckpointError(f"cannot write checkpoint {shown(files)}: {fault}") from error


def stream_at(files: Readable) -> dict[str, Any] | None:
    """What the stream of a checkpoint is; None if it is no stream's yet."""
    name = f"{_FOLDER}/{_FILE}"
    try:
        known: dict[str, Any] = json.loads(files.read(name))
        format_ = known["version"]
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        raise altered(files, name) from None
    if format_ != FORMAT:
        raise unknown_format(files, format_)
    return known


def refuse_another(files: Readable, stream: dict[str, object]) -> None:
    """Refuse the checkpoint of a stream that differs in one of these parts."""
    known = stream_at(files) or {}
    differing = [part for part, value in stream.items() if known.get(part) != value]
    if differing:
        raise CheckpointError(
            f"checkpoint {shown(files)} belongs to a stream with another "
            f"{' and '.join(differing)}; give a new checkpoint directory, or go on with what it "
            "was made for"
        )


def lock(files: Files) -> BinaryIO | None:
    """Keep other processes of this machine out for as long as the file that is returned is open.

    Elsewhere two streams meet in Spark's own log, which lets one of them go on.
    """
    if not isinstance(files, LocalFiles):
        return None
    file = (files.path / _FOLDER / _LOCK).open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise CheckpointError(
            f"checkpoint {shown(files)} is in use by another stream; stop that one first"
        ) from None
    return file
