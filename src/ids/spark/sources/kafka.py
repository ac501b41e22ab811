"""Kafka topics as tables: one JSON object a message, under a declared schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.errors import SourceError
from ids.spark.sources.canonical import quoted, typed
from ids.spark.sources.origin import ORIGIN

__all__ = ["MALFORMED", "Topic", "declared", "decoded", "is_kafka", "packages_for", "read_kafka"]

MALFORMED = "ids_malformed"

_SCHEME = "kafka://"
_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_PORT = 9092


class Topic(NamedTuple):
    """``kafka://host:9092,other:9092/topic?option=value``: options go to the connector."""

    servers: str
    name: str
    options: dict[str, str]

    @classmethod
    def parse(cls, place: str) -> Topic:
        """The topic at ``place``.

        >>> Topic.parse("kafka://one,two:9093/events?startingOffsets=latest")
        Topic(servers='one:9092,two:9093', name='events', options={'startingOffsets': 'latest'})
        """
        parts = urlsplit(place)
        hosts = [host for host in parts.netloc.split(",") if host]
        name = parts.path.strip("/")
        if not hosts or not name or "/" in name or parts.fragment:
            raise SourceError(f"{place} names no topic; write kafka://host:{_PORT}/topic")
        servers = ",".join(h if _has_port(h) else f"{h}:{_PORT}" for h in hosts)
        return cls(servers, name, dict(parse_qsl(parts.query, keep_blank_values=True)))


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdigit()


def is_kafka(place: object) -> bool:
    """Whether a table or an output is a Kafka topic."""
    return isinstance(place, str) and place.startswith(_SCHEME)


def packages_for(places: Iterable[object]) -> list[str]:
    """What a session must fetch at its start to read and write ``places``.

    The connector is of Spark's own version: it reaches into Spark, and others may not fit.
    """
    return [f"{_CONNECTOR}:{pyspark.__version__}"] if any(map(is_kafka, places)) else []


def read_kafka(
    session: SparkSession,
    place: str,
    schema: str | None,
    *,
    stream: bool,
    options: Mapping[str, str],
) -> DataFrame:
    """The topic's messages as rows, from the earliest on unless ``startingOffsets`` says else.

    The declared columns, ``ids_origin``, and ``ids_malformed``: the text of a message that is no
    such JSON object, NULL for a good one.
    """
    topic = Topic.parse(place)
    if schema is None:
        raise SourceError(
            f"{place} has no schema of its own; declare it with "
            "ids.spark.sources.read(spark, place, schema='a STRING, b DOUBLE')"
        )
    columns = declared(schema)
    reader = session.readStream if stream else session.read
    messages = (
        reader.format("kafka")
        .option("kafka.bootstrap.servers", topic.servers)
        .option("subscribe", topic.name)
        .options(**{"startingOffsets": "earliest", **topic.options, **options})
        .load()
    )
    return decoded(messages, columns)


def declared(schema: str) -> T.StructType:
    """A schema as a person writes it: ``a STRING, b DOUBLE, event_time TIMESTAMP``."""
    try:
        parsed = T.StructType.fromDDL(schema)
    except PySparkException as error:
        raise SourceError(
            f"cannot read the schema {schema!r}; write it as 'a STRING, b DOUBLE, t TIMESTAMP'"
        ) from error
    if not isinstance(parsed, T.StructType) or not parsed.fields:
        raise SourceError(f"the schema {schema!r} names no columns; write 'a STRING, b DOUBLE'")
    return parsed


def decoded(messages: DataFrame, columns: T.StructType) -> DataFrame:
    """Kafka's own columns as rows of the declared ones."""
    target = T.StructType([*columns.fields, T.StructField(MALFORMED, T.StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED, "timeZone": "UTC"}
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
    malformed = F.expr(f"IF(empty, '', row.{MALFORMED})").alias(MALFORMED)
    return parsed.select(*values, ORIGIN, malformed)
