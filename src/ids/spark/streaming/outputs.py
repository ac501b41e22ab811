"""Where a stream's emits go, each exactly once: what a batch writes depends on its number alone.

A batch that is tried again writes the same bytes to the same place. Two outputs cannot take back
what they were given, and may get a batch's emits twice after a crash: a callback, and a Kafka
topic, whose messages carry the headers ``ids_batch`` and ``ids_row`` to know them by.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ids.errors import SourceError
from ids.sink.jsonl import write_jsonl
from ids.sink.target import Format
from ids.sink.writing import stream_csv, whole

__all__ = ["Callback", "Output", "Target", "file_output"]

Facts = dict[str, Any]
Target = str | Path | Callable[[pa.Table], None] | None


class Output(Protocol):
    """A place for emits. ``name`` is part of what a checkpoint knows its stream by."""

    name: str

    def check(self) -> None:
        """Refuse a place that holds what this stream did not write."""
        ...

    def rewind(self, number: int | None, facts: Facts) -> None:
        """Forget what came after batch ``number``; ``facts`` are those ``write`` gave then."""
        ...

    def write(self, emits: pa.Table, number: int, facts: Facts) -> Facts:
        """Put a batch's emits there, for good; what the next batch needs to know."""
        ...


def file_output(target: str | Path) -> Output:
    """A directory of files, or a file that grows."""
    path = Path(os.path.realpath(Path(target).expanduser()))
    formats = {format_.value: format_ for format_ in Format}
    format_ = formats.get(path.suffix.lower())
    if str(target).endswith(("/", os.sep)) or path.is_dir():
        return Parts(path, format_ or Format.PARQUET)
    if format_ is None or format_ is Format.PARQUET:
        raise SourceError(
            f"a stream does not end, so {target} would never be a whole file; "
            f"give a directory, {target}/"
        )
    return Appended(path, format_)


class Callback:
    """Emits handed to a function: at least once."""

    name = "memory"

    def __init__(self, take: Callable[[pa.Table], None]) -> None:
        self._take = take

    def check(self) -> None: ...

    def rewind(self, number: int | None, facts: Facts) -> None: ...

    def write(self, emits: pa.Table, number: int, facts: Facts) -> Facts:  # noqa: ARG002
        self._take(emits)
        return facts


class Parts:
    """A directory with one file for each batch that has emits; readers see whole files only."""

    def __init__(self, directory: Path, format_: Format) -> None:
        self._directory, self._format = directory, format_
        self.name = str(directory)

    def check(self) -> None:
        _refuse_orphan(self._directory)
        if self._directory.is_dir():
            others = sorted(entry.name for entry in self._directory.glob("[!.]*"))
            if others:
                raise SourceError(
                    f"{self._directory} already holds {others[0]}; give an empty or a new directory"
                )

    def rewind(self, number: int | None, facts: Facts) -> None:  # noqa: ARG002
        self._directory.mkdir(exist_ok=True)
        for path in self._directory.iterdir():
            # a driver that was killed may have left a file it had not finished
            name = rf"(\.?)part-(\d+){re.escape(self._format.value)}(\.\d+\.tmp)?"
            found = re.fullmatch(name, path.name)
            if found and (found[1] or number is None or int(found[2]) > number):
                path.unlink()

    def write(self, emits: pa.Table, number: int, facts: Facts) -> Facts:
        part = self._directory / f"part-{number:08d}{self._format.value}"
        if emits.num_rows:
            with whole(part) as file:
                _WRITERS[self._format](emits, file)
        else:
            part.unlink(missing_ok=True)
        return facts


class Appended:
    """One file that grows; its length is part of a snapshot, and what lies beyond is cut off."""

    def __init__(self, file: Path, format_: Format) -> None:
        self._file, self._format = file, format_
        self.name = str(file)

    def check(self) -> None:
        _refuse_orphan(self._file)
        if self._file.exists():
            raise SourceError(f"{self._file} is already there; give a new file")

    def rewind(self, number: int | None, facts: Facts) -> None:  # noqa: ARG002
        length = facts.get("length", 0)
        present = self._file.stat().st_size if self._file.exists() else 0
        if present < length:
            raise SourceError(
                f"{self._file} is shorter than this stream has written; put it back, or start "
                "anew with another checkpoint"
            )
        if present > length:
            os.truncate(self._file, length)

    def write(self, emits: pa.Table, number: int, facts: Facts) -> Facts:
        self.rewind(number, facts)
        length = facts.get("length", 0)
        if not emits.num_rows:
            return facts
        written = BytesIO()
        if self._format is Format.CSV:
            stream_csv(emits, written, header=length == 0)
        else:
            write_jsonl(emits, written)
        with self._file.open("ab") as file:
            file.write(written.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        return {"length": length + len(written.getbuffer())}


def _refuse_orphan(path: Path) -> None:
    if not path.parent.is_dir():
        raise SourceError(f"no such directory: {path.parent}; make it first")
    if not os.access(path if path.is_dir() else path.parent, os.W_OK):
        raise SourceError(f"cannot write into {path.parent}; check its permissions")


def _parquet(emits: pa.Table, file: BinaryIO) -> None:
    pq.write_table(emits, file)


_WRITERS: dict[Format, Callable[[pa.Table, BinaryIO], None]] = {
    Format.PARQUET: _parquet,
    Format.CSV: stream_csv,
    Format.JSONL: write_jsonl,
}
