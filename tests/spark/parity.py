"""The same table through the in-process reader and through Spark, as plain Python values."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from ids.source import open_table, to_table
from ids.spark import read
from ids.spark.expression_sql import UNFIT
from ids.spark.frame import ORIGIN
from ids.spark.preflight import schema_at
from ids.spark.spark_run import opened

__all__ = ["in_process", "on_spark", "plain"]

Columns = dict[str, tuple[str, list[Any]]]


def in_process(path: Path) -> Columns:
    """Column → its type and its values, with every bit of a double in sight."""
    source = open_table(path, "t")
    return plain(to_table(source.read(source.schema)))


def on_spark(spark: SparkSession, path: Path, **options: Any) -> Columns:
    """The same on Spark, which sees the columns that were foreseen before it started."""
    if not options:
        assert schema_at(str(path)) == opened(spark, path, "t").schema
    frame = read(spark, path, **options).orderBy(ORIGIN).drop(ORIGIN)
    own = [name for name in frame.columns if not name.startswith(UNFIT)]
    return plain(frame.toArrow().select(own))


def plain(table: pa.Table) -> Columns:
    return {
        name: (str(table.field(name).type), [_bits(v) for v in _values(table.column(name))])
        for name in table.column_names
    }


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def _bits(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if value != value else struct.pack(">d", value).hex()
    return value
