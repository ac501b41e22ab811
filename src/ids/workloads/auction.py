"""auction: a bid stream in the manner of NEXMark.

Of every fifty events of NEXMark three open an auction and 46 are bids; here only the bids are kept,
and the auctions open in the same step with them.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.workloads.arrivals import arrivals
from ids.workloads.catalogue import Recipe
from ids.workloads.draws import choice, hashed, uniform
from ids.workloads.made import Made

__all__ = ["CATEGORIES", "CHANNELS", "FIRST_AUCTION", "HOT_CHANNELS", "HOT_EVERY", "build"]

HOT_EVERY = 100  # auctions
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
CATEGORIES = 5
FIRST_AUCTION, _FIRST_CATEGORY = 1000, 10
_BIDS, _AUCTIONS = 46, 3
_OTHERS = HOT_EVERY - 1
_STRIDE = 37  # has no divisor in common with _OTHERS: rank → auction is one to one
_START = datetime(2026, 3, 2, tzinfo=UTC)
_MEAN_GAP = 1_000.0  # µs


def build(spark: SparkSession, recipe: Recipe) -> Made:
    """``event_time``, ``auction``, ``category``, ``channel`` and ``price`` of each bid.

    Half of the bids go to the hot auction: the first of the hundred that is opening now. The others
    go to the rest of that hundred by Zipf's law: the auction of rank k gets bids as 1/k. Which
    auction has which rank differs from hundred to hundred.
    """
    seed, row = recipe.seed, F.col("row")
    frame = arrivals(spark, recipe.known_rows, seed, _START, _MEAN_GAP)
    frame = _with_auction(frame, seed)
    category = F.pmod(hashed(seed, "category", F.col("auction")), F.lit(CATEGORIES))
    price = F.pow(F.lit(10.0), F.lit(6.0) * uniform(seed, "price", row)) * F.lit(100.0)
    bids = frame.select(
        "event_time",
        "auction",
        (F.lit(_FIRST_CATEGORY) + category).alias("category"),
        _channel(seed, row).alias("channel"),
        F.floor(price + F.lit(0.5)).alias("price"),
    )
    truth = {
        "hot_auction": {"probability": 0.5, "moves_every": HOT_EVERY},
        "hot_channels": list(HOT_CHANNELS),
        "popularity": {"law": "Zipf", "exponent": 1, "ranks": _OTHERS},
    }
    return Made(bids, truth)


def _with_auction(frame: DataFrame, seed: int) -> DataFrame:
    opened = f"(row div {_BIDS}) * {_AUCTIONS} + {_AUCTIONS - 1}"
    hundred = F.expr(f"({opened}) div {HOT_EVERY} * {HOT_EVERY}")
    ranks = range(1, _OTHERS + 1)
    rank = choice(F.col("_draw"), list(ranks), [1 / k for k in ranks])
    turned = F.pmod(hashed(seed, "popularity", F.col("_hundred")), F.lit(_OTHERS))
    other = F.lit(1) + F.pmod(F.col("_rank") * F.lit(_STRIDE) + turned, F.lit(_OTHERS))
    hot = uniform(seed, "hot", F.col("row")) < F.lit(0.5)
    within = F.when(hot, F.lit(0)).otherwise(other)
    return (
        frame.withColumn("_hundred", hundred)
        .withColumn("_draw", uniform(seed, "rank", F.col("row")))
        .withColumn("_rank", rank)
        .withColumn("auction", F.lit(FIRST_AUCTION) + F.col("_hundred") + within)
    )


def _channel(seed: int, row: Column) -> Column:
    hot = uniform(seed, "hot channel", row) < F.lit(0.5)
    number = F.pmod(hashed(seed, "channel", row), F.lit(CHANNELS))
    name = F.element_at(
        F.array(*map(F.lit, HOT_CHANNELS)),
        (F.lit(1) + F.pmod(number, F.lit(len(HOT_CHANNELS)))).cast("int"),
    )
    return F.when(hot, name).otherwise(F.concat(F.lit("channel-"), number.cast("string")))
