"""What the Kafka tests do on Spark: a program, since the connector must be there from the start.

``python -m tests.spark.kafka_jobs JARS SERVER JOB …`` prints what the job gives as JSON; JARS has
commas between. A job is ``round_trip``, ``send TOPIC FILE`` or ``received TOPIC``.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.errors import IdsError
from ids.spark import local_session, read, translated, write
from ids.spark.frame import ORIGIN
from ids.spark.kafka_topic import MALFORMED

SCHEMA = "region STRING, latency DOUBLE, hits BIGINT, at TIMESTAMP"
MESSAGES = [
    '{"region": "eu", "latency": 1.5, "hits": 9007199254740993, "at": "2024-01-01T00:00:00.5Z"}',
    '{"region": null, "at": "2024-03-31 02:30:00"}',
    "{not json",
    '{"region": "us", "latency": "slow"}',
    None,
]


def run(jars: str, server: str, job: str, *arguments: str) -> Any:
    spark = local_session("local[2]", **{"spark.jars": jars, "spark.driver.memory": "1g"})
    try:
        with translated():
            return _JOBS[job](spark, server, *arguments)
    finally:
        spark.stop()


def _round_trip(spark: SparkSession, server: str) -> dict[str, Any]:
    """Everything that can be asked of topics at rest."""
    place = f"kafka://{server}/events?kafka.request.timeout.ms=20000"
    sent = spark.createDataFrame([(m, 0) for m in MESSAGES], "value STRING, partition INT")
    _write(sent.coalesce(1), server, "events")
    return {
        "batch": _rows(read(spark, place, schema=SCHEMA)),
        "stream": _rows(_streamed(spark, place)),
        "written": _written(spark, server),
        "unknown topic": _refusal(spark, f"kafka://{server}/no-such-topic"),
        "no broker": _refusal(spark, "kafka://127.0.0.1:1/events"),
    }


def _send(spark: SparkSession, server: str, topic: str, file: str) -> int:
    """Each line of a file is a message; they go to two partitions in turn."""
    lines = spark.read.text(file).coalesce(1)
    turn = F.expr("CAST(monotonically_increasing_id() % 2 AS INT)").alias("partition")
    sent = lines.select("value", turn)
    _write(sent, server, topic)
    return sent.count()


def _received(spark: SparkSession, server: str, topic: str) -> list[Any]:
    """All messages of a topic: partition, offset, key, value, and headers as an object."""
    messages = (
        spark.read.format("kafka")
        .options(**{"kafka.bootstrap.servers": server, "subscribe": topic})
        .option("includeHeaders", "true")
        .load()
        .orderBy("partition", "offset")
        .selectExpr(
            "partition",
            "offset",
            "CAST(key AS STRING) AS key",
            "CAST(value AS STRING) AS value",
            "to_json(map_from_entries(transform(headers, "
            "h -> struct(h.key, CAST(h.value AS STRING))))) AS headers",
        )
    )
    return [[*row[:4], json.loads(row.headers or "{}")] for row in messages.collect()]


def _write(messages: DataFrame, server: str, topic: str) -> None:
    options = {"kafka.bootstrap.servers": server, "topic": topic}
    messages.write.format("kafka").options(**options).save()


def _rows(table: DataFrame) -> list[Any]:
    shown = table.orderBy(f"{ORIGIN}.row").select(
        "region", "latency", "hits", F.unix_micros("at").alias("at"), MALFORMED
    )
    return [list(row) for row in shown.collect()]


def _streamed(spark: SparkSession, place: str) -> DataFrame:
    with tempfile.TemporaryDirectory() as checkpoint:
        stream = read(spark, place, schema=SCHEMA, stream=True)
        query = (
            stream.writeStream.format("memory")
            .queryName("streamed")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return spark.table("streamed")


def _written(spark: SparkSession, server: str) -> list[Any]:
    """A result with keys goes out, and is read again as it lies in the topic."""
    result = spark.sql(
        "SELECT * FROM VALUES ('eu', TIMESTAMP'2024-01-01 00:00:00.25Z', 3L, 1.5D), "
        "(NULL, TIMESTAMP'1969-12-31 23:59:59Z', 1L, NULL) AS t(region, emit_at, n, phi)"
    )
    count = write(result.coalesce(1), f"kafka://{server}/results", keys=["region"])
    back = _received(spark, server, "results")
    return [count, [[json.loads(key), json.loads(value)] for _, _, key, value, _ in back]]


def _refusal(spark: SparkSession, place: str) -> str:
    options = {
        "kafka.request.timeout.ms": "3000",
        "kafka.default.api.timeout.ms": "3000",
        "fetchOffset.numRetries": "1",
    }
    try:
        with translated():
            read(spark, place, schema=SCHEMA, options=options).count()
    except IdsError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"


_JOBS: dict[str, Callable[..., Any]] = {
    "round_trip": _round_trip,
    "send": _send,
    "received": _received,
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(*sys.argv[1:])))
