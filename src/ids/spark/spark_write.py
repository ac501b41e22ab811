"""Where results go out of Spark: the files ``ids.sink`` would write, or a Kafka topic.

A directory gets the files that Spark's tasks write. A single file is written by the driver: Spark
spools the result in its order beside it, and from there it runs through the driver a row group at
a time. Either way the rows that have come there are counted, and must be those that were computed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from ids.errors import SinkError
from ids.model import is_remote
from ids.sink import (
    Entry,
    Files,
    Format,
    LocalFiles,
    Staged,
    Target,
    faults_named,
    opened,
    owned,
    refuse_foreign,
    resolve,
    stream_csv,
    sweep,
    together,
    write_jsonl,
)
from ids.source import ARROW_TYPES
from ids.spark.arrow_map import mapped
from ids.spark.failures import translated
from ids.spark.file_system import (
    UNMARKED,
    check_shared,
    files_at,
    is_on_cluster,
    literal,
    named,
    path_at,
)
from ids.spark.frame import by_number
from ids.spark.kafka_topic import Topic, is_kafka, messages, send
from ids.spark.session import run_to_end

_LINE = "value"
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
_GROUP = 1 << 20  # rows of a row group, as Arrow has it when it writes a whole table
_BATCH = 1 << 16


def write_parts(
    data: DataFrame,
    schema: pa.Schema,
    files: Files,
    name: str,
    format_: Format,
    *,
    durable: bool = True,
) -> tuple[list[str], int]:
    """Write rows below ``name``, each partition a file; the names of the files, and how many rows.

    The files must hold as much as was computed, as far as the driver sees: on a disk that it does
    not share with the workers they do not. ``durable`` files survive a crash of the machine.
    """
    computed = Observation()
    data = data.observe(computed, F.count(F.lit(1)).alias("rows"))
    place = f"{files.uri}/{name}"
    with translated():
        if format_ is Format.PARQUET:
            writer = data.write.mode("overwrite").options(**UNMARKED)
            with _microseconds(data.sparkSession):
                run_to_end(data.sparkSession, partial(writer.parquet, place))
        else:
            lines = mapped(data, _Lines(schema, format_), f"{_LINE} string")
            length = Observation()
            lines = lines.observe(length, F.expr(f"sum(octet_length({_LINE}) + 1)").alias("bytes"))
            writer = lines.write.mode("overwrite").options(**UNMARKED)
            run_to_end(data.sparkSession, partial(writer.text, place, compression="none"))
    parts = [e for e in files.entries(name) if e.name.startswith("part-") and e.bytes]
    if durable and isinstance(files, LocalFiles) and files.exists(name):
        files.sync(name)
    if format_ is Format.PARQUET:
        written, expected = _rows(data, files, name, parts), "rows"
    else:
        written, expected = sum(part.bytes for part in parts), "bytes"
    # a plan that turns out empty forgets what it has watched
    if not written:
        with translated():
            due, rows = (0, 0) if data.isEmpty() else (1, 0)
    else:
        rows = computed.get["rows"]
        due = rows if expected == "rows" else length.get["bytes"]
    if written != due:
        told = f"{written:,} of {due:,} {expected}" if written else "nothing"
        raise SinkError(
            f"{told} came to {named(place)}; name a place on storage that the driver and the "
            "workers share"
        )
    return [part.name for part in parts] if rows else [], rows


@contextmanager
def _microseconds(session: SparkSession) -> Iterator[None]:
    """Timestamps as every reader knows them; by default Spark writes 96 bits without a zone."""
    before = session.conf.get(_TIMESTAMPS, None)
    session.conf.set(_TIMESTAMPS, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        if before is None:
            session.conf.unset(_TIMESTAMPS)
        else:
            session.conf.set(_TIMESTAMPS, before)


def _rows(data: DataFrame, files: Files, name: str, parts: list[Entry]) -> int:
    if isinstance(files, LocalFiles):
        return sum(pq.read_metadata(files.path / name / part.name).num_rows for part in parts)
    if not parts:
        return 0
    with translated():
        return int(data.sparkSession.read.parquet(literal(f"{files.uri}/{name}")).count())


@dataclass(frozen=True, slots=True)
class _Lines:
    """Rows of a task as text, a chunk of lines at a time; called with Arrow batches."""

    schema: pa.Schema
    format_: Format

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        header = True
        for batch in batches:
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch]).rename_columns(self.schema.names)
            text = BytesIO()
            if self.format_ is Format.CSV:
                stream_csv(table.cast(self.schema), text, header=header)
            else:
                write_jsonl(table.cast(self.schema), text)
            header = False
            lines = text.getvalue().decode().removesuffix("\n")
            yield pa.RecordBatch.from_pydict({_LINE: [lines]})


def write(df: DataFrame, target: str | Path, keys: Sequence[str] = ()) -> int:
    """Write a batch ``df`` in its order; returns the number of rows.

    A ``.parquet``, ``.csv`` or ``.jsonl`` file, a directory, or ``kafka://host:9092/topic``, where
    a message's key is the JSON of its ``keys`` (the PARTITION BY columns). A file is either whole
    or not there; a topic has at least every row, as Kafka's connector promises.
    """
    with translated():
        if is_kafka(target):
            return send(messages(df, keys), Topic.parse(str(target)))
        place = resolve(target)
        with faults_named(target), writing([place], df.sparkSession) as put:
            return put(df, place)


@contextmanager
def writing(
    places: Sequence[Target], session: SparkSession
) -> Iterator[Callable[[DataFrame, Target], int]]:
    """What writes results to places that are all files, or files of one directory.

    Refuses first what cannot be written. A directory shows what was written when the block ends
    well, all at once, else nothing.
    """
    first = places[0]
    check_shared(session, first.place)
    if first.stem is None:
        if is_remote(first.place) and path_at(first.place, session).is_dir():
            raise SinkError(f"{first.place} is a directory; end it with /")
        yield _write_file
        return
    files = files_at(first.place, session)
    refuse_foreign(files, places)
    with together(files, lambda name: owned(name, places)) as staged:
        yield partial(_write_directory, files, staged)


def _write_directory(files: Files, staged: Staged, df: DataFrame, place: Target) -> int:
    """Have Spark's tasks write the files of a result."""
    schema, below = arrow_schema(df), f"{staged.directory}/{place.stem}"
    data = df if place.format is Format.PARQUET else by_number(df)
    parts, rows = write_parts(data, schema, files, below, place.format)
    if not parts:
        parts = ["empty"]
        with TemporaryDirectory(prefix="ids-") as scratch:
            empty = Path(scratch) / "empty"
            with empty.open("wb") as stream:
                write_batches((), schema, stream, place.format)
            files.put(empty, f"{below}/empty")
    names = zip(parts, place.names(len(parts)), strict=True)
    staged.names.update({f"{below}/{part}": name for part, name in names})
    return rows


