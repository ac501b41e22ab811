"""How many tuples does a Zipfian trace of ad hoc questions touch, with and without promotion?

As ``python -m evaluation rq5``, over the raw columns of the TLC's files: 1,600 questions about 40
conditions that nobody registered, put to a window of 50,000 trips that slides by one row before
each. A promotion touches every row inside once, and answers the question that caused it.
"""

from __future__ import annotations

from statistics import mean
from typing import Any

import numpy as np
import pyarrow as pa

from evaluation.benchmarks.record import describe, write
from evaluation.benchmarks.taxi import taxi
from evaluation.rq5.costs import Promotable, costs
from evaluation.rq5.paper import QUESTIONS, TABLE, WINDOW
from evaluation.rq5.trace import MOST, POLICIES, Outcome, replay, zipfian

__all__ = ["main"]

SEEDS = 5
MEASURE = "fare_amount"
CONDITIONS = [
    *(f"PULocationID = {zone}" for zone in (74, 75, 41, 166, 95, 97, 82, 42, 43, 244, 7, 65, 236)),
    *(f"DOLocationID = {zone}" for zone in (74, 75, 42, 41, 236, 238, 166, 7, 82, 129, 95)),
    *(f"trip_distance > {miles}" for miles in (1, 2, 3, 5, 8, 12)),
    *(f"payment_type = {kind}" for kind in (1, 2, 3)),
    *(f"passenger_count = {people}" for people in (1, 2, 5)),
    "trip_type = 2",
    "store_and_fwd_flag = 'Y'",
    "PULocationID = DOLocationID",
    "total_amount > 2 * fare_amount",
]


def main() -> None:
    """Measure, keep, show."""
    trips = taxi(WINDOW + QUESTIONS)
    runs = []
    print("| α | policy | promoted | tuples touched, millions | vs static | the paper's | time |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for alpha in (1, 2):
        traces = [zipfian(CONDITIONS, alpha, np.random.default_rng(seed)) for seed in range(SEEDS)]
        for policy in POLICIES:
            each = [_facts(replay(trips, MEASURE, WINDOW, policy, trace)) for trace in traces]
            one = {key: mean(run[key] for run in each) for key in each[0]}
            static = QUESTIONS * WINDOW / 1e6
            printed = TABLE.get((alpha, policy))
            paper = None if printed is None else round(printed.adhoc + printed.rebuild, 2)
            print(
                f"| {alpha} | {policy} | {one['promoted']:.1f} | {one['touched']:.2f} | "
                f"{static / one['touched']:.2f} × | {'' if paper is None else paper} | "
                f"{one['seconds']:.2f} s |"
            )
            runs.append({"alpha": alpha, "policy": policy, "paper_millions": paper, **one})
    found = _costs(trips)
    print(f"\n{found}")
    write({"name": "promotion", "window": WINDOW, "questions": QUESTIONS, "most": MOST,
           "seeds": SEEDS, "runs": runs, "costs": found, **describe()})  # fmt: skip


def _facts(outcome: Outcome) -> dict[str, float]:
    millions = (outcome.adhoc + outcome.rebuild) / 1e6
    return {"promoted": outcome.promotions, "touched": millions, "seconds": outcome.time}


def _costs(trips: pa.Table) -> dict[str, Any]:
    """What one promotion and one demotion take."""
    windows = [
        Promotable.of(trips, MEASURE, rows, CONDITIONS[:4], "trip_distance > 3")
        for rows in (5_000, 50_000)
    ]
    costs(windows, repetitions=SEEDS)
    return {
        f"{window.engine.rows:,} rows": {
            "promotion_us": 1e6 * min(window.up),
            "promotion_ns_a_tuple": 1e9 * min(window.up) / window.engine.rows,
            "demotion_us": 1e6 * min(window.down),
        }
        for window in windows
    }


if __name__ == "__main__":
    main()
