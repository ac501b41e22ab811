"""Where a stream's emits go, each exactly once: what a batch writes depends on its number alone.

A batch that is tried again writes the same rows to the same place. Two outputs cannot take back
what they were given, and may get a batch's emits twice after a crash: a callback, and a Kafka
topic, whose messages carry the headers ``ids_batch`` and ``ids_row`` to know them by.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

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


class Output(Protocol):
    """A place for emits.

    name   part of what a checkpoint knows its stream by
    fixed  whether its columns cannot change: they are written down once
    place  the directory to which Spark's workers write, if they do
    """

    name: str
    fixed: bool
    place: str | None

    def check(self) -> None:
        """Refuse a place that holds what this stream did not write."""
        ...

    def rewind(self, number: int | None, facts: Facts) -> None:
        """Forget what came after batch ``number``; ``facts`` are those ``write`` gave then."""
        ...

    def write(self, emits: Emits, number: int, facts: Facts) -> tuple[int, Facts]:
        """Put a batch's emits there, for good; how many, and what the next batch needs to know."""
        ...


def file_output(target: str | Path, session: SparkSession | None = None) -> Output:
    """A directory of files on any file system, or a file of this machine that grows."""
    place = str(target) if is_remote(target) else os.path.realpath(local_path(target))
    formats = {format_.value: format_ for format_ in Format}
    format_ = formats.get(Path(place).suffix.lower())
    directory = str(target).endswith(("/", os.sep)) or Path(place).is_dir()
    if directory:
        return Parts(files_at(place, session), format_ or Format.PARQUET)
    if format_ is None or format_ is Format.PARQUET or is_remote(target):
        raise SinkError(
            f"a stream does not end, so {target} would never be a whole file; "
            f"give a directory, {target}/"
        )
    return Appended(Path(place), format_)


class Callback:
    """Emits handed to a function: at least once."""

    name = "memory"
    fixed = False
    place: str | None = None

    def __init__(self, take: Callable[[pa.Table], None]) -> None:
        self._take = take

    def check(self) -> None: ...

    def rewind(self, number: int | None, facts: Facts) -> None: ...

    def write(self, emits: Emits, number: int, facts: Facts) -> tuple[int, Facts]:  # noqa: ARG002
        table = emits.fetched()
        self._take(table)
        return table.num_rows, facts


class Parts:
    """A directory with files for each batch that has emits; readers see whole files only."""

    fixed = False

    def __init__(self, files: Files, format_: Format) -> None:
        self._files, self._format = files, format_
        self.name = files.uri.removeprefix("file:")
        self.place: str | None = self.name

    def check(self) -> None:
        refuse_orphan(self.name)
        check_directory(self.name)
        others = [e.name for e in self._files.entries() if not e.name.startswith((".", "_"))]
        if others:
            raise SinkError(
                f"{self.name} already holds {others[0]}; give an empty or a new directory"
            )

    def rewind(self, number: int | None, facts: Facts) -> None:  # noqa: ARG002
        self._files.make()
        part = re.compile(rf"part-(\d+)(-\d+)?{re.escape(self._format.value)}")
        for entry in self._files.entries():
            found = part.fullmatch(entry.name)
            newer = found and (number is None or int(found[1]) > number)
            # a driver that was killed may have left files it had not finished
            if newer or re.fullmatch(r"_part-\d+", entry.name):
                self._files.remove(entry.name)

    def write(self, emits: Emits, number: int, facts: Facts) -> tuple[int, Facts]:
        from ids.spark.spark_write import write_parts

        staged, part = f"_part-{number:08d}", f"part-{number:08d}"
        if emits.few:  # Spark takes longer to write a file than to work them out
            table, content = emits.fetched(), BytesIO()
            if table.num_rows:
                write_stream(table, content, self._format)
                self._files.write(staged, content.getvalue())
                self._files.move(staged, f"{part}{self._format.value}")
            return table.num_rows, facts
        names, rows = write_parts(emits.data, emits.schema, self._files, staged, self._format)
        for place, name in enumerate(names):
            suffix = f"-{place:05d}" if len(names) > 1 else ""
            self._files.move(f"{staged}/{name}", f"{part}{suffix}{self._format.value}")
        self._files.remove(staged)
        return rows, facts


class Appended:
    """One file that grows; its length is part of a manifest, and what lies beyond is cut off."""

    place: str | None = None

    def __init__(self, file: Path, format_: Format) -> None:
        self._file, self._format = file, format_
        self.name, self.fixed = str(file), format_ is Format.CSV

    def check(self) -> None:
        refuse_orphan(self.name)
        if self._file.exists():
            raise SinkError(f"{self._file} is already there; give a new file")

    def rewind(self, number: int | None, facts: Facts) -> None:  # noqa: ARG002
        length = facts.get("length", 0)
        present = self._file.stat().st_size if self._file.exists() else 0
        if present < length:
            raise SinkError(
                f"{self._file} is shorter than this stream has written; put it back, or start "
                "anew with another checkpoint"
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


class KafkaTopic:
    """Emits as messages: at least once, in order, with the headers ``ids_batch``, ``ids_row``."""

    fixed = False
    place: str | None = None

    def __init__(self, place: str, keys: Sequence[str], session: SparkSession) -> None:
        self._topic, self._keys, self._session = Topic.parse(place), keys, session
        self.name = place

    def check(self) -> None: ...

    def rewind(self, number: int | None, facts: Facts) -> None: ...

    def write(self, emits: Emits, number: int, facts: Facts) -> tuple[int, Facts]:
        from pyspark.sql import functions as F  # an output is checked before there is a pyspark

        from ids.spark.failures import translated

        headers = (
            f"array(named_struct('key', 'ids_batch', 'value', encode('{number}', 'UTF-8')), "
            "named_struct('key', 'ids_row', 'value', "
            "encode(cast(monotonically_increasing_id() as string), 'UTF-8')))"
        )
        with translated():
            # one partition: its rows are counted, and sent, in their order
            rows = messages(emits.ordered(self._session).coalesce(1), self._keys)
            return send(rows.withColumn("headers", F.expr(headers)), self._topic), facts
