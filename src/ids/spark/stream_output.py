"""Write the emits of a stream to files, a Kafka topic or a function.

Files contain each emit exactly once: a retried batch writes the same rows to the same files. A
function or a Kafka topic may receive the emits of a batch twice after a crash, because such a write
cannot be undone. Kafka messages have the headers ``ids_batch`` and ``ids_row``, which identify
duplicates.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ids.errors import SinkError
from ids.model import is_remote, local_path
from ids.sink import (
    Files,
    Format,
    check_directory,
    refuse_orphan,
    stream_csv,
    write_jsonl,
    write_stream,
)
from ids.spark.file_system import files_at
from ids.spark.kafka_topic import Topic, messages, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ids.spark.stream_batch import Emits

Facts = dict[str, Any]
Target = str | Path | Callable[[pa.Table], None] | None


class Output(ABC):
    """A destination for emits. This base class is for outputs that cannot undo a write.

    name       the name of the output, which is part of the stream's identity
    fixed      whether the columns are fixed, because the header is written only once
    directory  the directory to which Spark's workers write; None if they write no files
    """

    name: str
    fixed: bool = False
    directory: str | None = None

    def check(self) -> None:  # noqa: B027 (optional)
        """Raise SinkError if the destination contains anything that this stream did not write."""

    def rewind(self, number: int | None, facts: Facts) -> None:  # noqa: B027 (optional)
        """Delete what was written after batch ``number``; its ``write`` returned ``facts``."""

    @abstractmethod
    def write(self, emits: Emits, number: int, facts: Facts) -> tuple[int, Facts]:
        """Write a batch's emits; return their number and the ``facts`` for the next call."""


def file_output(target: str | Path, session: SparkSession | None = None) -> Output:
    """Return the output for a directory on any file system, or for a growing local file."""
    path = str(target) if is_remote(target) else os.path.realpath(local_path(target))
    formats = {format_.value: format_ for format_ in Format}
    format_ = formats.get(Path(path).suffix.lower())
    is_directory = str(target).endswith(("/", os.sep)) or Path(path).is_dir()
    if is_directory:
        return Parts(files_at(path, session), format_ or Format.PARQUET)
    if format_ is None or format_ is Format.PARQUET or is_remote(target):
        raise SinkError(
            f"a stream cannot write the single file {target}, since it does not end; "
            f"give a directory, {target}/"
        )
    return Appended(Path(path), format_)


class Callback(Output):
    """Passes the emits to a function, each of them at least once."""

    name = "memory"

    def __init__(self, take: Callable[[pa.Table], None]) -> None:
        self._take = take

    def write(self, emits: Emits, number: int, facts: Facts) -> tuple[int, Facts]:  # noqa: ARG002
        table = emits.fetched()
        self._take(table)
        return table.num_rows, facts


class Parts(Output):
    """Writes new files to a directory for each batch; readers see only complete files."""

    def __init__(self, files: Files, format_: Format) -> None:
        self._files, self._format = files, format_
        self.name = files.uri.removeprefix("file:")
        self.directory = self.name

    def check(self) -> None:
        refuse_orphan(self.name)
        check_directory(self.name)
        others = [e.name for e in self._files.entries() if not e.name.startswith((".", "_"))]
        if others:
            raise SinkError(
                f"{self.name} already contains {others[0]}; give an empty or a new directory"
            )

    def rewind(self, number: int | None, facts: Facts) -> None:  # noqa: ARG002
        self._files.make()
        part = re.compile(rf"part-(\d+)(-\d+)?{re.escape(self._format.value)}")
        for entry in self._files.entries():
            found = part.fullmatch(entry.name)
            newer = found and (number is None or int(found[1]) > number)
            # a driver that was killed may have left incomplete files
            if newer or re.fullmatch(r"_part-\d+", entry.name):
                self._files.remove(entry.name)

    def write(self, emits: Emits, number: int, facts: Facts) -> tuple[int, Facts]:
        from ids.spark.spark_write import write_parts

        staged, part = f"_part-{number:08d}", f"part-{number:08d}"
        if emits.few:  # faster than a Spark job that writes a file
            table, content = emits.fetched(), BytesIO()
            if table.num_rows:
                write_stream(table, content, self._format)
                self._files.write(staged, content.getvalue())
                self._files.move(staged, f"{part}{self._format.value}")
            return table.num_rows, facts
        names, rows = write_parts(emits.data, emits.schema, self._files, staged, self._format)
        for index, name in enumerate(names):
            suffix = f"-{index:05d}" if len(names) > 1 else ""
            self._files.move(f"{staged}/{name}", f"{part}{suffix}{self._format.value}")
        self._files.remove(staged)
        return rows, facts


class Appended(Output):
    """Appends to one file.

    The manifest stores the length of the file; rows beyond that length, which an incomplete batch
    has written, are removed by truncating the file.
    """

    def __init__(self, file: Path, format_: Format) -> None:
        self._file, self._format = file, format_
        self.name, self.fixed = str(file), format_ is Format.CSV

    def check(self) -> None:
        refuse_orphan(self.name)
        if self._file.exists():
            raise SinkError(f"{self._file} already exists; give a new file")

    def rewind(self, number: int | None, facts: Facts) -> None:  # noqa: ARG002
        length = facts.get("length", 0)
        present = self._file.stat().st_size if self._file.exists() else 0
        if present < length:
            raise SinkError(
                f"{self._file} is shorter than what this stream has written; restore it, or start "
                "with a new checkpoint"
            )
        if present > length:
            os.truncate(self._file, length)

    def write(self, emits: Emits, number: int, facts: Facts) -> tuple[int, Facts]:
        self.rewind(number, facts)
        length = facts.get("length", 0)
        table = emits.fetched()
        if not table.num_rows:
            return 0, facts
        written = BytesIO()
        if self._format is Format.CSV:
            stream_csv(table, written, header=length == 0)
        else:
            write_jsonl(table, written)
        with self._file.open("ab") as file:
            file.write(written.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        return table.num_rows, {"length": length + len(written.getbuffer())}


class KafkaTopic(Output):
    """Sends the emits to a Kafka topic in order, each of them at least once."""

    def __init__(self, uri: str, keys: Sequence[str], session: SparkSession) -> None:
        self._topic, self._keys, self._session = Topic.parse(uri), keys, session
        self.name = uri

    def write(self, emits: Emits, number: int, facts: Facts) -> tuple[int, Facts]:
        from pyspark.sql import functions as F  # outputs are checked without pyspark

        from ids.spark.failures import translated

        headers = (
            f"array(named_struct('key', 'ids_batch', 'value', encode('{number}', 'UTF-8')), "
            "named_struct('key', 'ids_row', 'value', "
            "encode(cast(monotonically_increasing_id() as string), 'UTF-8')))"
        )
        with translated():
            # one partition, whose rows are numbered and sent in order
            rows = messages(emits.ordered(self._session).coalesce(1), self._keys)
            return send(rows.withColumn("headers", F.expr(headers)), self._topic), facts
