"""The five types IDS computes with, as Spark SQL: bigint, double, boolean, string, timestamp.

No expression here asks for the session's time zone: what has no zone is UTC, in every session.
"""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.spark.typed import quoted

__all__ = [
    "canonical",
    "floored",
    "instant",
    "quoted",
    "spell",
    "typed",
    "with_zone",
    "zoned_instant",
]

_PLAIN = re.compile(r"[A-Za-z0-9 _./:@+=,-]*")
_MINUTES = r"^([^:]*:[0-9]{1,2})( ?(?:Z|UTC|[+-][0-9:]+))$"
_EPOCH = "TIMESTAMP'1970-01-01 00:00:00Z'"
_EPOCH_NTZ = "TIMESTAMP_NTZ'1970-01-01 00:00:00'"
_WHOLE = (T.ByteType, T.ShortType, T.IntegerType)
_BROKEN = (T.FloatType, T.DecimalType, T.NullType)


def spell(text: str) -> str:
    """A text constant; anything out of the ordinary goes as bytes, which nothing can misread.

    >>> spell("EU-West"), spell("it's")
    ("'EU-West'", "decode(unhex('69742773'), 'UTF-8')")
    """
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"decode(unhex('{text.encode().hex()}'), 'UTF-8')"


def instant(sql: str) -> str:
    """A TIMESTAMP_NTZ as the instant it is in UTC."""
    return f"({_EPOCH} + ({sql} - {_EPOCH_NTZ}))"


def floored(sql: str) -> str:
    """Nanoseconds since 1970 as an instant, rounded down: DIV rounds towards 1970."""
    return f"timestamp_micros({sql} DIV 1000L - IF({sql} % 1000L < 0L, 1L, 0L))"


def zoned_instant(sql: str) -> str:
    """A text as an instant, NULL where it is none; with an offset or a Z, or else in UTC."""
    offset = ", ".join(f"substr({sql}, -{place}, 1)" for place in (3, 5, 6))
    zoned = (
        f"length({sql}) > 15 AND (endswith({sql}, 'Z') "
        f"OR array_contains(array({offset}), '+') OR array_contains(array({offset}), '-'))"
    )
    in_utc = instant(f"try_cast({sql} AS TIMESTAMP_NTZ)")
    return f"CASE WHEN {zoned} THEN {with_zone(sql)} ELSE {in_utc} END"


def with_zone(sql: str) -> str:
    """A text with a zone as an instant, NULL where it is none.

    Spark reads no zone after a time without seconds.
    """
    to_seconds = f"regexp_replace({sql}, {spell(_MINUTES)}, {spell('$1:00$2')})"
    return f"coalesce(try_cast({sql} AS TIMESTAMP), try_cast({to_seconds} AS TIMESTAMP))"


def typed(sql: str, type_: T.DataType) -> str:
    """A value of Spark type ``type_`` in its canonical type; others stay what they are."""
    if isinstance(type_, _WHOLE):
        return f"CAST({sql} AS BIGINT)"
    if isinstance(type_, _BROKEN):
        return f"CAST({sql} AS DOUBLE)"
    if isinstance(type_, T.TimestampNTZType):
        return instant(sql)
    if isinstance(type_, T.DateType):
        return instant(f"CAST({sql} AS TIMESTAMP_NTZ)")
    return sql


def canonical(df: DataFrame) -> DataFrame:
    """The same rows, each column in the type IDS computes with."""
    columns: list[Column] = []
    for field in df.schema.fields:
        sql = quoted(field.name)
        columns.append(F.expr(typed(sql, field.dataType)).alias(field.name))
    return df.select(*columns)
