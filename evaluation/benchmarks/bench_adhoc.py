"""What does a question that nobody registered cost, by a scan and by the index?

The scan is put beside a loop over the rows in Python (the paper's mechanism) and beside Polars and
DuckDB on the same columns in memory: each finds the rows and sums what AVG needs. The index is put
beside our own scan and beside a registered predicate, each asked right after a slide.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

import ids
from evaluation.benchmarks.record import describe, measure, write
from evaluation.benchmarks.taxi import taxi

__all__ = ["main"]

SCANNED = 200_000
INDEXED = 1_000_000
MEASURE = "fare_amount"

# Each as the engine and SQL take it, and as a Python function of a row.
CONDITIONS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "PULocationID = 74": lambda r: r["PULocationID"] == 74,
    "PULocationID = 207": lambda r: r["PULocationID"] == 207,
    "payment_type IN (1, 2)": lambda r: r["payment_type"] in (1, 2),
    "trip_distance > 5 AND payment_type = 1": lambda r: (
        r["trip_distance"] > 5 and r["payment_type"] == 1
    ),
    "store_and_fwd_flag = 'N' AND PULocationID <> 74": lambda r: (
        r["store_and_fwd_flag"] == "N" and r["PULocationID"] != 74
    ),
    "fare_amount < 10 OR DOLocationID = 42": lambda r: (
        r["fare_amount"] < 10 or r["DOLocationID"] == 42
    ),
}
# How many of the million trips are marked with each number.
MARKED = {1: 20, 2: 100, 3: 1_000, 4: 10_000, 5: 100_000, 6: 250_000, 7: 600_000}


def main() -> None:
    """Measure, keep, show."""
    _scan()
    _index()


def _scan() -> None:
    trips = taxi(SCANNED)
    engine = ids.Engine(ids.CountWindow(SCANNED), MEASURE)
    engine.ingest(trips)
    rows = trips.to_pylist()
    frame = pl.from_arrow(trips)
    assert isinstance(frame, pl.DataFrame)
    session = duckdb.connect()
    session.register("arrow", trips)
    session.execute("CREATE TABLE trips AS SELECT * FROM arrow")
    print(
        "| condition | rows held | scan | Polars | DuckDB | loop | loop ÷ scan | scan ÷ fastest |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    found = []
    for condition, holds in CONDITIONS.items():
        query = f"SELECT count({MEASURE}), sum({MEASURE}) FROM trips WHERE {condition}"
        context = pl.SQLContext(trips=frame)
        plan = context.execute(query)
        loop = partial(_loop, rows, holds)
        assert loop() == session.execute(query).fetchone()[0]  # type: ignore[index]
        record = measure(
            "adhoc_scan",
            {
                "scan": partial(_asked, engine, condition),
                "Polars": plan.collect,
                "DuckDB": lambda query=query: session.execute(query).fetchall(),  # type: ignore[misc]
            },
            rows=SCANNED,
            repetitions=25,
        )
        # the loop by itself: it would leave none of the others' columns in the cache
        record["contenders"] |= measure("", {"loop": loop}, rows=SCANNED)["contenders"]
        times = {name: one["best_s"] for name, one in record["contenders"].items()}
        held = loop()
        fastest = min(times["Polars"], times["DuckDB"])
        shown = " | ".join(f"{1e3 * times[n]:.2f} ms" for n in ("scan", "Polars", "DuckDB", "loop"))
        ratios = f"{times['loop'] / times['scan']:.0f} × | {times['scan'] / fastest:.2f} ×"
        print(f"| `{condition}` | {held:,} | {shown} | {ratios} |")
        found.append({"condition": condition, "held": held, "seconds": times})
    write({"name": "adhoc_scan", "rows": SCANNED, "conditions": found, **describe()})


def _loop(rows: list[dict[str, Any]], holds: Callable[[dict[str, Any]], bool]) -> int:
    """One row after the other, in Python."""
    count, total, squares = 0, 0.0, 0.0
    for row in rows:
        try:
            if holds(row):
                y = row[MEASURE]
                count += 1
                total += y
                squares += y * y
        except TypeError:  # a NULL is compared: the condition does not hold
            continue
    return count


def _asked(engine: ids.Engine, condition: str) -> ids.Attribution:
    """Asked as if for the first time since a slide; the plan is known."""
    engine._questions.slid()
    return engine.attribute("AVG", condition)


def _index() -> None:
    trips = _marked(taxi(INDEXED + 1_000))
    first = trips.slice(0, INDEXED)
    engines = {
        "index": ids.Engine(ids.CountWindow(INDEXED), MEASURE, index="mark"),
        "scan": ids.Engine(ids.CountWindow(INDEXED), MEASURE),
        "registered": ids.Engine(ids.CountWindow(INDEXED), MEASURE),
    }
    for mark in MARKED:
        engines["registered"].register(f"mark_{mark}", f"mark = {mark}")
    for engine in engines.values():
        engine.ingest(first)
    print("\n| selectivity | registered | index, as planned | by | scan | index ÷ registered "
          "| scan ÷ index |\n|---:|---:|---:|---|---:|---:|---:|")  # fmt: skip
    found = []
    for mark, count in MARKED.items():
        times = {name: _after_slides(e, trips, f"mark = {mark}") for name, e in engines.items()}
        mechanism = engines["index"].attribute("AVG", f"mark = {mark}").mechanism
        registered, index, scan = (times[n] for n in ("registered", "index", "scan"))
        print(
            f"| {count / INDEXED:g} | {1e6 * registered:.1f} µs | {1e6 * index:.1f} µs | "
            f"{mechanism} | {1e6 * scan:.0f} µs | {index / registered:.1f} × | "
            f"{scan / index:.1f} × |"
        )
        found.append({"selectivity": count / INDEXED, "mechanism": mechanism, "seconds": times})
    print(f"\nbytes: {engines['index'].memory()}")
    bytes_a_row = engines["index"].memory().index / INDEXED
    write({"name": "adhoc_index", "rows": INDEXED, "index_bytes_a_row": bytes_a_row,
           "selectivities": found, **describe()})  # fmt: skip


def _marked(trips: pa.Table) -> pa.Table:
    """The trips with a column of marks, spread at random: ``MARKED`` says how many of each."""
    marks = np.repeat([*MARKED], [*MARKED.values()])
    whole = np.zeros(trips.num_rows, np.int64)
    whole[: len(marks)] = marks
    rng = np.random.default_rng(0)
    rng.shuffle(whole[:INDEXED])
    return trips.append_column("mark", pa.array(whole))


def _after_slides(engine: ids.Engine, trips: pa.Table, condition: str) -> float:
    """The median of 200 questions, each right after one row more."""
    spent = []
    engine.attribute("AVG", condition)
    for number in range(200):
        engine.ingest(trips.slice(INDEXED + number, 1))
        start = perf_counter()
        engine.attribute("AVG", condition)
        spent.append(perf_counter() - start)
    return median(spent)


if __name__ == "__main__":
    main()
