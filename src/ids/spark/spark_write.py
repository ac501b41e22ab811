"""Write the results of Spark to files, in the formats of ``ids.sink``, or to a Kafka topic.

If the target is a directory, Spark's tasks write its files. A single file is written by the driver:
Spark first writes the result, in order, to temporary files next to it, and the driver then copies
one row group at a time. In both cases an error is raised if the number of rows written differs from
the number computed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory, gettempdir
from time import monotonic, sleep
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
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
from ids.spark.failures import translated
from ids.spark.file_system import (
    UNMARKED,
    check_shared,
    files_at,
    is_on_cluster,
    literal,
    path_at,
)
from ids.spark.frame import by_number, mapped
from ids.spark.kafka_topic import Topic, is_kafka, messages, send

_LINE = "value"
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"
_GROUP = 1 << 20  # rows per row group, Arrow's default
_BATCH = 1 << 16
_PAUSE = 0.2
_TASK_TIMEOUT = 30.0  # seconds to wait for tasks; in a shared session, other jobs may have some


def write_parts(
    data: DataFrame,
    schema: pa.Schema,
    files: Files,
    name: str,
    format_: Format,
    *,
    durable: bool = True,
) -> tuple[list[str], int]:
    """Write rows to a directory, one file per partition; return file names and row count.

    Raises SinkError if the driver finds less than was computed, for example because it does not
    share the disk with the workers. If ``durable`` is set, the files survive a machine crash.
    """
    computed = Observation()
    data = data.observe(computed, F.count(F.lit(1)).alias("rows"))
    place = f"{files.uri}/{name}"
    with translated():
        if format_ is Format.PARQUET:
            writer = data.write.mode("overwrite").options(**UNMARKED)
            with _microseconds(data.sparkSession):
                _run_to_end(data.sparkSession, partial(writer.parquet, place))
        else:
            lines = mapped(data, _Lines(schema, format_), f"{_LINE} string")
            length = Observation()
            lines = lines.observe(length, F.expr(f"sum(octet_length({_LINE}) + 1)").alias("bytes"))
            writer = lines.write.mode("overwrite").options(**UNMARKED)
            _run_to_end(data.sparkSession, partial(writer.text, place, compression="none"))
    parts = [e for e in files.entries(name) if e.name.startswith("part-") and e.bytes]
    if durable and isinstance(files, LocalFiles) and files.exists(name):
        files.sync(name)
    if format_ is Format.PARQUET:
        written, expected = _rows(data, files, name, parts), "rows"
    else:
        written, expected = sum(part.bytes for part in parts), "bytes"
    # an Observation is never filled if Spark finds that the plan is empty
    if not written:
        with translated():
            due, rows = (0, 0) if data.isEmpty() else (1, 0)
    else:
        rows = computed.get["rows"]
        due = rows if expected == "rows" else length.get["bytes"]
    if written != due:
        found = f"only {written:,} of {due:,} {expected}" if written else "nothing"
        raise SinkError(
            f"{found} arrived in {place.removeprefix('file:')}; use storage that the driver and "
            "the workers share"
        )
    return [part.name for part in parts] if rows else [], rows


def _run_to_end(session: SparkSession, job: Callable[[], None]) -> None:
    """Call ``job``, which writes with Spark; if it fails, wait until no task is writing any more.

    On an interrupt, a call into Java returns immediately in Python, but continues in Java and may
    start tasks later. The job is therefore called in a separate thread, which ends when Java has
    finished.
    """
    failed: list[BaseException] = []
    tag = f"ids-{token_hex(8)}"

    def call() -> None:
        session.addTag(tag)
        try:
            job()
        except BaseException as error:
            failed.append(error)

    thread = InheritableThread(call, session=session)
    thread.start()
    try:
        thread.join()
        if failed:
            raise failed[0]
    except BaseException:
        while thread.is_alive():
            session.interruptTag(tag)
            thread.join(_PAUSE)
        _wait_for_tasks(session)
        raise


def _wait_for_tasks(session: SparkSession) -> None:
    """Wait for the tasks of a failed job, which may continue for a while.

    This uses Spark's scheduler, because the status tracker is delayed and does not include tasks
    that have just started.
    """
    end = monotonic() + _TASK_TIMEOUT
    try:
        scheduler: Any = session.sparkContext._jsc.sc().taskScheduler()
        # Map(driver -> 2)
        while re.search("-> [1-9]", scheduler.runningTasksByExecutors().toString()):
            if monotonic() > end:
                return
            sleep(_PAUSE / 4)
    except (PySparkException, Py4JError, AttributeError):
        return  # Spark Connect does not expose the scheduler


@contextmanager
def _microseconds(session: SparkSession) -> Iterator[None]:
    """Within the block, write Parquet timestamps in µs, which all readers support.

    Spark's default is INT96.
    """
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
    """Return the number of rows in the Parquet files that were written."""
    if isinstance(files, LocalFiles):
        return sum(pq.read_metadata(files.path / name / part.name).num_rows for part in parts)
    if not parts:
        return 0
    with translated():
        return int(data.sparkSession.read.parquet(literal(f"{files.uri}/{name}")).count())


@dataclass(frozen=True, slots=True)
class _Lines:
    """Formats Arrow batches as text, with one output row (of several lines) per batch."""

    schema: pa.Schema
    format_: Format

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        header = True
        for batch in batches:
            if not batch.num_rows:
                continue
            table = pa.Table.from_batches([batch]).rename_columns(self.schema.names)
            text = BytesIO()
            _write_lines(table.cast(self.schema), text, self.format_, header=header)
            header = False
            lines = text.getvalue().decode().removesuffix("\n")
            yield pa.RecordBatch.from_pydict({_LINE: [lines]})


def _write_lines(table: pa.Table, stream: BinaryIO, format_: Format, *, header: bool) -> None:
    if format_ is Format.CSV:
        stream_csv(table, stream, header=header)
    else:
        write_jsonl(table, stream)


def write(df: DataFrame, target: str | Path, keys: Sequence[str] = ()) -> int:
    """Write a batch DataFrame in its order and return the number of rows.

    df      the rows, usually from ``ids.spark.sql``
    target  a ``.parquet``, ``.csv`` or ``.jsonl`` file, a directory (``out/``), or
            ``kafka://host:9092/topic``
    keys    columns whose JSON is the key of a Kafka message, usually those of PARTITION BY

    A file becomes visible only when it is complete. A topic receives every row at least once, as
    Spark's Kafka connector guarantees. Raises SinkError or SourceError if the target cannot be
    written.
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
    """Yield a function that writes results to ``places``: single files, or files of one directory.

    An error is raised immediately if a place cannot be written. The files of a directory become
    visible together, when the block succeeds.
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
    """Write a result to files of a directory, in Spark's tasks."""
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
    """Write a result to a single file, in the driver."""
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
    """Write a batch DataFrame, in order, to the open file of ``place``; return the row count."""
    schema = arrow_schema(df)
    with _spooled(df, place) as (batches, rows):
        written = write_batches(batches, schema, stream, place.format)
    if written != rows:
        raise SinkError(f"only {written:,} of {rows:,} rows arrived in {place.place}; run again")
    return written


def arrow_schema(df: DataFrame) -> pa.Schema:
    """Return the Arrow schema that the same result has in process."""
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
    """Write ``df`` to a hidden temporary directory; yield its rows in order, and their number.

    The directory is next to the file. If ``place`` is a device, the local temporary directory is
    used; on a cluster, which does not share it, the rows are collected in the driver instead.
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
    """Write Arrow batches as ``ids.sink`` writes a table, one row group at a time."""
    rows = 0
    with (
        pq.ParquetWriter(stream, schema) if format_ is Format.PARQUET else nullcontext() as parquet
    ):
        for table in _groups(batches, schema):
            if parquet is not None:
                parquet.write_table(table, row_group_size=_GROUP)
            else:
                _write_lines(table, stream, format_, header=not rows)
            rows += table.num_rows
    if format_ is Format.CSV and not rows:
        stream_csv(schema.empty_table(), stream)
    return rows


def _groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows in tables of one row group each; the last may be smaller, but not empty."""
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
