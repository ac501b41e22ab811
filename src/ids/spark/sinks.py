"""Where results go out of Spark: the files ``ids.sink`` would write, or a Kafka topic.

A directory gets the files that Spark's tasks write. A single file is written by the driver: Spark
spools the result in its order beside it, and from there it runs through the driver a row group at
a time. Either way the rows that have come there are counted, and must be those that were computed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.errors import SourceError
from ids.sink.files import Files, Staged, faults_named, sweep, together
from ids.sink.jsonl import write_jsonl
from ids.sink.target import Format, Target, owned, refuse_foreign, resolve
from ids.sink.writing import opened
from ids.spark.failures import translated
from ids.spark.files import files_at, is_remote, path_at
from ids.spark.parts import write_parts
from ids.spark.probe import check_shared, is_on_cluster
from ids.spark.sources.canonical import quoted
from ids.spark.topic import Topic, is_kafka

__all__ = ["arrow_schema", "messages", "send", "write", "write_batches", "write_stream", "writing"]

_GROUP = 1 << 20  # rows of a row group, as Arrow has it when it writes a whole table
_BATCH = 1 << 16
_TYPES: dict[type[T.DataType], pa.DataType] = {
    T.BooleanType: pa.bool_(),
    T.DoubleType: pa.float64(),
    T.LongType: pa.int64(),
    T.StringType: pa.string(),
    T.TimestampType: pa.timestamp("us", "UTC"),
}
_JSON = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
}


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
            raise SourceError(f"{first.place} is a directory; end it with /")
        yield _write_file
        return
    files = files_at(first.place, session)
    refuse_foreign(files, places)
    with together(files, lambda name: owned(name, places)) as staged:
        yield partial(_write_directory, files, staged)


def _write_directory(files: Files, staged: Staged, df: DataFrame, place: Target) -> int:
    """Have Spark's tasks write the files of a result."""
    schema, below = arrow_schema(df), f"{staged.directory}/{place.stem}"
    data = df if place.format is Format.PARQUET else _numbered(df)
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
        raise SourceError(f"{written:,} of {rows:,} rows came to {place.place}; run it again")
    return written


def messages(df: DataFrame, keys: Sequence[str] = ()) -> DataFrame:
    """Rows as Kafka takes them: ``key`` and ``value``, each a JSON object (no keys: NULL)."""
    fields = {name: f"c{number} AS {quoted(name)}" for number, name in enumerate(df.columns)}
    key = "CAST(NULL AS STRING)"
    if keys:
        key = f"to_json(struct({', '.join(fields[name] for name in keys)}), {_sql_map(_JSON)})"
    value = f"to_json(struct({', '.join(fields.values())}), {_sql_map(_JSON)})"
    return _numbered(df).select(F.expr(key).alias("key"), F.expr(value).alias("value"))


def send(rows: DataFrame, topic: Topic) -> int:
    """Send ``messages`` to a topic; returns how many."""
    rows = rows.persist()  # counted and sent, computed once; Spark tells no observer of the sending
    try:
        count = rows.count()
        (
            rows.write.format("kafka")
            .option("kafka.bootstrap.servers", topic.servers)
            .option("topic", topic.name)
            .options(**topic.options)
            .save()
        )
    finally:
        rows.unpersist()
    return count


def _numbered(df: DataFrame) -> DataFrame:
    """Numbers for names: some sessions take names that differ only in case for the same."""
    return df.toDF(*(f"c{number}" for number in range(len(df.columns))))


def _sql_map(options: dict[str, str]) -> str:
    pairs = [f'"{text}"' for item in options.items() for text in item]
    return f"map({', '.join(pairs)})"


def arrow_schema(df: DataFrame) -> pa.Schema:
    """The schema the in-process engine gives such a result."""
    for field in df.schema.fields:
        if type(field.dataType) not in _TYPES:
            raise SourceError(
                f"cannot write column {field.name!r} ({field.dataType.simpleString()}); "
                "write numbers, text, booleans and timestamps"
            )
    return pa.schema([(field.name, _TYPES[type(field.dataType)]) for field in df.schema.fields])


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
        numbered = _numbered(df)
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
    return _WRITERS[format_](_groups(batches, schema), schema, stream)


def _groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in tables of a row group each; the last is smaller, and the first may be empty."""
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


def _parquet(groups: Iterator[pa.Table], schema: pa.Schema, stream: BinaryIO) -> int:
    rows = 0
    with pq.ParquetWriter(stream, schema) as writer:
        for table in groups:
            writer.write_table(table, row_group_size=_GROUP)
            rows += table.num_rows
    return rows


def _csv(groups: Iterator[pa.Table], schema: pa.Schema, stream: BinaryIO) -> int:
    rows = 0
    simple = all(name.isidentifier() for name in schema.names)
    options = pa.csv.WriteOptions(batch_size=_BATCH, quoting_header="none" if simple else "needed")
    with pa.csv.CSVWriter(stream, schema, write_options=options) as writer:
        for table in groups:
            writer.write_table(table)
            rows += table.num_rows
    return rows


def _jsonl(groups: Iterator[pa.Table], _: pa.Schema, stream: BinaryIO) -> int:
    rows = 0
    for table in groups:
        write_jsonl(table, stream)
        rows += table.num_rows
    return rows


_WRITERS = {Format.PARQUET: _parquet, Format.CSV: _csv, Format.JSONL: _jsonl}
