"""Real taxi trips for the benchmarks: green cabs of New York, as the TLC publishes them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["COLUMNS", "taxi"]

COLUMNS = (
    "lpep_pickup_datetime",
    "PULocationID",
    "DOLocationID",
    "payment_type",
    "trip_type",
    "passenger_count",
    "trip_distance",
    "fare_amount",
    "total_amount",
    "store_and_fwd_flag",
)


def taxi(rows: int) -> pa.Table:
    """The first ``rows`` trips of the months at hand, repeated where there are fewer.

    Found under ``$IDS_DATA``, else in ``../shared/data``; without them there is nothing to measure.
    """
    root = Path(os.environ.get("IDS_DATA", Path(__file__).parents[3] / "shared" / "data"))
    files = sorted((root / "taxi_green").glob("*.parquet"))
    if not files:
        sys.exit(f"no taxi data under {root}: set IDS_DATA to where taxi_green is")
    months = [pq.read_table(file, columns=list(COLUMNS)) for file in files]
    trips = pa.concat_tables(months, promote_options="permissive")
    whole, rest = divmod(rows, trips.num_rows)
    return pa.concat_tables([trips] * whole + [trips.slice(0, rest)]).combine_chunks()
