"""What a row costs on Spark as there are more of them, and as the window grows

``ids.spark.sql`` with a time window, survey included, from Parquet to the last emit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import ids
from benchmarks.record import describe, measure, write
from benchmarks.spark_data import requests, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["main"]

SIZES = (1_000_000, 5_000_000, 20_000_000, 50_000_000)
LENGTHS = ("1", "10", "100", "1000")
SCRIPT = """
SELECT SHAPLEY_ATTRIBUTE(AVG(latency), region = 'region-1' WITH (SHARE, LIFT)) AS one,
       SHAPLEY_ATTRIBUTE(VAR_POP(latency), region = 'region-2' AND tier = 'premium') AS two
FROM events WINDOW w AS (
    ORDER BY event_time RANGE INTERVAL '{length}' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE)
EMIT CHANGES
"""


def main() -> None:
    """Measure, keep, show."""
    spark = session()
    found = []
    print("| rows | window | best | per row |\n|---:|---:|---:|---:|")
    cases = [(rows, "10") for rows in SIZES] + [(SIZES[1], length) for length in LENGTHS]
    for rows, length in cases:
        work = partial(_run, SCRIPT.format(length=length), requests(spark, rows))
        name = f"{rows:,} rows, {length} minutes"
        record = measure("scaling", {name: work}, rows=rows, repetitions=2)
        best = record["contenders"][name]["best_s"]
        print(f"| {rows:,} | {length} min | {best:.2f} s | {best / rows * 1e9:.0f} ns |")
        found.append({"rows": rows, "minutes": int(length), "best_s": best})
    write({"name": "spark_scaling", "cases": found, **describe()})


def _run(script: str, rows: DataFrame) -> None:
    ids.spark.sql(script, events=rows).write.format("noop").mode("overwrite").save()
