"""stress: the adversarial numerical case, a tiny deviation on top of a huge mean."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ids.workloads.catalogue import Recipe
from ids.workloads.draws import uniform, with_normal
from ids.workloads.made import Made
from ids.workloads.requests import requests

__all__ = ["MU", "SIGMA", "build"]

MU = 1e9
SIGMA = 1e-3


def build(spark: SparkSession, recipe: Recipe) -> Made:
    """The requests of a service whose latency is normal around 10⁹, give or take 10⁻³.

    Doubles near 10⁹ are 2⁻²³ apart, so a deviation has about thirteen bits: a variance by the
    textbook formula has none left.
    """
    frame = requests(spark, recipe.known_rows, recipe.seed)
    frame = with_normal(frame, "_normal", uniform(recipe.seed, "latency", F.col("row")))
    latency = F.lit(MU) + F.lit(SIGMA) * F.col("_normal")
    return Made(
        frame.withColumn("latency", latency).drop("row", "_normal"),
        {"measure": "latency", "mu": MU, "sigma": SIGMA},
    )
