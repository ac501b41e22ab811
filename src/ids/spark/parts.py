"""Rows written by Spark's tasks as files of a directory, in the formats of ``ids.sink``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Observation
from pyspark.sql import functions as F

from ids.errors import SourceError
from ids.sink.jsonl import write_jsonl
from ids.sink.target import Format
from ids.sink.writing import stream_csv
from ids.spark.failures import translated
from ids.spark.files import UNMARKED, Entry, Files, LocalFiles, literal, named
from ids.spark.mapping import mapped
from ids.spark.watching import run_to_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["write_parts"]

_LINE = "value"
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


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
        raise SourceError(
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
