"""Generate requests to a service with Spark, with an incident in the middle.

Each random number is a function of the seed, a stream name and the row number. So the rows do not
depend on the parallelism, and a longer stream begins with the rows of a shorter one. Spark's
``log``, ``exp`` and ``pow`` are Java's StrictMath, and everything else here is exact or correctly
rounded by IEEE 754, so the bits are the same on every machine.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from ids.demo import SEED
from ids.errors import SourceError
from ids.sink import whole_directory

# Wichura's algorithm AS 241 (PPND16): the normal quantile to about 1e-16. For each region, the
# coefficients of the numerator and of the denominator, the constant term first.
_CENTRE = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3),
)  # fmt: skip
_FLANK = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)  # fmt: skip
_TAIL = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
     7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15),
)  # fmt: skip
_WIDTH_OF_CENTRE = 0.425
_END_OF_FLANK = 5.0


def hashed(seed: int, stream: str, of: Column) -> Column:
    """Return 64 random bits, as a bigint, for each value of the bigint ``of``."""
    digest = hashlib.sha256(f"{seed}/{stream}".encode()).digest()
    return F.xxhash64(F.lit(int.from_bytes(digest[:8], "big", signed=True)), of)


def uniform(seed: int, stream: str, of: Column) -> Column:
    """Return uniform draws from (0, 1), both ends excluded: the midpoints of 2^52 equal cells."""
    cell = F.shiftrightunsigned(hashed(seed, stream, of), 12).cast("double")
    return (cell + F.lit(0.5)) * F.lit(2.0**-52)


def exponential(draw: Column, mean: float) -> Column:
    """Turn a uniform draw into an exponential one with the given mean."""
    return F.lit(-mean) * F.log(draw)


def choice(draw: Column, values: Sequence[object], weights: Sequence[float]) -> Column:
    """Turn a uniform draw into one of the values, with probability proportional to its weight."""
    total = sum(weights)
    return ladder(draw, [reached / total for reached in accumulate(weights[:-1])], values)


def ladder(of: Column, steps: Sequence[float], values: Sequence[object]) -> Column:
    """Return ``values[i]`` if exactly i of the ascending ``steps`` are at most ``of``.

    It is a tree of CASEs, so a hundred steps cost seven comparisons. NULL gives the last value.
    """
    if not steps:
        return F.lit(values[0])
    middle = len(steps) // 2
    below = ladder(of, steps[:middle], values[: middle + 1])
    above = ladder(of, steps[middle + 1 :], values[middle + 1 :])
    return F.when(of < F.lit(steps[middle]), below).otherwise(above)


def with_normal(frame: DataFrame, name: str, draw: Column) -> DataFrame:
    """Add a standard normal column: the quantile of a uniform draw."""
    u, side, depth = F.col("_u"), F.col("_side"), F.col("_depth")
    in_centre = F.abs(side) <= F.lit(_WIDTH_OF_CENTRE)
    outer = F.sqrt(-F.log(F.least(u, F.lit(1.0) - u)))
    # separate columns, so that Spark computes the draw and the logarithm only once
    staged = (
        frame.withColumn("_u", draw)
        .withColumn("_side", u - F.lit(0.5))
        .withColumn("_depth", F.when(in_centre, F.lit(0.180625) - side * side).otherwise(outer))
    )
    flank = _ratio(_FLANK, depth - F.lit(1.6))
    tail = _ratio(_TAIL, depth - F.lit(_END_OF_FLANK))
    outside = F.signum(side) * F.when(depth <= F.lit(_END_OF_FLANK), flank).otherwise(tail)
    quantile = F.when(in_centre, side * _ratio(_CENTRE, depth)).otherwise(outside)
    return staged.withColumn(name, quantile).drop("_u", "_side", "_depth")


def _ratio(coefficients: tuple[Sequence[float], Sequence[float]], x: Column) -> Column:
    return _polynomial(coefficients[0], x) / _polynomial(coefficients[1], x)


def _polynomial(coefficients: Sequence[float], x: Column) -> Column:
    value = F.lit(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + F.lit(coefficient)
    return value


REGIONS = {"EU-West": 0.35, "US-East": 0.30, "AP-South": 0.20, "SA-East": 0.15}
TIERS = {"premium": 0.30, "basic": 0.70}
ENDPOINTS = {"/search": 0.40, "/feed": 0.30, "/checkout": 0.20, "/login": 0.10}
INCIDENT = "region = 'EU-West' AND tier = 'premium'"
SHIFT = 4.0

_FILES = 10
_START = datetime(2026, 3, 2, 9, tzinfo=UTC)
_MEAN_GAP = 50_000.0  # µs: twenty requests per second
_MEDIAN = 40.0  # ms
_SIGMA = 0.5  # standard deviation of the logarithm of the latency
_STEP = 1e6  # latencies are whole nanoseconds
_SHARE_BEFORE, _SHARE_UNTIL = 48, 52  # hundredths of the rows
# Session settings that would change the rows or the files.
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
}


def generate(spark: SparkSession, rows: int, directory: Path) -> None:
    """Write the events as ten Parquet files; the directory appears only when it is complete.

    The events of an earlier run are reused.
    """
    if directory.exists():
        found = _rows_in(directory)
        if found != rows:
            raise SourceError(
                f"{directory} has {found:,} requests, not {rows:,}; use a new directory, or the "
                "same number of requests"
            )
        return
    with whole_directory(directory) as hidden:
        write_parts(events(fixed_session(spark), rows, SEED, -(-rows // _FILES)), hidden)


def events(
    spark: SparkSession, rows: int, seed: int, block: int, shift: float = SHIFT
) -> DataFrame:
    """Return ``event_time``, ``region``, ``tier``, ``endpoint`` and ``latency`` in milliseconds.

    In the middle 4 % of the rows, the latencies of premium requests from EU-West are multiplied by
    ``shift``. The frame is lazy.
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
    """Return the first row of the incident, and the first row after it."""
    return rows * _SHARE_BEFORE // 100, rows * _SHARE_UNTIL // 100


