"""What a row costs on Spark as there are more of them, and as the window grows

``ids.spark.sql`` with a time window, survey included, from Parquet to the last emit.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import ids
from evaluation.benchmarks.record import describe, measure, write
from evaluation.benchmarks.spark_data import requests, session
from evaluation.beyond.scaling import window_script
from evaluation.sessions import to_nowhere

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["main", "script"]

SIZES = (1_000_000, 5_000_000, 20_000_000, 50_000_000)
LENGTHS = (1, 10, 100, 1000)


def script(minutes: int) -> str:
    """The query of the evaluation, over the requests of the benchmarks."""
    return window_script(minutes, "region = 'region-1'", "region = 'region-2' AND tier = 'premium'")


def main() -> None:
    """Measure, keep, show."""
    spark = session()
    found = []
    print("| rows | window | best | per row |\n|---:|---:|---:|---:|")
    cases = [(rows, 10) for rows in SIZES] + [(SIZES[1], minutes) for minutes in LENGTHS]
    for rows, minutes in cases:
        work = partial(_run, script(minutes), requests(spark, rows))
        name = f"{rows:,} rows, {minutes} minutes"
        record = measure("scaling", {name: work}, rows=rows, repetitions=2)
        best = record["contenders"][name]["best_s"]
        print(f"| {rows:,} | {minutes} min | {best:.2f} s | {best / rows * 1e9:.0f} ns |")
        found.append({"rows": rows, "minutes": minutes, "best_s": best})
    write({"name": "spark_scaling", "cases": found, **describe()})


def _run(query: str, rows: DataFrame) -> None:
    to_nowhere(ids.spark.sql(query, events=rows))
