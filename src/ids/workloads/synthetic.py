"""synthetic: lognormal latencies, and an incident planted in the middle of the stream."""

from __future__ import annotations

import math

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.workloads.catalogue import Recipe
from ids.workloads.draws import uniform, with_normal
from ids.workloads.made import Made
from ids.workloads.requests import requests

__all__ = ["INCIDENT", "build", "events", "incident_rows"]

INCIDENT = "region = 'EU-West' AND tier = 'premium'"
_SHIFT = 4.0
_MEDIAN = 40.0  # ms
_SIGMA = 0.5  # of the latency's logarithm
_STEP = 1e6  # latencies are whole nanoseconds
_ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'"
_SHARE_BEFORE, _SHARE_UNTIL = 48, 52  # hundredths of the rows


def events(spark: SparkSession, rows: int, seed: int, shift: float = _SHIFT) -> DataFrame:
    """``event_time``, ``region``, ``tier``, ``endpoint`` and ``latency`` in milliseconds.

    In the middle 4 % of the rows the latencies of premium requests from EU-West are ``shift`` times
    what they would be. Lazy: nothing runs before the frame is used.
    """
    return _numbered(spark, rows, seed, shift).drop("row")


def incident_rows(rows: int) -> tuple[int, int]:
    """The first row of the incident, and the first after it."""
    return rows * _SHARE_BEFORE // 100, rows * _SHARE_UNTIL // 100


def build(spark: SparkSession, recipe: Recipe) -> Made:
    """The events, and which of them were slowed down."""
    rows = recipe.known_rows
    numbered = _numbered(spark, rows, recipe.seed, _SHIFT)
    first, end = incident_rows(rows)
    slowed = numbered.where(_in_incident(rows)).agg(
        F.count("*").alias("rows"),
        F.date_format(F.min("event_time"), _ISO).alias("first"),
        F.date_format(F.max("event_time"), _ISO).alias("last"),
    )
    found = slowed.collect()[0]
    truth = {
        "predicate": INCIDENT,
        "measure": "latency",
        "factor": _SHIFT,
        "from_row": first,
        "before_row": end,
        "rows": found["rows"],
        "first_event_time": found["first"],
        "last_event_time": found["last"],
    }
    return Made(numbered.drop("row"), truth)


def _numbered(spark: SparkSession, rows: int, seed: int, shift: float) -> DataFrame:
    frame = with_normal(
        requests(spark, rows, seed), "_normal", uniform(seed, "latency", F.col("row"))
    )
    latency = F.exp(F.lit(math.log(_MEDIAN)) + F.lit(_SIGMA) * F.col("_normal"))
    calm = F.rint(latency * F.lit(_STEP)) / F.lit(_STEP)
    slowed = frame.withColumn("latency", calm).drop("_normal")
    factor = F.when(_in_incident(rows), F.lit(shift)).otherwise(F.lit(1.0))
    return slowed.withColumn("latency", F.col("latency") * factor)


def _in_incident(rows: int) -> Column:
    first, end = incident_rows(rows)
    row = F.col("row")
    return (row >= F.lit(first)) & (row < F.lit(end)) & F.expr(INCIDENT)
