"""What the Kafka tests do on Spark: a program, since the connector must be there from the start.

``kafka_jobs.py CONNECTOR SERVER`` prints one JSON object with what was read and written.
"""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.errors import IdsError
from ids.spark.failures import translated
from ids.spark.session import local_session
from ids.spark.sinks import write
from ids.spark.sources import MALFORMED, ORIGIN, read

SCHEMA = "region STRING, latency DOUBLE, hits BIGINT, at TIMESTAMP"
MESSAGES = [
    '{"region": "eu", "latency": 1.5, "hits": 9007199254740993, "at": "2024-01-01T00:00:00.5Z"}',
    '{"region": null, "at": "2024-03-31 02:30:00"}',
    "{not json",
    '{"region": "us", "latency": "slow"}',
    None,
]


def run(connector: str, server: str) -> dict[str, Any]:
    spark = local_session("local[2]", packages=[connector])
    try:
        place = f"kafka://{server}/events?kafka.request.timeout.ms=20000"
        sent = spark.createDataFrame([(m,) for m in MESSAGES], "value STRING").coalesce(1)
        with translated():
            sent.write.format("kafka").options(
                **{"kafka.bootstrap.servers": server, "topic": "events"}
            ).save()
        table = read(spark, place, schema=SCHEMA)
        return {
            "batch": _rows(table),
            "stream": _rows(_streamed(spark, place)),
            "written": _written(spark, server),
            "unknown topic": _refusal(spark, f"kafka://{server}/no-such-topic"),
            "no broker": _refusal(spark, "kafka://127.0.0.1:1/events"),
        }
    finally:
        spark.stop()


def _rows(table: DataFrame) -> list[Any]:
    shown = table.orderBy(f"{ORIGIN}.row").select(
        "region", "latency", "hits", F.unix_micros("at").alias("at"), MALFORMED
    )
    return [list(row) for row in shown.collect()]


def _streamed(spark: SparkSession, place: str) -> DataFrame:
    with tempfile.TemporaryDirectory() as checkpoint, translated():
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
    back = (
        spark.read.format("kafka")
        .options(**{"kafka.bootstrap.servers": server, "subscribe": "results"})
        .load()
        .selectExpr("CAST(key AS STRING) AS k", "CAST(value AS STRING) AS v")
    )
    return [count, [[json.loads(r.k), json.loads(r.v)] for r in back.collect()]]


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


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(*sys.argv[1:])))
