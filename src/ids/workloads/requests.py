"""A service's requests: the attributes that the synthetic and the stress workload share."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.workloads.arrivals import arrivals
from ids.workloads.draws import choice, uniform

__all__ = ["ENDPOINTS", "REGIONS", "TIERS", "requests"]

REGIONS = {"EU-West": 0.35, "US-East": 0.30, "AP-South": 0.20, "SA-East": 0.15}
TIERS = {"premium": 0.30, "basic": 0.70}
ENDPOINTS = {"/search": 0.40, "/feed": 0.30, "/checkout": 0.20, "/login": 0.10}
_START = datetime(2026, 3, 2, 9, tzinfo=UTC)
_MEAN_GAP = 50_000.0  # µs: twenty requests a second


def requests(spark: SparkSession, rows: int, seed: int) -> DataFrame:
    """``row``, ``event_time``, and the region, tier and endpoint of each request."""
    frame = arrivals(spark, rows, seed, _START, _MEAN_GAP)
    for name, shares in (("region", REGIONS), ("tier", TIERS), ("endpoint", ENDPOINTS)):
        draw = uniform(seed, name, F.col("row"))
        # a column each, so that the draw is computed once for all the comparisons
        frame = frame.withColumn("_draw", draw).withColumn(
            name, choice(F.col("_draw"), list(shares), list(shares.values()))
        )
    return frame.drop("_draw")
