"""Requests as Parquet, made once by Spark and kept in the user's cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["ENDPOINTS", "REGIONS", "TIERS", "requests", "session"]

REGIONS = [f"region-{i}" for i in range(8)]
TIERS = ["premium", "basic", "free"]
ENDPOINTS = [f"/endpoint/{i}" for i in range(50)]


def session() -> SparkSession:
    """Two cores, so that figures from different machines speak of the same thing."""
    from ids.spark.session import local_session

    return local_session("local[2]", **{"spark.sql.shuffle.partitions": "4"})


def requests(spark: SparkSession, rows: int, files: int = 8) -> DataFrame:
    """So many requests, 3.6 ms apart: region (8), tier (3), endpoint (50), lognormal latency."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ids-benchmarks"
    place = cache / f"requests-{rows}-{files}"
    if not (place / "_SUCCESS").exists():
        spark.range(0, rows, 1, files).selectExpr(
            "timestamp_micros(1700000000000000 + id * 3600) AS event_time",
            "concat('region-', pmod(xxhash64(id, 1), 8)) AS region",
            "element_at(array('premium', 'basic', 'free'), "
            "cast(pmod(xxhash64(id, 2), 3) + 1 as int)) AS tier",
            "concat('/endpoint/', pmod(xxhash64(id, 3), 50)) AS endpoint",
            "exp(3.7 + 0.5 * randn(7)) AS latency",
        ).write.mode("overwrite").parquet(str(place))
    return spark.read.parquet(str(place))
