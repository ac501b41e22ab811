"""write: a result becomes a file that is either whole or not there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from pyarrow import types

from ids.model.place import local_path
from ids.sink.files import LocalFiles, faults_named, synced, together, whole
from ids.sink.jsonl import write_jsonl
from ids.sink.target import Format, Target, descriptor, owned, resolve

__all__ = ["opened", "opening", "stream_csv", "write", "write_stream"]


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


Opening = Callable[[Target], AbstractContextManager[BinaryIO]]


@contextmanager
def opening(places: Sequence[Target]) -> Iterator[Opening]:
    """Open streams to places that are all files, or files of one directory.

    What is no device appears when the block ends well, else not; in a directory all at once.
    """
    if places[0].stem is None:
        yield opened
        return
    files = LocalFiles(local_path(places[0].place))
    with together(files, lambda name: owned(name, places)) as staged:

        @contextmanager
        def part(place: Target) -> Iterator[BinaryIO]:
            (name,) = place.names(1)
            hidden = f"{staged.directory}/{name}"
            with synced(files.path / hidden) as stream:
                yield stream
            staged.names[hidden] = name

        yield part


@contextmanager
def opened(place: Target) -> Iterator[BinaryIO]:
    """A stream to ``place``; what is no device appears when the block ends well, else not."""
    if place.stem is not None:
        with opening([place]) as part, part(place) as stream:
            yield stream
        return
    with (_device if place.device else whole)(local_path(place.place)) as stream:
        yield stream


def _device(path: Path) -> BinaryIO:
    number = descriptor(path)
    # a copy of an open file goes on where that file is, as with > and >> of a shell
    return path.open("wb") if number is None else os.fdopen(os.dup(number), "wb")


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
