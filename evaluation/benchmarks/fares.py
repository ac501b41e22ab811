"""A window of taxi fares, as the TLC publishes them, and ten questions about it."""

from __future__ import annotations

import numpy as np

from evaluation.benchmarks.taxi import taxi
from evaluation.rq4.window import Window

__all__ = ["fares"]


def fares(rows: int) -> Window:
    """The first trips, questions from common to rare (the rarest last), strata by pick-up."""
    trips = taxi(rows)
    column = {name: trips[name].to_numpy(zero_copy_only=False) for name in trips.column_names}
    value = column["fare_amount"].astype(np.float64)
    pick_up, distance = column["PULocationID"], column["trip_distance"]
    places, counts = np.unique(pick_up, return_counts=True)
    # the first place that two trips in all began at: about one in 100,000
    rare = places[counts == 2][0]
    common = places[np.argsort(-counts)]
    holds = {
        "payment_type = 1": column["payment_type"] == 1,
        "payment_type = 2": column["payment_type"] == 2,
        "trip_distance > 10": distance > 10,
        "trip_distance BETWEEN 1 AND 2": (distance >= 1) & (distance <= 2),
        "trip_distance < 0.2": distance < 0.2,
        **{f"PULocationID = {p}": pick_up == p for p in common[[0, 4, 60, 120]]},
        f"PULocationID = {rare}": pick_up == rare,
    }
    return Window.of(value, holds, pick_up.astype(np.int64))
