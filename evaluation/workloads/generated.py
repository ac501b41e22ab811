"""The workloads that are generated: synthetic (the demo's own stream), stress and auction."""

from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.demo.events import arrivals, choice, events, hashed, ladder, requests, uniform, with_normal

MU, SIGMA = 1e9, 1e-3
FIRST_AUCTION = 1000
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
_FIRST_CATEGORY, _CATEGORIES = 10, 5
_HOT_EVERY, _OTHERS = 100, 99  # auctions
_STRIDE = 37  # has no divisor in common with _OTHERS: rank → auction is one to one
_START = datetime(2026, 3, 2, tzinfo=UTC)
_MEAN_GAP = 1_000.0  # µs


def _stress(spark: SparkSession, rows: int, seed: int, block: int) -> DataFrame:
    """The requests of a service, latency 10⁹ ± 10⁻³: a textbook variance has no bits left."""
    frame = requests(spark, rows, seed, block)
    frame = with_normal(frame, "_normal", uniform(seed, "latency", F.col("row")))
    latency = F.lit(MU) + F.lit(SIGMA) * F.col("_normal")
    return frame.withColumn("latency", latency).drop("row", "_normal")


def _auction(spark: SparkSession, rows: int, seed: int, block: int) -> DataFrame:
    """Bids in the manner of NEXMark, where 46 of fifty events are bids and three open an auction.

    Half of the bids go to the first of the hundred auctions that are opening now, the others to the
    rest of that hundred by Zipf's law, each hundred with an order of its own.
    """
    row = F.col("row")
    frame = _with_auction(arrivals(spark, rows, seed, block, _START, _MEAN_GAP), seed)
    category = F.pmod(hashed(seed, "category", F.col("auction")), F.lit(_CATEGORIES))
    price = F.pow(F.lit(10.0), F.lit(6.0) * uniform(seed, "price", row)) * F.lit(100.0)
    number = F.pmod(hashed(seed, "channel", row), F.lit(CHANNELS))
    hot = ladder(F.pmod(number, F.lit(len(HOT_CHANNELS))), [1, 2, 3], HOT_CHANNELS)
    other = F.concat(F.lit("channel-"), number.cast("string"))
    channel = F.when(uniform(seed, "hot channel", row) < F.lit(0.5), hot).otherwise(other)
    return frame.select(
        "event_time",
        "auction",
        (F.lit(_FIRST_CATEGORY) + category).alias("category"),
        channel.alias("channel"),
        F.floor(price + F.lit(0.5)).alias("price"),
    )


def _with_auction(frame: DataFrame, seed: int) -> DataFrame:
    hundred = F.expr(f"(row div 46 * 3 + 2) div {_HOT_EVERY} * {_HOT_EVERY}")
    ranks = range(1, _OTHERS + 1)
    rank = choice(F.col("_draw"), list(ranks), [1 / k for k in ranks])
    turned = F.pmod(hashed(seed, "popularity", F.col("_hundred")), F.lit(_OTHERS))
    other = F.lit(1) + F.pmod(F.col("_rank") * F.lit(_STRIDE) + turned, F.lit(_OTHERS))
    within = F.when(uniform(seed, "hot", F.col("row")) < F.lit(0.5), F.lit(0)).otherwise(other)
    return (
        frame.withColumn("_hundred", hundred)
        .withColumn("_draw", uniform(seed, "rank", F.col("row")))
        .withColumn("_rank", rank)
        .withColumn("auction", F.lit(FIRST_AUCTION) + F.col("_hundred") + within)
    )


GENERATORS = {"synthetic": events, "stress": _stress, "auction": _auction}