def _write_file(df: DataFrame, place: Target) -> int:
    """Have the driver write the one file of a result."""
    if not is_remote(place.place):
        with opened(place) as stream:
            return write_stream(df, stream, place)
    folder, _, name = place.place.rpartition("/")
    files = files_at(folder, df.sparkSession)
    hidden, new = f".{name}.{os.getpid()}.tmp", not files.exists()
    with TemporaryDirectory(prefix="ids-") as scratch:
        file = Path(scratch) / "file"
        try:
            with file.open("wb") as stream:
                rows = write_stream(df, stream, place)
            files.put(file, hidden)
            files.move(hidden, name)
        finally:
            sweep(files, hidden)
            if new and not files.entries():
                sweep(files, "")
    return rows


def write_stream(df: DataFrame, stream: BinaryIO, place: Target) -> int:
    """Write a batch ``df`` in its order to the stream of ``place``; returns the number of rows."""
    schema = arrow_schema(df)
    with _spooled(df, place) as (batches, rows):
        written = write_batches(batches, schema, stream, place.format)
    if written != rows:
        raise SinkError(f"{written:,} of {rows:,} rows came to {place.place}; run it again")
    return written


def arrow_schema(df: DataFrame) -> pa.Schema:
    """The schema the in-process engine gives such a result."""
    fields = []
    for name, type_ in df.dtypes:
        found = ARROW_TYPES.get(type_.partition(" ")[0].upper())  # a string may have a collation
        if found is None:
            raise SinkError(
                f"cannot write column {name!r} ({type_}); "
                "write numbers, text, booleans and timestamps"
            )
        fields.append((name, found))
    return pa.schema(fields)


@contextmanager
def _spooled(df: DataFrame, place: Target) -> Iterator[tuple[Iterator[pa.RecordBatch], int]]:
    """The rows of ``df`` in order, and how many, from a hidden folder that goes at the end.

    It lies beside the file; for a device in this machine's own, which no cluster sees.
    """
    session = df.sparkSession
    if place.device and is_on_cluster(session):
        table = df.toArrow()
        yield iter(table.to_batches()), table.num_rows
        return
    folder, _, name = place.place.rpartition("/")
    files = files_at(gettempdir() if place.device else folder or "/", session)
    spool = f".{name}.{os.getpid()}.spool"
    try:
        numbered = by_number(df)
        schema = arrow_schema(df)
        parts, rows = write_parts(numbered, schema, files, spool, Format.PARQUET, durable=False)
        yield _batches(files, [f"{spool}/{part}" for part in parts]), rows
    finally:
        sweep(files, spool)


def _batches(files: Files, names: Iterable[str]) -> Iterator[pa.RecordBatch]:
    for name in names:
        with (
            files.open(name) as stream,
            pq.ParquetFile(stream, coerce_int96_timestamp_unit="us") as file,
        ):
            yield from file.iter_batches(batch_size=_BATCH)


def write_batches(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, stream: BinaryIO, format_: Format
) -> int:
    """Write Arrow batches as ``ids.sink`` writes a table, holding one row group at a time."""
    rows = 0
    with (
        pq.ParquetWriter(stream, schema) if format_ is Format.PARQUET else nullcontext() as parquet
    ):
        for table in _groups(batches, schema):
            if parquet is not None:
                parquet.write_table(table, row_group_size=_GROUP)
            elif format_ is Format.CSV:
                stream_csv(table, stream, header=not rows)
            else:
                write_jsonl(table, stream)
            rows += table.num_rows
    if format_ is Format.CSV and not rows:
        stream_csv(schema.empty_table(), stream)
    return rows


def _groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in tables of a row group each; the last is smaller, and none is empty."""
    held: list[pa.Table] = []
    rows = 0
    for batch in batches:
        table = pa.Table.from_batches([batch]).rename_columns(schema.names).cast(schema)
        while rows + table.num_rows >= _GROUP:
            fitting = _GROUP - rows
            yield pa.concat_tables([*held, table.slice(0, fitting)])
            table, held, rows = table.slice(fitting), [], 0
        if table.num_rows:
            held.append(table)
            rows += table.num_rows
    if held:
        yield pa.concat_tables(held)
