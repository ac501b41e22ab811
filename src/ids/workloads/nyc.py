"""nyc: taxi trips of the TLC, yellow or green, as one stream ordered by pickup."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.errors import DataError, SourceError
from ids.workloads.arrivals import BLOCK
from ids.workloads.draws import ladder
from ids.workloads.made import Made
from ids.workloads.writing import place

__all__ = ["FARES", "build"]

FARES = (0.0, 500.0)  # plausible: above the first, at most the second
_PICKUPS = ("tpep_pickup_datetime", "lpep_pickup_datetime")  # yellow, green
_COLUMNS = ("fare_amount", "PULocationID", "VendorID", "payment_type")
_NO_BOROUGH = {"Unknown", "N/A", ""}
_HOUR = 3_600_000_000  # µs


def build(spark: SparkSession, files: Sequence[Path]) -> Made:
    """``event_time``, ``fare_amount``, ``borough``, ``vendor`` and ``payment`` of each trip.

    The last of the files is the zone table. Trips picked up at the same instant keep their order:
    by file, then by row. A file begins on the hour in which BLOCK rows have come since the last.
    """
    *trips, zones = files
    borough = _borough(_zones(zones))
    frame = _trips(spark, trips[0], 0, borough)
    for number, file in enumerate(trips[1:], 1):
        frame = frame.unionByName(_trips(spark, file, number, borough))
    low, high = FARES
    fare = F.col("fare_amount")
    plausible = (fare > F.lit(low)) & (fare <= F.lit(high))
    known = F.col("borough").isNotNull() & F.col("event_time").isNotNull()
    frame = frame.where(plausible & known).withColumn(
        "_hour", F.expr(f"unix_micros(event_time) div {_HOUR}")
    )
    steps = _steps(frame)
    file_of = ladder(F.col("_hour"), steps, range(len(steps) + 1))
    laid_out = frame.repartitionById(len(steps) + 1, file_of.cast("int"))
    ordered = laid_out.sortWithinPartitions("event_time", "_file", "_row")
    return Made(ordered.select("event_time", "fare_amount", "borough", "vendor", "payment"), None)


def _trips(spark: SparkSession, file: Path, number: int, borough: Column) -> DataFrame:
    pickup = _pickup(file)
    return spark.read.parquet(place(file)).select(
        F.col(pickup).cast("timestamp").alias("event_time"),
        F.col("fare_amount").cast("double").alias("fare_amount"),
        borough.alias("borough"),
        F.col("VendorID").try_cast("bigint").alias("vendor"),
        F.col("payment_type").try_cast("bigint").alias("payment"),
        F.lit(number).alias("_file"),
        F.col("_metadata.row_index").alias("_row"),
    )


def _pickup(file: Path) -> str:
    """The pickup column's name, once the file is known to hold trips."""
    try:
        names = pa.parquet.read_schema(file).names
    except (OSError, pa.ArrowException) as error:
        fault = str(error).strip().split("\n", maxsplit=1)[0]
        raise SourceError(f"cannot read {file}: {fault}") from error
    found = [name for name in _PICKUPS if name in names]
    missing = [name for name in _COLUMNS if name not in names]
    if not found or missing:
        lacks = missing[0] if found else " or ".join(_PICKUPS)
        raise SourceError(f"{file} has no column {lacks}; give trips as the TLC publishes them")
    return found[0]


def _zones(table: Path) -> dict[str, list[int]]:
    """The zones of each known borough."""
    boroughs: dict[str, list[int]] = {}
    try:
        with table.open(encoding="utf-8-sig", newline="") as stream:
            for zone in csv.DictReader(stream):
                if zone["Borough"] not in _NO_BOROUGH:
                    boroughs.setdefault(zone["Borough"], []).append(int(zone["LocationID"]))
    except OSError as error:
        raise SourceError(f"cannot read {table}: {error.strerror}") from error
    except (KeyError, ValueError, TypeError) as error:
        raise SourceError(
            f"{table} is no zone table; it must have the columns LocationID and Borough"
        ) from error
    return boroughs


def _borough(zones: dict[str, list[int]]) -> Column:
    found = F.lit(None).cast("string")
    for borough, numbers in zones.items():
        found = F.when(F.col("PULocationID").isin(numbers), F.lit(borough)).otherwise(found)
    return found


def _steps(frame: DataFrame) -> list[int]:
    """The hours with which a new file begins: a count an hour decides, so any plan agrees."""
    counts = frame.groupBy("_hour").count().orderBy("_hour").collect()
    if not counts:
        raise DataError("no trip has a plausible fare and a known borough; give other files")
    steps: list[int] = []
    rows = 0
    for hour, count in counts:
        if rows >= BLOCK:
            steps.append(hour)
            rows = 0
        rows += count
    return steps
