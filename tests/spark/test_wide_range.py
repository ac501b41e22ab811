"""Magnitudes far apart, and whole numbers at the ends of BIGINT: the same bits as in process."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import ids
from tests.spark.tables import same

WINDOWS = {
    "rows": "ORDER BY at ROWS 3 PRECEDING",
    "keyed rows": "PARTITION BY k ORDER BY at ROWS 4 PRECEDING SLIDE 2 ROWS",
    "time": "PARTITION BY k ORDER BY at "
    "RANGE INTERVAL '6' SECOND PRECEDING SLIDE INTERVAL '2' SECOND",
}


def query(window: str) -> str:
    return f"""
    SELECT SUM(y) AS s, AVG(y) AS a, VAR_SAMP(y) AS v, SHAPLEY_ATTRIBUTE(SUM(y), p) AS f,
           SHAPLEY_ATTRIBUTE(VAR_POP(y), p WITH (SHARE, LIFT)) AS g, SHAPLEY_DELTA(AVG(y), p) AS d
    FROM t WINDOW w AS ({WINDOWS[window]}) EMIT CHANGES
    """


def table(y: np.ndarray) -> pa.Table:
    rows = len(y)
    at = np.datetime64("2024-01-01", "us") + np.arange(rows) * np.timedelta64(1, "s")
    k, p = np.arange(rows) // 7 % 2, np.arange(rows) % 3 == 1
    return pa.table({"at": pa.array(at, pa.timestamp("us", "UTC")), "k": k, "p": p, "y": y})


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    "exponents", [(-60, 10), pytest.param((-300, 140), marks=pytest.mark.slow)]
)
def test_values_far_apart_have_the_bits_of_the_answers_in_process(
    spark: SparkSession, window: str, exponents: tuple[int, int]
) -> None:
    rng = np.random.default_rng(exponents[1])
    y = rng.choice([-1.0, 1.0], 120) * rng.uniform(1, 10, 120)
    y *= 10.0 ** rng.choice([*exponents, 0, *range(*exponents, 40)], 120)
    data = table(y)
    found = ids.spark.sql(query(window), t=spark.createDataFrame(data).repartition(3))
    same(ids.sql(query(window), t=data), found.toArrow())


@pytest.mark.parametrize("window", WINDOWS)
def test_whole_numbers_at_the_ends_of_bigint_are_not_clamped(
    spark: SparkSession, window: str
) -> None:
    ends = [2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1, 2**63 - 512, 2**63 - 513, 2**63 - 1]
    data = table(np.array([*ends, 0, 5, *reversed(ends)], np.int64))
    found = ids.spark.sql(query(window), t=spark.createDataFrame(data).repartition(2))
    same(ids.sql(query(window), t=data), found.toArrow())
