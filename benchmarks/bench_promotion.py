"""How many tuples does a Zipfian trace of ad hoc questions touch, with and without promotion?

1,600 questions about 40 conditions that nobody registered, put to a window of 50,000 real trips
that slides by one row before each. An oracle has the eight conditions registered that the trace
will ask about most; the paper's policy promotes at the tenth question; ours at the second, and lets
the promoted condition that is asked about least give way. A promotion touches every row inside
once, and answers the question that caused it.
"""

from __future__ import annotations

from collections import Counter
from statistics import mean
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

import ids
from benchmarks.record import describe, write
from benchmarks.taxi import taxi

__all__ = ["main"]

WINDOW = 50_000
QUESTIONS = 1_600
MOST = 8
SEEDS = 5
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
POLICIES: dict[str, ids.Promotion | None] = {
    "static": None,
    "oracle": None,
    "adaptive, f = 10": ids.Promotion(MOST, threshold=10, replaces=False),
    "ours": ids.Promotion(MOST),
}
# Tuples touched, in millions, as the paper prints them (ad hoc and rebuild together).
PAPER = {1: {"static": 80.00, "oracle": 29.85, "adaptive, f = 10": 35.55},
         2: {"static": 80.00, "oracle": 4.25, "adaptive, f = 10": 8.65}}  # fmt: skip


def main() -> None:
    """Measure, keep, show."""
    trips = taxi(WINDOW + QUESTIONS)
    runs = []
    print("| α | policy | promoted | tuples touched, millions | vs static | the paper's | time |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for alpha in (1, 2):
        for policy in POLICIES:
            each = [_run(trips, policy, _trace(alpha, seed)) for seed in range(SEEDS)]
            one = {key: mean(run[key] for run in each) for key in each[0]}
            static = QUESTIONS * WINDOW / 1e6
            paper = PAPER[alpha].get(policy)
            print(
                f"| {alpha} | {policy} | {one['promoted']:.1f} | {one['touched']:.2f} | "
                f"{static / one['touched']:.2f} × | {'' if paper is None else paper} | "
                f"{one['seconds']:.2f} s |"
            )
            runs.append({"alpha": alpha, "policy": policy, "paper_millions": paper, **one})
    costs = _costs(trips)
    print(f"\n{costs}")
    write({"name": "promotion", "window": WINDOW, "questions": QUESTIONS, "most": MOST,
           "seeds": SEEDS, "runs": runs, "costs": costs, **describe()})  # fmt: skip


def _trace(alpha: int, seed: int) -> list[str]:
    """Questions by Zipf's law; which condition has which rank is drawn, too."""
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, len(CONDITIONS) + 1) ** alpha
    ranked = rng.permutation(CONDITIONS)
    return [str(c) for c in rng.choice(ranked, QUESTIONS, p=weights / weights.sum())]


def _run(trips: pa.Table, policy: str, trace: list[str]) -> dict[str, float]:
    engine = ids.Engine(ids.CountWindow(WINDOW), "fare_amount", promotion=POLICIES[policy])
    if policy == "oracle":
        for number, (condition, _) in enumerate(Counter(trace).most_common(MOST)):
            engine.register(f"known_{number}", condition)
    engine.ingest(trips.slice(0, WINDOW))
    touched, promotions, seconds = 0, 0, 0.0
    for number, condition in enumerate(trace):
        engine.ingest(trips.slice(WINDOW + number, 1))
        start = perf_counter()
        found = engine.attribute("AVG", condition)
        seconds += perf_counter() - start
        touched += found.touched
        promotions += found.why == "this question promoted it"
    return {"promoted": promotions, "touched": touched / 1e6, "seconds": seconds}


def _costs(trips: pa.Table) -> dict[str, Any]:
    """What one promotion and one demotion take."""
    found: dict[str, Any] = {}
    for rows in (5_000, 50_000):
        engine = ids.Engine(ids.CountWindow(rows), "fare_amount")
        for number, condition in enumerate(CONDITIONS[:4]):
            engine.register(f"known_{number}", condition)
        engine.ingest(trips.slice(0, rows))
        up, down = [], []
        for _ in range(20):
            start = perf_counter()
            engine.register("one_more", "trip_distance > 3")
            middle = perf_counter()
            engine.drop("one_more")
            up.append(middle - start)
            down.append(perf_counter() - middle)
        found[f"{rows:,} rows"] = {
            "promotion_us": 1e6 * min(up),
            "promotion_ns_a_tuple": 1e9 * min(up) / rows,
            "demotion_us": 1e6 * min(down),
        }
    return found


if __name__ == "__main__":
    main()
