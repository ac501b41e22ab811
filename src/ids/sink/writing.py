"""write: a result becomes a file that is either whole or not there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from pyarrow import types

from ids.errors import SourceError
from ids.sink.jsonl import write_jsonl
from ids.sink.target import SUCCESS, Format, Target, descriptor, resolve

__all__ = [
    "faults_named",
    "opened",
    "stream_csv",
    "together",
    "whole",
    "whole_directory",
    "write",
    "write_stream",
]


def write(table: pa.Table, target: str | Path, format_: Format | None = None) -> int:
    """Write ``table``; returns the number of rows.

    The rows go under a hidden name first and get their own name when all of them are on the disk,
    so a run that fails leaves what was there before. A directory gets its ``_SUCCESS`` last.
    """
    place = resolve(target, format_)
    with faults_named(target), opened(place) as stream:
        return write_stream(table, stream, place.format)


def write_stream(table: pa.Table, stream: BinaryIO, format_: Format) -> int:
    """Write ``table`` to an open stream; returns the number of rows."""
    _WRITERS[format_](table, stream)
    return int(table.num_rows)


@contextmanager
def faults_named(target: str | Path) -> Iterator[None]:
    """A fault of the disk or of Arrow names what could not be written."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, SourceError | BrokenPipeError):  # a reader may go away
            raise
        fault = str(error).strip().split("\n", maxsplit=1)[0]
        raise SourceError(f"cannot write {target}: {fault}") from error


@contextmanager
def opened(place: Target) -> Iterator[BinaryIO]:
    """A stream to ``place``; what is no device appears when the block ends well, else not."""
    if place.device:
        with _device(place.file) as stream:
            yield stream
    elif place.directory is None:
        with whole(place.file) as stream:
            yield stream
    else:
        with together(place.directory) as part, part(place.file) as stream:
            yield stream


def _device(path: Path) -> BinaryIO:
    number = descriptor(path)
    # a copy of an open file goes on where that file is, as with > and >> of a shell
    return path.open("wb") if number is None else os.fdopen(os.dup(number), "wb")


@contextmanager
def together(directory: Path) -> Iterator[Callable[[Path], AbstractContextManager[BinaryIO]]]:
    """Open files of a directory that appear all at once when the block ends well, else none.

    The directory is made if it is not there, and gets its ``_SUCCESS`` last.
    """
    made = not directory.exists()
    directory.mkdir(exist_ok=True)
    staged: dict[Path, Path] = {}

    @contextmanager
    def part(file: Path) -> Iterator[BinaryIO]:
        staged[file] = _hidden(file)
        with staged[file].open("wb") as stream:
            yield stream
            _sync(stream)

    try:
        yield part
        (directory / SUCCESS).unlink(missing_ok=True)
        for file, hidden in staged.items():
            hidden.replace(file)
        with whole(directory / SUCCESS):
            pass
    finally:
        for hidden in staged.values():
            hidden.unlink(missing_ok=True)
        if made and not any(directory.iterdir()):
            directory.rmdir()


@contextmanager
def whole(file: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes appear as ``file`` when the block ends well, else nowhere."""
    hidden = _hidden(file)
    try:
        with hidden.open("wb") as stream:
            yield stream
            _sync(stream)
        hidden.replace(file)
    finally:
        hidden.unlink(missing_ok=True)
    _sync_directory(file.parent)


@contextmanager
def whole_directory(directory: Path) -> Iterator[Path]:
    """A hidden directory that gets the name of ``directory`` when the block ends well, else goes.

    ``directory`` is new, or empty.
    """
    hidden = _hidden(directory)
    try:
        with faults_named(directory):
            hidden.mkdir(parents=True)
            yield hidden
            hidden.rename(directory)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    _sync_directory(directory.parent)


def _hidden(file: Path) -> Path:
    return file.with_name(f".{file.name}.{os.getpid()}.tmp")


def _sync(stream: BinaryIO) -> None:
    stream.flush()
    os.fsync(stream.fileno())


def _sync_directory(directory: Path) -> None:
    """So that the new name survives a crash too; not every system lets a directory be opened."""
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def stream_csv(table: pa.Table, stream: BinaryIO, *, header: bool = True) -> None:
    """CSV with a header; NULL is an empty field, and the empty text is ``""``."""
    plain = pa.schema(
        pa.field(f.name, f.type.value_type if types.is_dictionary(f.type) else f.type)
        for f in table.schema
    )
    simple = all(name.isidentifier() for name in table.column_names)
    options = pa.csv.WriteOptions(
        include_header=header,
        batch_size=1 << 16,
        quoting_header="none" if simple else "needed",
    )
    pa.csv.write_csv(table.cast(plain), stream, options)


def _parquet(table: pa.Table, stream: BinaryIO) -> None:
    pa.parquet.write_table(table, stream)


_WRITERS = {Format.PARQUET: _parquet, Format.CSV: stream_csv, Format.JSONL: write_jsonl}
