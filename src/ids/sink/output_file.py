"""Output files: their path and format, checked before any work is done, and their writers."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from pyarrow import types

from ids.errors import SinkError
from ids.model import is_remote, local_path
from ids.sink.atomic_files import SUCCESS, Files, LocalFiles, faults_named, synced, together, whole

_BATCH = 1 << 16  # rows to format at a time
_PART = "part"
_DESCRIPTOR = re.compile(r"/dev/(?:(stdout)|(stderr)|fd/(\d+))|/proc/self/fd/(\d+)")


class Format(Enum):
    """The format of a file, by its extension."""

    PARQUET = ".parquet"
    CSV = ".csv"
    JSONL = ".jsonl"


class Target(NamedTuple):
    """The destination of a result.

    place   a file, or a directory for files; a path or a URI
    stem    the first part of the names of its files in the directory; None if it is a file
    device  whether it is a pipe or a terminal, where nothing can be renamed
    """

    place: str
    format: Format
    stem: str | None = None
    device: bool = False

    def names(self, count: int) -> list[str]:
        """Return the names of ``count`` files in the directory, in order.

        >>> Target("out", Format.CSV, "part").names(2)
        ['part-00000.csv', 'part-00001.csv']
        >>> Target("out", Format.CSV, "2-trips").names(1)
        ['2-trips.csv']
        """
        if count == 1 and self.stem != _PART:
            return [f"{self.stem}{self.format.value}"]
        width = max(5, len(str(count - 1)))
        return [f"{self.stem}-{i:0{width}}{self.format.value}" for i in range(count)]

    def owns(self, name: str) -> bool:
        """Return whether this target would write a file of this name in the directory."""
        number = r"-\d{5,}" if self.stem == _PART else r"(-\d{5,})?"
        stem, suffix = re.escape(str(self.stem)), re.escape(self.format.value)
        return re.fullmatch(stem + number + suffix, name) is not None


def owned(name: str, places: Sequence[Target]) -> bool:
    """Return whether one of the targets would write a file of this name in their directory."""
    return any(place.owns(name) for place in places)


def check_directory(directory: str | Path) -> None:
    """Raise SinkError if a local directory cannot be created or written to; skip remote ones."""
    if is_remote(directory):
        return
    place = local_path(directory)
    while not place.exists():
        place = place.parent  # ends at "." or "/"
    if not place.is_dir():
        raise _not_a_directory(place)
    _check_writable(place)


def _not_a_directory(place: object) -> SinkError:
    return SinkError(f"{place} is a file; give an existing or a new directory")


def _check_writable(place: Path) -> None:
    if not os.access(place, os.W_OK):
        raise SinkError(f"cannot write to {place}; check its permissions")


def resolve(target: str | Path, format_: Format | None = None) -> Target:
    """Resolve ``target`` to its path and format; ``format_`` is needed if its name has none."""
    if is_device(target):
        if format_ is None:
            raise SinkError(f"cannot tell the format of {target}; give format='csv' or 'jsonl'")
        return Target(str(target), format_, device=True)
    if is_directory(target):
        return parts(target, [_PART], format_)[0]
    place = _real(target)
    named = _format_of(place)
    if named is not None and format_ not in (None, named):
        raise SinkError(f"{target} has the extension of {named.name}; change its name or format")
    if named is None and format_ is None:
        raise SinkError(
            f"cannot tell the format of {target}; end it with .parquet, .csv or .jsonl, "
            "or with / for a directory"
        )
    refuse_orphan(place)
    return Target(place, named or format_ or Format.PARQUET)


def parts(target: str | Path, stems: Sequence[str], format_: Format | None = None) -> list[Target]:
    """Return a target per stem in a directory.

    The format is ``format_``, else by the extension of the directory (``out.csv/``), else Parquet.
    """
    place = _real(target)
    chosen = format_ or _format_of(place) or Format.PARQUET
    found = [Target(place, chosen, stem) for stem in stems]
    if not is_remote(place):
        refuse_foreign(LocalFiles(Path(place)), found)
    refuse_orphan(place)
    return found


def is_directory(target: str | Path) -> bool:
    """Return whether ``target`` is a directory, or ends with ``/``; a remote one must end so."""
    if str(target).endswith(("/", os.sep)):
        return True
    return not is_remote(target) and Path(_real(target)).is_dir()


def is_device(target: str | Path) -> bool:
    """Return whether ``target`` is written as a stream: a pipe, a terminal, ``/dev/stdout``."""
    if descriptor(target) is not None:
        return True
    try:
        mode = Path(target).expanduser().stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def descriptor(target: str | Path) -> int | None:
    """Return the file descriptor that a name refers to; None for other names.

    >>> descriptor("/dev/stdout"), descriptor("/dev/fd/3"), descriptor("out.csv")
    (1, 3, None)
    """
    found = _DESCRIPTOR.fullmatch(str(target))
    if found is None:
        return None
    if found[1] or found[2]:
        return 1 if found[1] else 2
    return int(found[3] or found[4])


def _real(target: str | Path) -> str:
    return str(target).rstrip("/") if is_remote(target) else os.path.realpath(local_path(target))


def _format_of(place: str) -> Format | None:
    return {format_.value: format_ for format_ in Format}.get(Path(place).suffix.lower())


def refuse_foreign(files: Files, places: Sequence[Target]) -> None:
    """Raise SinkError if a directory contains visible files that these targets did not write."""
    path = places[0].place
    if not is_remote(path) and Path(path).is_file():
        raise _not_a_directory(path)
    names = [entry.name for entry in files.entries()]
    others = [n for n in names if n[0] != "." and n != SUCCESS and not owned(n, places)]
    if others:
        raise SinkError(f"{path} already contains {others[0]}; give an empty or a new directory")


def refuse_orphan(place: str) -> None:
    """Raise SinkError if the parent directory of a local path is missing or not writable."""
    if is_remote(place):
        return
    path = Path(place)
    folder = path.parent
    if not folder.is_dir():
        raise SinkError(f"no such directory: {folder}; create it first")
    _check_writable(path if path.is_dir() else folder)


def write(table: pa.Table, target: str | Path, format_: Format | None = None) -> int:
    """Write ``table``; returns the number of rows.

    The file is written under a hidden name and renamed when it is complete, so a failed run leaves
    the earlier file as it was. In a directory, ``_SUCCESS`` is written last.
    """
    place = resolve(target, format_)
    with faults_named(target), opened(place) as stream:
        return write_stream(table, stream, place.format)


def write_stream(table: pa.Table, stream: BinaryIO, format_: Format) -> int:
    """Write ``table`` to an open stream; returns the number of rows."""
    if format_ is Format.PARQUET:
        pa.parquet.write_table(table, stream)
    elif format_ is Format.CSV:
        stream_csv(table, stream)
    else:
        write_jsonl(table, stream)
    return int(table.num_rows)


Opening = Callable[[Target], AbstractContextManager[BinaryIO]]


@contextmanager
def opening(places: Sequence[Target]) -> Iterator[Opening]:
    """Yield a function that opens a stream to each target: all files, or files of one directory.

    Files appear if the block succeeds, in a directory all at once; devices are written directly.
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
    """Open a stream to a target; unless it is a device, it appears only if the block succeeds."""
    if place.stem is not None:
        with opening([place]) as part, part(place) as stream:
            yield stream
        return
    with (_device if place.device else whole)(local_path(place.place)) as stream:
        yield stream


