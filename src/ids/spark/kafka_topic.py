"""Read and write Kafka topics (``kafka://host:9092/topic``), with one JSON object per message.

pyspark is imported only inside functions, because addresses are checked before Java starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from ids.errors import SourceError
from ids.model import unused
from ids.source import EPOCHS
from ids.spark.expression_sql import quoted, typed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

MALFORMED = "ids_malformed"

_SCHEME = "kafka://"
_PORT = 9092
_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_JSON = """map("ignoreNullFields", "false", "timeZone", "UTC", \
"timestampFormat", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'")"""


class Topic(NamedTuple):
    """The address of a topic: ``kafka://host:9092,other:9092/topic?option=value``.

    The options are passed to Spark's Kafka connector.
    """

    servers: str
    name: str
    options: dict[str, str]

    @classmethod
    def parse(cls, place: str) -> Topic:
        """Parse the address of a topic.

        >>> Topic.parse("kafka://one,two:9093/events?startingOffsets=latest")
        Topic(servers='one:9092,two:9093', name='events', options={'startingOffsets': 'latest'})
        """
        parts = urlsplit(place)
        hosts = [host for host in parts.netloc.split(",") if host]
        name = parts.path.strip("/")
        if not hosts or not name or "/" in name or parts.fragment:
            raise SourceError(f"{place} names no topic; use kafka://host:{_PORT}/topic")
        has_port = [host.rpartition(":")[2].isdigit() for host in hosts]
        servers = (h if p else f"{h}:{_PORT}" for h, p in zip(hosts, has_port, strict=True))
        return cls(",".join(servers), name, dict(parse_qsl(parts.query, keep_blank_values=True)))


def is_kafka(place: object) -> bool:
    """Return whether a table or an output is a Kafka topic."""
    return isinstance(place, str) and place.startswith(_SCHEME)


def packages_for(places: Iterable[object]) -> list[str]:
    """Return the packages that a session needs to read and write ``places``.

    The Kafka connector relies on Spark internals, so its version must match Spark's.
    """
    import pyspark

    return [f"{_CONNECTOR}:{pyspark.__version__}"] if any(map(is_kafka, places)) else []


def undeclared(place: str) -> SourceError:
    """Return the error for a topic whose columns are not declared."""
    return SourceError(
        f"{place} has no schema; declare its columns with schema='a STRING, b DOUBLE'"
    )


def read_kafka(
    session: SparkSession,
    place: str,
    schema: Mapping[str, str],
    *,
    stream: bool,
    options: Mapping[str, str],
) -> DataFrame:
    """Read a topic's messages as rows, from the earliest one unless ``startingOffsets`` is set.

    The result has the columns that ``decoded`` returns.
    """
    topic = Topic.parse(place)
    if not schema:
        raise undeclared(place)
    reader = session.readStream if stream else session.read
    received = (
        reader.format("kafka")
        .option("kafka.bootstrap.servers", topic.servers)
        .option("subscribe", topic.name)
        .options(**{"startingOffsets": "earliest", **topic.options, **options})
        .load()
    )
    return decoded(received, struct_of(schema))


def struct_of(schema: Mapping[str, str]) -> StructType:
    """Return the schema of the declared columns for Spark's JSON parser.

    Epoch times are parsed as text and converted later.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    types = {name: "STRING" if t.upper() in EPOCHS else t for name, t in schema.items()}
    written = ", ".join(f"{quoted(name)} {type_}" for name, type_ in types.items())
    try:
        parsed = StructType.fromDDL(written)
    except PySparkException as error:
        raise SourceError(
            f"cannot read the schema {written!r}; write it as 'a STRING, b DOUBLE, t TIMESTAMP'"
        ) from error
    assert isinstance(parsed, StructType)
    return parsed


def decoded(received: DataFrame, columns: StructType) -> DataFrame:
    """Parse messages, as received from Spark's Kafka connector, into rows.

    The result has the declared columns, ``ids_origin`` and ``ids_malformed``. The latter contains
    the text of a message that is not a JSON object with these columns, and is NULL otherwise.
    """
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    from ids.spark.frame import ORIGIN, added_column

    names = columns.fieldNames()
    corrupt = unused(MALFORMED, names)
    target = T.StructType([*columns.fields, T.StructField(corrupt, T.StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": corrupt, "timeZone": "UTC"}
    parsed = received.select(
        F.from_json(F.col("value").cast("string"), target, options).alias("row"),
        F.expr("value IS NULL").alias("empty"),
        F.expr(
            "named_struct('file', topic, 'start', CAST(partition AS BIGINT), 'row', offset)"
        ).alias(ORIGIN),
    )
    values = [
        F.expr(typed(f"row.{quoted(field.name)}", field.dataType.simpleString())).alias(field.name)
        for field in columns.fields
    ]
    # a message without a value deletes a key in Kafka, so it is not a row
    malformed = added_column(names, f"IF(empty, '', row.{corrupt})", MALFORMED)
    return parsed.select(*values, added_column(names, ORIGIN, ORIGIN), malformed)


def messages(data: DataFrame, keys: Sequence[str] = ()) -> DataFrame:
    """Convert rows to Kafka's ``key`` and ``value``, as JSON objects; without keys, key is NULL."""
    from ids.spark.frame import by_number

    fields = {name: f"c{number} AS {quoted(name)}" for number, name in enumerate(data.columns)}
    key = "CAST(NULL AS STRING)"
    if keys:
        key = f"to_json(struct({', '.join(fields[name] for name in keys)}), {_JSON})"
    value = f"to_json(struct({', '.join(fields.values())}), {_JSON})"
    return by_number(data).selectExpr(f"{key} AS key", f"{value} AS value")


def send(rows: DataFrame, topic: Topic) -> int:
    """Send ``messages`` to a topic and return their number."""
    # persisted to compute the rows only once; an Observation does not work with Kafka's writer
    rows = rows.persist()
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
