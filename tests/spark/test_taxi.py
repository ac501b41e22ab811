"""Real months of taxi trips, both ways: the same table to the last bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import ids
from ids.spark import read
from tests.spark.tables import same

ITEMS = """
    AVG(fare_amount) AS average,
    SHAPLEY_ATTRIBUTE(AVG(fare_amount), payment_type = 1 WITH (SHARE, LIFT)) AS card,
    SHAPLEY_ATTRIBUTE(VAR_POP(fare_amount), trip_distance > 5 AND NOT payment_type = 1) AS far,
    SHAPLEY_ATTRIBUTE(SUM(tip_amount), PULocationID IN (74, 75, 41)) AS harlem,
    SHAPLEY_DELTA(COUNT(*), passenger_count > 1) AS company
"""
WINDOWS = {
    "time": "RANGE INTERVAL '6' HOUR PRECEDING SLIDE INTERVAL '30' MINUTE",
    "count": "ROWS 5000 PRECEDING SLIDE 500 ROWS",
}


@pytest.mark.slow
@pytest.mark.parametrize("window", WINDOWS)
def test_ten_months_give_the_same_table_both_ways(
    spark: SparkSession, shared_data: Path, window: str
) -> None:
    agree(spark, shared_data / "taxi_green", window, emits=1_000)


@pytest.mark.parametrize("window", WINDOWS)
def test_a_month_gives_the_same_table_both_ways(
    spark: SparkSession, taxi_month: Path, window: str
) -> None:
    agree(spark, taxi_month, window, emits=100)


def agree(spark: SparkSession, trips: Path, window: str, emits: int) -> None:
    script = f"""
        SELECT {ITEMS} FROM trips WHERE lpep_pickup_datetime >= '2021-12-31'
        WINDOW w AS (ORDER BY lpep_pickup_datetime {WINDOWS[window]}) EMIT CHANGES
    """
    expected = ids.sql(script, trips=trips)
    assert expected.num_rows > emits
    same(expected, ids.spark.sql(script, trips=read(spark, trips)).toArrow())
