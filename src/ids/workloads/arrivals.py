"""Poisson arrivals: when each row comes, without one task that counts them all."""

from __future__ import annotations

from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ids.workloads.draws import exponential, uniform

__all__ = ["BLOCK", "arrivals"]

BLOCK = 100_000


def arrivals(
    spark: SparkSession, rows: int, seed: int, start: datetime, mean_gap: float
) -> DataFrame:
    """``row`` (bigint, from 0) and ``event_time``, ``mean_gap`` microseconds apart on average.

    Partition i holds the rows of block i, BLOCK of them, in order; so a file a partition is the
    same file on any number of cores. Within its block a row's time is a running sum of gaps; what
    the blocks before took is a sum a block, one short table that every task gets.
    """
    gap = F.floor(exponential(uniform(seed, "gap", F.col("row")), mean_gap))
    block = F.expr(f"row div {BLOCK}").cast("int")
    gaps = spark.range(rows).select(F.col("id").alias("row"))
    gaps = gaps.select("row", gap.alias("gap"), block.alias("block"))
    blocks = -(-rows // BLOCK)
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