def requests(spark: SparkSession, rows: int, seed: int, block: int) -> DataFrame:
    """Return ``row``, ``event_time``, ``region``, ``tier`` and ``endpoint`` of each request."""
    frame = arrivals(spark, rows, seed, block, _START, _MEAN_GAP)
    for name, shares in (("region", REGIONS), ("tier", TIERS), ("endpoint", ENDPOINTS)):
        draw = uniform(seed, name, F.col("row"))
        # a separate column, so that the draw is computed once for all comparisons
        frame = frame.withColumn("_draw", draw).withColumn(
            name, choice(F.col("_draw"), list(shares), list(shares.values()))
        )
    return frame.drop("_draw")


def arrivals(
    spark: SparkSession, rows: int, seed: int, block: int, start: datetime, mean_gap: float
) -> DataFrame:
    """Return Poisson arrivals: ``row`` (bigint, from 0) and ``event_time``.

    ``mean_gap`` is the mean time between two rows in µs. Partition i has the ``block`` rows of
    block i in order, so the files have the same rows on any number of cores. Within a block, the
    time of a row is a running sum of gaps. The total of each block is in one short table, which is
    broadcast.
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
    """Return a new session with the settings that fix the rows; ``spark`` is not changed."""
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    return session


def write_parts(frame: DataFrame, directory: Path) -> None:
    """Write partition i as ``part-0000i.parquet`` into an empty or new directory.

    Spark gives its files random names and adds checksum files. So it writes into a scratch
    directory, and the files are renamed and moved from there. A stream reads files in the order of
    their modification times, so each file gets a time one second after the previous one.
    """
    directory.mkdir(exist_ok=True)
    scratch = directory / "scratch"
    frame.write.parquet("file://" + str(scratch.absolute()))
    parts = sorted(scratch.glob("part-*.parquet"))
    if not parts:
        raise SourceError(
            f"Spark wrote no files to {directory}; on a cluster, use a directory that all workers "
            "share"
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
            f"cannot read {directory}: {fault}; remove it, or use a new directory"
        ) from error
