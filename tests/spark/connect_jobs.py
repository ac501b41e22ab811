"""What the Connect tests do: a program, since a process speaks to Spark in one way only.

``python -m tests.spark.connect_jobs URL DATA OUT`` writes each job's answer to ``OUT/JOB.parquet``
and prints the refusal it met as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from ids.errors import IdsError
from ids.spark import local_session, sql, translated, write

PREDICATES = """
REGISTER PREDICATE eu AS (region = 'EU') ON events;
REGISTER PREDICATE slow AS (latency > 40) ON events;
SELECT AVG(latency) AS mean, SHAPLEY_ATTRIBUTE(AVG(latency), eu WITH (SHARE, LIFT)) AS phi,
       SHAPLEY_DELTA(VAR_POP(latency), eu AND NOT slow) AS change
FROM events WINDOW w AS (PARTITION BY shop ORDER BY event_time
"""
TIME = f"{PREDICATES} RANGE INTERVAL '10' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE) EMIT CHANGES;"
COUNT = f"{PREDICATES} ROWS 50 PRECEDING SLIDE 7 ROWS) EMIT CHANGES;"


def run(url: str, data: Path, out: Path) -> dict[str, str]:
    spark = local_session(url)
    try:
        held = spark.createDataFrame(pq.read_table(data))
        pq.write_table(sql(TIME, events=held).toArrow(), out / "time.parquet")
        pq.write_table(sql(COUNT, events=held).toArrow(), out / "count.parquet")
        write(sql(TIME, spark=spark, events=str(data)), out / "files.parquet")
        _stream(spark, data, out)
        return {"bad row": _refusal(spark)}
    finally:
        spark.stop()


def _stream(spark: SparkSession, data: Path, out: Path) -> None:
    schema = spark.read.parquet(str(data)).schema
    stream = spark.readStream.schema(schema).parquet(str(data))
    query = (
        sql(TIME, events=stream)
        .writeStream.format("memory")
        .queryName("emits")
        .option("checkpointLocation", str(out / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    emits = spark.table("emits").orderBy("emit_at", "shop")
    pq.write_table(emits.toArrow(), out / "stream.parquet")


def _refusal(spark: SparkSession) -> str:
    held = spark.sql("SELECT TIMESTAMP'2026-01-01 00:00:00' AS at, double('NaN') AS x")
    query = "SELECT SUM(x) AS s FROM t WINDOW w AS (ORDER BY at ROWS 2 PRECEDING) EMIT CHANGES;"
    try:
        with translated():
            sql(query, t=held).toArrow()
    except IdsError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"


if __name__ == "__main__":
    url, data, out = sys.argv[1:]
    sys.stdout.write(json.dumps(run(url, Path(data), Path(out))))
