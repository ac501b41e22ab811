"""A month of green taxi trips, as published: negative fares, NULLs, trips out of the month."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ids
from tests.oracles.windows import answer, kept, window_at, written_out
from tests.query.agreement import assert_right, conditions, select_of

REGISTERED = {"by_card": "payment_type = 1", "long_trip": "trip_distance > 5"}
SCRIPT = (
    "".join(f"REGISTER PREDICATE {n} AS ({c}) ON trips;\n" for n, c in REGISTERED.items())
    + """
SELECT SHAPLEY_ATTRIBUTE(AVG(fare_amount), by_card WITH (SHARE, LIFT)) AS card,
       SHAPLEY_ATTRIBUTE(AVG(fare_amount), by_card AND NOT long_trip) AS card_short,
       SHAPLEY_ATTRIBUTE(VAR_SAMP(fare_amount), NOT (payment_type IN (1, 2))) AS other_spread,
       SHAPLEY_DELTA(SUM(fare_amount), payment_type IS NULL) AS unknown_change,
       AVG(fare_amount) AS fare, COUNT(passenger_count) AS counted
FROM trips WHERE trip_distance < 1000
WINDOW w AS (PARTITION BY VendorID ORDER BY lpep_pickup_datetime
             RANGE INTERVAL '1' DAY PRECEDING SLIDE INTERVAL '1' HOUR)
EMIT CHANGES"""
)
HOUR = timedelta(hours=1)
COLUMNS = (
    *("VendorID", "lpep_pickup_datetime", "payment_type", "trip_distance", "fare_amount"),
    "passenger_count",
)


@pytest.fixture(scope="module")
def trips(taxi_month: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(taxi_month, columns=list(COLUMNS)).to_pylist()
    for row in rows:
        row["lpep_pickup_datetime"] = row["lpep_pickup_datetime"].replace(tzinfo=UTC)
    return rows


@pytest.fixture(scope="module")
def found(taxi_month: Path) -> pa.Table:
    return ids.sql(SCRIPT, trips=taxi_month)


def test_a_day_of_fares_is_right_at_every_hour_looked_at(
    trips: list[dict[str, Any]], found: pa.Table
) -> None:
    select = written_out(select_of(SCRIPT), conditions(REGISTERED))
    rows = kept(select, trips)
    places = {(r["VendorID"], r["emit_at"]): i for i, r in enumerate(found.to_pylist())}
    hours = [datetime(2024, 1, 1, tzinfo=UTC) + h * HOUR for h in (-9, 0, 1, 5, 24, 333, 700, 744)]
    for vendor in (1, 2):
        mine = [row for row in rows if row["VendorID"] == vendor]
        for hour in hours:
            if (vendor, hour) in places:
                row = found.slice(places[vendor, hour], 1)
                assert_right(row, [answer(select, window_at(select, mine, hour))])
    assert (2, hours[0]) in places and (1, hours[0]) not in places


def test_every_hour_speaks_whose_day_has_a_trip(
    trips: list[dict[str, Any]], found: pa.Table
) -> None:
    kept_trips = [t for t in trips if t["trip_distance"] < 1000]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    panes = Counter(
        (-(-(t["lpep_pickup_datetime"] - epoch) // HOUR), t["VendorID"]) for t in kept_trips
    )
    last = max(pane for pane, _ in panes)
    inside: Counter[tuple[int, int]] = Counter()
    for (pane, vendor), trips_then in panes.items():
        for instant in range(pane, min(pane + 24, last + 1)):
            inside[instant, vendor] += trips_then
    spoken = [((r["emit_at"] - epoch) // HOUR, r["VendorID"], r["n"]) for r in found.to_pylist()]
    assert spoken == [(*key, count) for key, count in sorted(inside.items())]
