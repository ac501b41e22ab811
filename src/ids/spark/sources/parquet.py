"""Parquet files on Spark: the schema comes from their footers, so no odd column stops the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.errors import SourceError
from ids.model.table import Kind
from ids.source.arrow import kind_of
from ids.source.files import FileSource
from ids.source.folder import FilePath
from ids.source.parts import ParquetPart
from ids.spark.location import Location
from ids.spark.sources.canonical import floored, quoted, spell, typed
from ids.spark.sources.origin import ORIGIN, beside, name_origin

__all__ = ["NANOSECONDS", "read_parquet"]

NANOSECONDS = "spark.sql.legacy.parquet.nanosAsLong"

_SIMPLE: dict[pa.DataType, T.DataType] = {
    pa.bool_(): T.BooleanType(),
    pa.int8(): T.ByteType(),
    pa.int16(): T.ShortType(),
    pa.int32(): T.IntegerType(),
    pa.int64(): T.LongType(),
    pa.uint8(): T.ShortType(),
    pa.uint16(): T.IntegerType(),
    pa.uint32(): T.LongType(),
    pa.float32(): T.FloatType(),
    pa.float64(): T.DoubleType(),
    pa.date32(): T.DateType(),
    pa.date64(): T.DateType(),
}
_WIDE: dict[T.DataType | None, T.DataType] = {
    **dict.fromkeys((T.ByteType(), T.ShortType(), T.IntegerType()), T.LongType()),
    T.FloatType(): T.DoubleType(),
}
_INSTANTS: list[tuple[T.DataType, tuple[T.DataType, ...]]] = [
    (T.TimestampNTZType(), (T.TimestampNTZType(), T.DateType())),
    (T.TimestampType(), (T.TimestampType(), T.TimestampNTZType())),
]
_WIDEST_DECIMAL = 38
_NO_TYPE = "is of a type that Spark does not read; write it again as DOUBLE or DECIMAL(38)"
_NO_NANOSECONDS = f"holds nanoseconds, which Spark reads only with {NANOSECONDS}=true; set it"
_INT64_MAX = np.iinfo(np.int64).max


class _Stored(NamedTuple):
    """How a column lies in a file: what Spark reads it as (None: it does not), and its value."""

    read_as: T.DataType | None
    value: str


def read_parquet(
    session: SparkSession, location: Location, *, stream: bool, options: Mapping[str, str]
) -> DataFrame:
    """The rows of Parquet files, which may store a column in different widths."""
    columns = list(FileSource(location.parts).schema)
    nanos = str(session.conf.get(NANOSECONDS, "false")).lower() == "true"
    stored = {part.path: _layout(part, columns, nanos) for part in location.parts}
    if stream:
        stored = {location.files[0]: _widest(stored)}
    groups: dict[str, list[FilePath]] = {}
    for file, layout in stored.items():
        groups.setdefault(repr(layout), []).append(file)
    odd = stream or location.has_odd_names()
    place = "_metadata.row_index" if stream else None
    origin = beside(columns, F.expr(name_origin(encoded=odd, place=place)), ORIGIN)
    frames = []
    for members in groups.values():
        layout = stored[members[0]]
        fields = [T.StructField(n, s.read_as) for n, s in layout.items() if s.read_as is not None]
        raw = location.load(session, members, T.StructType(fields), options, stream=stream)
        values = [F.expr(column.value).alias(name) for name, column in layout.items()]
        frames.append(raw.select(*values, origin))
    return reduce(DataFrame.unionByName, frames)


def _layout(part: ParquetPart, columns: list[str], nanos: bool) -> dict[str, _Stored]:
    footer = part.footer
    leaves = {footer.schema.column(i).path: i for i in range(footer.num_columns)}
    return {
        name: _stored(part, name, footer, leaves[name], nanos) for name in columns if name in leaves
    }


def _stored(
    part: ParquetPart, name: str, footer: pq.FileMetaData, leaf: int, nanos: bool
) -> _Stored:
    type_ = part.schema.field(name).type
    type_ = type_.value_type if types.is_dictionary(type_) else type_
    sql = quoted(name)
    if kind_of(type_) is Kind.TEXT:
        return _Stored(T.StringType(), sql)
    if types.is_timestamp(type_):
        return _timestamp(name, footer.schema.column(leaf), nanos)
    if types.is_uint64(type_):
        target = "BIGINT" if _largest(footer, leaf) <= _INT64_MAX else "DOUBLE"
        return _Stored(T.DecimalType(20, 0), f"CAST({sql} AS {target})")
    if types.is_decimal(type_) and type_.precision <= _WIDEST_DECIMAL:
        return _Stored(T.DecimalType(type_.precision, type_.scale), f"CAST({sql} AS DOUBLE)")
    if type_ == pa.null():
        return _Stored(None, "CAST(NULL AS DOUBLE)")
    if type_ in _SIMPLE:
        return _Stored(_SIMPLE[type_], typed(sql, _SIMPLE[type_]))
    return _Stored(None, _refused(name, _NO_TYPE, "DOUBLE"))


def _timestamp(name: str, column: pq.ColumnSchema, nanos: bool) -> _Stored:
    """By what the footer says of the bytes; Arrow's own note may name another unit."""
    sql = quoted(name)
    if column.physical_type == "INT96":
        return _Stored(T.TimestampType(), sql)
    logical = json.loads(column.logical_type.to_json())
    if logical["timeUnit"] == "nanoseconds" and nanos:
        return _Stored(T.LongType(), floored(sql))
    if logical["timeUnit"] == "nanoseconds":
        return _Stored(None, _refused(name, _NO_NANOSECONDS, "TIMESTAMP"))
    held = T.TimestampType() if logical["isAdjustedToUTC"] else T.TimestampNTZType()
    return _Stored(held, typed(sql, held))


