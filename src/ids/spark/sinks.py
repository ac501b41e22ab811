"""Where results go out of Spark: the files ``ids.sink`` would write, or a Kafka topic.

A result may be larger than the driver: Spark spools it in its order beside the target, and from
there it runs through the driver a row group at a time into the one file that was asked for.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.errors import SourceError
from ids.sink.jsonl import write_jsonl
from ids.sink.target import SUCCESS, Format, Target, resolve
from ids.sink.writing import faults_named, opened
from ids.spark.failures import translated
from ids.spark.sources.canonical import quoted
from ids.spark.topic import Topic, is_kafka

__all__ = ["arrow_schema", "messages", "write", "write_batches", "write_stream"]

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
            return _write_topic(df, Topic.parse(str(target)), keys)
        with _spooled(df, resolve(target)) as spool:
            return write_batches(spool, arrow_schema(df), target)


def write_stream(df: DataFrame, stream: BinaryIO, place: Target) -> int:
    """Write a batch ``df`` in its order to the stream of ``place``; returns the number of rows."""
    schema = arrow_schema(df)
    with _spooled(df, place) as spool:
        return _WRITERS[place.format](_groups(spool, schema), schema, stream)


def messages(df: DataFrame, keys: Sequence[str] = ()) -> DataFrame:
    """Rows as Kafka takes them: ``key`` and ``value``, each a JSON object (no keys: NULL)."""
    fields = {name: f"c{number} AS {quoted(name)}" for number, name in enumerate(df.columns)}
    key = "CAST(NULL AS STRING)"
    if keys:
        key = f"to_json(struct({', '.join(fields[name] for name in keys)}), {_sql_map(_JSON)})"
    value = f"to_json(struct({', '.join(fields.values())}), {_sql_map(_JSON)})"
    return _numbered(df).select(F.expr(key).alias("key"), F.expr(value).alias("value"))


def _numbered(df: DataFrame) -> DataFrame:
    """Numbers for names: some sessions take names that differ only in case for the same."""
    return df.toDF(*(f"c{number}" for number in range(len(df.columns))))


def _sql_map(options: dict[str, str]) -> str:
    pairs = [f'"{text}"' for item in options.items() for text in item]
    return f"map({', '.join(pairs)})"


def _write_topic(df: DataFrame, topic: Topic, keys: Sequence[str]) -> int:
    sent = messages(df, keys).persist()  # counted and sent, computed once
    try:
        rows = sent.count()
        (
            sent.write.format("kafka")
            .option("kafka.bootstrap.servers", topic.servers)
            .option("topic", topic.name)
            .options(**topic.options)
            .save()
        )
    finally:
        sent.unpersist()
    return rows


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
def _spooled(df: DataFrame, place: Target) -> Iterator[Iterator[pa.RecordBatch]]:
    """The rows of ``df`` in order, from a hidden folder beside the target that goes at the end."""
    beside = Path(gettempdir()) if place.device else (place.directory or place.file).parent
    spool = beside / f".{place.file.name}.{os.getpid()}.spool"
    try:
        _numbered(df).write.mode("overwrite").option("compression", "snappy").parquet(str(spool))
        if not (spool / SUCCESS).exists():
            raise SourceError(
                f"the workers did not write {place.file} where the driver could see it; "
                "name a place on storage that they share"
            )
        yield _batches(sorted(spool.glob("part-*.parquet")))
    finally:
        shutil.rmtree(spool, ignore_errors=True)


def _batches(files: Iterable[Path]) -> Iterator[pa.RecordBatch]:
    for path in files:
        with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
            yield from file.iter_batches(batch_size=_BATCH)


def write_batches(batches: Iterable[pa.RecordBatch], schema: pa.Schema, target: str | Path) -> int:
    """Write Arrow batches as ``ids.sink.write`` writes a table, holding one row group at a time."""
    place = resolve(target)
    with faults_named(target), opened(place) as stream:
        return _WRITERS[place.format](_groups(batches, schema), schema, stream)


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
