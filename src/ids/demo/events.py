"""Requests to a service, made by a Spark job, with an incident planted in the middle.

Every value is a function of the seed and of the row's number (see ``draws``), so the same rows come
out at any parallelism, and the first rows of a longer stream are those of a shorter one.
"""

from __future__ import annotations

import math
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ids.demo import SEED
from ids.demo.draws import choice, exponential, uniform, with_normal
from ids.errors import SourceError
from ids.sink.files import whole_directory

__all__ = [
    "ENDPOINTS",
    "INCIDENT",
    "REGIONS",
    "SHIFT",
    "TIERS",
    "arrivals",
    "events",
    "fixed_session",
    "generate",
    "incident_rows",
    "requests",
    "write_parts",
]

REGIONS = {"EU-West": 0.35, "US-East": 0.30, "AP-South": 0.20, "SA-East": 0.15}
TIERS = {"premium": 0.30, "basic": 0.70}
ENDPOINTS = {"/search": 0.40, "/feed": 0.30, "/checkout": 0.20, "/login": 0.10}
INCIDENT = "region = 'EU-West' AND tier = 'premium'"
SHIFT = 4.0

_FILES = 10
_START = datetime(2026, 3, 2, 9, tzinfo=UTC)
_MEAN_GAP = 50_000.0  # µs: twenty requests a second
_MEDIAN = 40.0  # ms
_SIGMA = 0.5  # of the latency's logarithm
_STEP = 1e6  # latencies are whole nanoseconds
_SHARE_BEFORE, _SHARE_UNTIL = 48, 52  # hundredths of the rows
# What a session's owner could have set otherwise, and that would show in the rows or the files.
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
}


def generate(spark: SparkSession, rows: int, directory: Path) -> None:
    """Write the events as ten Parquet files, in a directory that is whole or not there.

    Those of an earlier run are taken as they are.
    """
    if directory.exists():
        found = _rows_in(directory)
        if found != rows:
            raise SourceError(
                f"{directory} holds {found:,} requests, not {rows:,}; give a new directory, or "
                "the same number of requests"
            )
        return
    with whole_directory(directory) as hidden:
        write_parts(events(fixed_session(spark), rows, SEED, -(-rows // _FILES)), hidden)


def events(
    spark: SparkSession, rows: int, seed: int, block: int, shift: float = SHIFT
) -> DataFrame:
    """``event_time``, ``region``, ``tier``, ``endpoint`` and ``latency`` in milliseconds.

    In the middle 4 % of the rows the latencies of premium requests from EU-West are ``shift`` times
    what they would be. Lazy: nothing runs before the frame is used.
    """
    frame = requests(spark, rows, seed, block)
    frame = with_normal(frame, "_normal", uniform(seed, "latency", F.col("row")))
    latency = F.exp(F.lit(math.log(_MEDIAN)) + F.lit(_SIGMA) * F.col("_normal"))
    calm = F.rint(latency * F.lit(_STEP)) / F.lit(_STEP)
    first, end = incident_rows(rows)
    row = F.col("row")
    slow = (row >= F.lit(first)) & (row < F.lit(end)) & F.expr(INCIDENT)
    factor = F.when(slow, F.lit(shift)).otherwise(F.lit(1.0))
    return frame.withColumn("latency", calm * factor).drop("row", "_normal")


def incident_rows(rows: int) -> tuple[int, int]:
    """The first row of the incident, and the first after it."""
    return rows * _SHARE_BEFORE // 100, rows * _SHARE_UNTIL // 100


def requests(spark: SparkSession, rows: int, seed: int, block: int) -> DataFrame:
    """``row``, ``event_time``, and the region, tier and endpoint of each request."""
    frame = arrivals(spark, rows, seed, block, _START, _MEAN_GAP)
    for name, shares in (("region", REGIONS), ("tier", TIERS), ("endpoint", ENDPOINTS)):
        draw = uniform(seed, name, F.col("row"))
        # a column each, so that the draw is computed once for all the comparisons
        frame = frame.withColumn("_draw", draw).withColumn(
            name, choice(F.col("_draw"), list(shares), list(shares.values()))
        )
    return frame.drop("_draw")


def arrivals(
    spark: SparkSession, rows: int, seed: int, block: int, start: datetime, mean_gap: float
) -> DataFrame:
    """Poisson arrivals: ``row`` (bigint, from 0) and ``event_time``, ``mean_gap`` µs on average.

    Partition i holds the rows of block i, ``block`` of them, in order; so a file a partition has
    the same rows on any number of cores. Within its block a row's time is a running sum of gaps;
    what the blocks before took is a sum a block, one short table that every task gets.
    """
    gap = F.floor(exponential(uniform(seed, "gap", F.col("row")), mean_gap))
    number = F.expr(f"row div {block}").cast("int")
    gaps = spark.range(rows).select(F.col("id").alias("row"))
    gaps = gaps.select("row", gap.alias("gap"), number.alias("block"))
    blocks = -(-rows // block)
    within = Window.partitionBy("block").orderBy("row").rowsBetween(Window.unboundedPreceding, 0)
    waited = gaps.repartitionById(blocks, F.col("block")).withColumn(
        "waited", F.sum("gap").over(within)
    )
    before = Window.orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    sums = gaps.groupBy("block").agg(F.sum("gap").alias("took"))
    begun = sums.select("block", F.coalesce(F.sum("took").over(before), F.lit(0)).alias("begun"))
    placed = waited.join(F.broadcast(begun), "block")
    return placed.select("row", _instant(start, F.col("begun") + F.col("waited")))


def _instant(start: datetime, after: Column) -> Column:
    microseconds = round(start.timestamp()) * 1_000_000
    return F.timestamp_micros(F.lit(microseconds) + after).alias("event_time")


def fixed_session(spark: SparkSession) -> SparkSession:
    """A session beside ``spark`` with the settings that fix the rows; ``spark`` keeps its own."""
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    return session


def write_parts(frame: DataFrame, directory: Path) -> None:
    """Write partition i as ``part-0000i.parquet``; ``directory`` is empty, or new.

    Spark puts a random name on each file it writes, and a checksum beside it: it writes into a
    scratch directory, and the files are moved out under names that say only which part they are.
    A stream takes files by the time they were changed, so each is a second younger than the one
    before.
    """
    directory.mkdir(exist_ok=True)
    scratch = directory / "scratch"
    frame.write.parquet("file://" + str(scratch.absolute()))
    parts = sorted(scratch.glob("part-*.parquet"))
    if not parts:
        raise SourceError(
            f"Spark wrote no file into {directory}; with a cluster, give a directory that every "
            "worker shares"
        )
    begun = time.time() - len(parts)
    for number, part in enumerate(parts):
        os.utime(part, (begun + number, begun + number))
        part.rename(directory / f"part-{number:05}.parquet")
    rmtree(scratch)


def _rows_in(directory: Path) -> int:
    try:
        return sum(pq.read_metadata(file).num_rows for file in directory.glob("*.parquet"))
    except (OSError, pa.ArrowException) as error:
        fault = str(error).strip().split("\n", maxsplit=1)[0]
        raise SourceError(
            f"cannot read {directory}: {fault}; remove it, or give a new directory"
        ) from error