def _refused(name: str, why: str, sql_type: str) -> str:
    """A column that ends the query which asks for it, and only that."""
    return f"CAST(raise_error({spell(f'column {name!r} {why}')}) AS {sql_type})"


def _largest(footer: pq.FileMetaData, leaf: int) -> int:
    """The largest value of an unsigned column, from the statistics; without them, 2^64 - 1."""
    largest = 0
    for group in range(footer.num_row_groups):
        chunk = footer.row_group(group).column(leaf)
        known = chunk.statistics if chunk.is_stats_set else None
        if known is None or not (known.has_min_max or known.null_count == chunk.num_values):
            return int(np.iinfo(np.uint64).max)
        largest = max(largest, int(known.max) if known.has_min_max else 0)
    return largest


def _widest(stored: Mapping[FilePath, Mapping[str, _Stored]]) -> dict[str, _Stored]:
    """A stream reads all its files under one schema, those to come as well: in the widest types."""
    first, *others = stored
    found = {name: _wide(name, column) for name, column in stored[first].items()}
    for file in others:
        for name, column in stored[file].items():
            wide = _wide(name, column)
            both = wide if wide == found[name] else _common(name, wide, found[name])
            if both is None:
                raise SourceError(
                    f"column {name!r} is stored differently in {first.name} and {file.name}; "
                    "a stream needs files of one schema"
                )
            found[name] = both
    return found


def _wide(name: str, column: _Stored) -> _Stored:
    """Whole numbers as BIGINT, others as DOUBLE: Spark reads narrower ones as these."""
    wide = _WIDE.get(column.read_as)
    plain = column.read_as is not None and column.value == typed(quoted(name), column.read_as)
    return _Stored(wide, typed(quoted(name), wide)) if wide is not None and plain else column


def _common(name: str, one: _Stored, other: _Stored) -> _Stored | None:
    """What Spark reads instants of two types as; None if there is nothing."""
    for wanted, members in _INSTANTS:
        if one.read_as in members and other.read_as in members:
            return _Stored(wanted, typed(quoted(name), wanted))
    return None
