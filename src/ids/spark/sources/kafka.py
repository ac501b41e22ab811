"""Kafka topics as tables: one JSON object a message, under a declared schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.errors import SourceError
from ids.model.table import unused
from ids.source.declared import EPOCHS
from ids.spark.sources.canonical import quoted, typed
from ids.spark.sources.origin import ORIGIN, beside
from ids.spark.topic import Topic, is_kafka, undeclared

__all__ = ["MALFORMED", "decoded", "packages_for", "read_kafka", "struct_of"]

MALFORMED = "ids_malformed"

_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"


def packages_for(places: Iterable[object]) -> list[str]:
    """What a session must fetch at its start to read and write ``places``.

    The connector is of Spark's own version: it reaches into Spark, and others may not fit.
    """
    return [f"{_CONNECTOR}:{pyspark.__version__}"] if any(map(is_kafka, places)) else []


def read_kafka(
    session: SparkSession,
    place: str,
    schema: Mapping[str, str],
    *,
    stream: bool,
    options: Mapping[str, str],
) -> DataFrame:
    """The topic's messages as rows, from the earliest on unless ``startingOffsets`` says else.

    The declared columns, ``ids_origin``, and ``ids_malformed``: the text of a message that is no
    such JSON object, NULL for a good one.
    """
    topic = Topic.parse(place)
    if not schema:
        raise undeclared(place)
    columns = struct_of(schema)
    reader = session.readStream if stream else session.read
    messages = (
        reader.format("kafka")
        .option("kafka.bootstrap.servers", topic.servers)
        .option("subscribe", topic.name)
        .options(**{"startingOffsets": "earliest", **topic.options, **options})
        .load()
    )
    return decoded(messages, columns)


def struct_of(schema: Mapping[str, str]) -> T.StructType:
    """Declared columns as Spark's parser of JSON takes them; times as numbers are text to it."""
    types = {name: "STRING" if t.upper() in EPOCHS else t for name, t in schema.items()}
    written = ", ".join(f"{quoted(name)} {type_}" for name, type_ in types.items())
    try:
        parsed = T.StructType.fromDDL(written)
    except PySparkException as error:
        raise SourceError(
            f"cannot read the schema {written!r}; write it as 'a STRING, b DOUBLE, t TIMESTAMP'"
        ) from error
    assert isinstance(parsed, T.StructType)
    return parsed


def decoded(messages: DataFrame, columns: T.StructType) -> DataFrame:
    """Kafka's own columns as rows of the declared ones."""
    names = columns.fieldNames()
    corrupt = unused(MALFORMED, names)
    target = T.StructType([*columns.fields, T.StructField(corrupt, T.StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": corrupt, "timeZone": "UTC"}
    parsed = messages.select(
        F.from_json(F.col("value").cast("string"), target, options).alias("row"),
        F.expr("value IS NULL").alias("empty"),
        F.expr(
            "named_struct('file', topic, 'start', CAST(partition AS BIGINT), 'row', offset)"
        ).alias(ORIGIN),
    )
    values = [
        F.expr(typed(f"row.{quoted(field.name)}", field.dataType)).alias(field.name)
        for field in columns.fields
    ]
    # a message without a value is how Kafka deletes a key: it is no row either
    malformed = F.expr(f"IF(empty, '', row.{corrupt})")
    origin = beside(names, F.col(ORIGIN), ORIGIN)
    return parsed.select(*values, origin, beside(names, malformed, MALFORMED))
