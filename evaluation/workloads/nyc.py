"""nyc: taxi trips of the TLC, yellow or green, as one stream ordered by pickup."""

import csv
import re
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.errors import DataError, SourceError

_PLAUSIBLE = "fare_amount > 0 AND fare_amount <= 500"
_PICKUPS = ("tpep_pickup_datetime", "lpep_pickup_datetime")  # yellow, green
_NO_BOROUGH = {"Unknown", "N/A", ""}


def trips(spark: SparkSession, files: Sequence[Path]) -> DataFrame:
    """The trips by pickup, those of an instant by file and row; the last file is the zone table."""
    *months, zones = files
    borough = _borough(zones)
    read = [_month(spark, file, number, borough) for number, file in enumerate(months)]
    frame = reduce(DataFrame.unionByName, read)
    frame = frame.where(f"{_PLAUSIBLE} AND borough IS NOT NULL AND event_time IS NOT NULL")
    if frame.isEmpty():
        raise DataError("no trip has a plausible fare and a known borough; give other files")
    return frame.orderBy("event_time", "_file", "_row").drop("_file", "_row")


def _month(spark: SparkSession, file: Path, number: int, borough: Column) -> DataFrame:
    literal = re.sub(r"([\\*?\[\]{}])", r"\\\1", str(file.absolute()))  # no character a pattern
    frame = spark.read.parquet(f"file://{literal}")
    pickup = next((name for name in _PICKUPS if name in frame.columns), " or ".join(_PICKUPS))
    for name in (pickup, "fare_amount", "PULocationID", "VendorID", "payment_type"):
        if name not in frame.columns:
            raise SourceError(f"{file} has no column {name}; give trips as the TLC publishes them")
    return frame.select(
        F.col(pickup).cast("timestamp").alias("event_time"),
        F.col("fare_amount").cast("double").alias("fare_amount"),
        borough.alias("borough"),
        F.col("VendorID").try_cast("bigint").alias("vendor"),
        F.col("payment_type").try_cast("bigint").alias("payment"),
        F.lit(number).alias("_file"),
        F.col("_metadata.row_index").alias("_row"),
    )


def _borough(zones: Path) -> Column:
    """The known borough of a pickup, else NULL."""
    boroughs: dict[str, list[int]] = {}
    try:
        with zones.open(encoding="utf-8-sig", newline="") as stream:
            for zone in csv.DictReader(stream):
                boroughs.setdefault(zone["Borough"], []).append(int(zone["LocationID"]))
    except (OSError, KeyError, ValueError, TypeError) as error:
        columns = "it must have the columns LocationID and Borough"
        raise SourceError(f"{zones} is no zone table; {columns}") from error
    found = F.lit(None).cast("string")
    for name in boroughs.keys() - _NO_BOROUGH:
        found = F.when(F.col("PULocationID").isin(boroughs[name]), F.lit(name)).otherwise(found)
    return found
