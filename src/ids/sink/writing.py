"""write: a result becomes a file that is either whole or not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from pyarrow import types

from ids.errors import SourceError
from ids.sink.jsonl import write_jsonl
from ids.sink.target import SUCCESS, Format, resolve

__all__ = ["stream_csv", "whole", "write"]


def write(table: pa.Table, target: str | Path) -> int:
    """Write ``table``; returns the number of rows.

    The rows go under a hidden name first and get their own name when all of them are on the disk,
    so a run that fails leaves what was there before. A directory gets its ``_SUCCESS`` last.
    """
    file, format_, directory = resolve(target)
    try:
        if directory is None:
            with whole(file) as stream:
                _WRITERS[format_](table, stream)
        else:
            _write_directory(table, file, directory)
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, SourceError):
            raise
        fault = str(error).strip().split("\n", maxsplit=1)[0]
        raise SourceError(f"cannot write {target}: {fault}") from error
    return int(table.num_rows)


def _write_directory(table: pa.Table, file: Path, directory: Path) -> None:
    made = not directory.exists()
    directory.mkdir(exist_ok=True)
    try:
        with whole(file) as stream:
            pa.parquet.write_table(table, stream)
            (directory / SUCCESS).unlink(missing_ok=True)
        with whole(directory / SUCCESS):
            pass
    except BaseException:
        if made and not any(directory.iterdir()):
            directory.rmdir()
        raise


@contextmanager
def whole(file: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes appear as ``file`` when the block ends well, else nowhere."""
    hidden = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with hidden.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        hidden.replace(file)
    finally:
        hidden.unlink(missing_ok=True)
    _sync_directory(file.parent)


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
