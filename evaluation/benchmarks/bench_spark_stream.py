"""Micro-batches of 200,000 rows through ``ids.spark.start``, next to a plain streaming groupBy

The same Parquet files, one a trigger, two cores. The plain stream counts and sums by pane and the
three columns, in doubles, kept by Spark's own state store; ours attributes four predicates over ten
minutes, exactly, and writes its emits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import ids
from evaluation.baselines.spark_groupby import drill_down
from evaluation.benchmarks.record import describe, write
from evaluation.benchmarks.spark_data import requests, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["main"]

BATCH = 200_000
BATCHES = 30
WARM = 5
SCRIPT = """
SELECT SHAPLEY_ATTRIBUTE(AVG(latency), region = 'region-1' WITH (SHARE, LIFT)) AS one,
       SHAPLEY_ATTRIBUTE(AVG(latency), tier = 'premium') AS two,
       SHAPLEY_ATTRIBUTE(VAR_POP(latency), region = 'region-1' AND tier = 'premium') AS three,
       SHAPLEY_ATTRIBUTE(VAR_POP(latency), endpoint = '/endpoint/7') AS four
FROM events WINDOW w AS (
    ORDER BY event_time RANGE INTERVAL '10' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE)
EMIT CHANGES
"""


def main() -> None:
    """Measure, keep, show."""
    spark = session()
    rows = requests(spark, BATCH * BATCHES, BATCHES)
    place = rows.inputFiles()[0].removeprefix("file://").rsplit("/", 1)[0]
    found: dict[str, Any] = {}
    print("| | p50 | p99 | rows/s |\n|---|---:|---:|---:|")
    contenders: dict[str, Callable[[DataFrame, Path], list[float]]] = {
        "plain streaming groupBy": _plain,
        "ids.spark.start": _ours,
    }
    for label, run in contenders.items():
        seconds = run(_source(spark, place), Path(tempfile.mkdtemp(prefix="ids-bench-")))[WARM:]
        p50, p99 = (float(p) for p in np.percentile(seconds, [50, 99]))
        rate = BATCH * len(seconds) / sum(seconds)
        print(f"| {label} | {p50:.2f} s | {p99:.2f} s | {rate:,.0f} |")
        found[label] = {"p50_s": p50, "p99_s": p99, "rows_per_s": rate}
    ours, plain = found["ids.spark.start"]["p50_s"], found["plain streaming groupBy"]["p50_s"]
    print(f"\np50, relative: {ours / plain:.2f} ×")
    write({"name": "spark_stream", "batch": BATCH, "contenders": found, **describe()})


def _source(spark: SparkSession, place: str) -> DataFrame:
    schema = spark.read.parquet(place).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(place)


def _plain(rows: DataFrame, folder: Path) -> list[float]:
    summed = drill_down(
        rows.withWatermark("event_time", "0 seconds"), ["region", "tier", "endpoint"], "1 minute"
    )
    writer = summed.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "check")).trigger(availableNow=True)
    return _timed(query.start())


def _ours(rows: DataFrame, folder: Path) -> list[float]:
    running = ids.spark.start(
        SCRIPT, checkpoint=folder / "check", output=f"{folder}/out/", once=True, events=rows
    )
    return _timed(running.query)


def _timed(query: Any) -> list[float]:
    """The seconds of each micro-batch that had rows, as Spark itself reports them."""
    seconds: dict[int, float] = {}
    begun = perf_counter()
    while query.isActive:
        query.awaitTermination(0.5)
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                seconds[progress["batchId"]] = progress["durationMs"]["triggerExecution"] / 1e3
        assert perf_counter() - begun < 3600
    return [seconds[batch] for batch in sorted(seconds)]