def _device(path: Path) -> BinaryIO:
    number = descriptor(path)
    # a duplicate descriptor continues at the current position, as > and >> of a shell need
    return path.open("wb") if number is None else os.fdopen(os.dup(number), "wb")


def stream_csv(table: pa.Table, stream: BinaryIO, *, header: bool = True) -> None:
    """Write CSV; NULL is an empty field, and the empty text is ``""``."""
    plain = pa.schema(
        pa.field(f.name, f.type.value_type if types.is_dictionary(f.type) else f.type)
        for f in table.schema
    )
    simple = all(name.isidentifier() for name in table.column_names)
    options = pa.csv.WriteOptions(
        include_header=header,
        batch_size=_BATCH,
        quoting_header="none" if simple else "needed",
    )
    pa.csv.write_csv(table.cast(plain), stream, options)


def write_jsonl(table: pa.Table, file: BinaryIO) -> None:
    """Write one JSON object per line; NULL, NaN and infinities are null.

    Timestamps are ISO 8601 in UTC. Arrow has no JSON writer, so each column is formatted as a whole
    and Arrow joins the lines; Python formats each distinct text once per batch.
    """
    for batch in table.to_batches(max_chunksize=_BATCH):
        pieces: list[pa.Array | pa.Scalar] = []
        for i, field in enumerate(batch.schema):
            name = f"{',' if i else '{'}{json.dumps(field.name, ensure_ascii=False)}:"
            texts = _texts(batch.column(i), field.name).cast(pa.large_string())
            pieces += [pa.scalar(name, pa.large_string()), texts.fill_null("null")]
        ends = [pa.scalar(text, pa.large_string()) for text in ("}\n", "")]
        lines = pc.binary_join_element_wise(*pieces, *ends)
        # the texts of an Arrow array are contiguous, so its buffer is the content of the file
        _, offsets, data = lines.buffers()
        first, last = np.frombuffer(offsets, np.int64)[[lines.offset, lines.offset + len(lines)]]
        file.write(memoryview(data)[first:last])


def _texts(column: pa.Array, name: str) -> pa.Array:
    """Format each value as JSON; NULL stays NULL."""
    type_ = column.type
    if types.is_dictionary(type_) and not _is_text(type_.value_type):
        return _texts(column.dictionary_decode(), name)
    if types.is_dictionary(type_) or _is_text(type_):
        coded = column if types.is_dictionary(type_) else column.dictionary_encode()
        spelt = [json.dumps(text, ensure_ascii=False) for text in coded.dictionary.to_pylist()]
        return pa.array(spelt, pa.large_string()).take(coded.indices)
    if types.is_timestamp(type_):  # "2024-01-01T00:00:00.000000Z"; without a zone it is UTC
        written = column.cast(pa.timestamp(type_.unit, "UTC")).cast(pa.string())
        spaced = pc.replace_substring(written, " ", "T", max_replacements=1)
        return pc.binary_join_element_wise('"', spaced, '"', "")
    if types.is_floating(type_):
        finite = pc.is_finite(column)
        return pc.if_else(finite, column, pa.scalar(None, type_)).cast(pa.string())
    if types.is_integer(type_) or types.is_boolean(type_) or types.is_null(type_):
        return column.cast(pa.string())
    raise SinkError(f"cannot write column {name!r} ({type_}) as JSON; write .parquet instead")


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)
    )
