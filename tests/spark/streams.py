"""Streams for tests: a table cut into files that come one a micro-batch, and what a batch gives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import ids
from ids.model import microseconds
from ids.spark import Stream, read, start

__all__ = [
    "PAPER",
    "UTC",
    "always_tidy",
    "arrive",
    "events",
    "expected",
    "in_workers",
    "run",
    "source",
]

UTC = pa.timestamp("us", "UTC")

PAPER = """
REGISTER PREDICATE eu AS (region = 'EU') ON events;
SELECT SHAPLEY_ATTRIBUTE(AVG(latency), eu AND tier = 'premium' WITH (SHARE, LIFT)) AS a,
       SHAPLEY_DELTA(SUM(latency), eu) AS d, COUNT(*) AS c
FROM events
WINDOW w AS (ORDER BY event_time
             RANGE INTERVAL '30' SECOND PRECEDING SLIDE INTERVAL '10' SECOND)
EMIT CHANGES;
"""


def events(rows: int, seed: int = 0, seconds: int = 200) -> pa.Table:
    """Requests in the order of their event times, ties and instants among them, NULLs in all."""
    rng = np.random.default_rng(seed)
    ticks = np.sort(rng.integers(0, seconds * 4, rows)) * 250_000
    # a silent stretch longer than the window
    ticks = ticks + np.where(ticks > seconds * 500_000, 95_000_000, 0)

    def gaps(share: float) -> np.ndarray:
        return rng.random(rows) < share

    latency = rng.lognormal(3, 1.5, rows) * rng.choice([1, -1], rows, p=[0.9, 0.1])
    return pa.table(
        {
            "event_time": pa.array(ticks, UTC),
            "region": pa.array(rng.choice(["EU", "US", "AP"], rows), mask=gaps(0.05)),
            "tier": pa.array(rng.choice(["premium", "free"], rows), mask=gaps(0.05)),
            "latency": pa.array(latency, mask=gaps(0.05)),
            "size": pa.array(rng.integers(-(10**12), 10**12, rows), mask=gaps(0.05)),
        }
    )


def arrive(table: pa.Table, folder: Path, cuts: Sequence[int], first: int = 0) -> None:
    """Cut the table at ``cuts`` into files, in the order in which a stream takes them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, (a, b) in enumerate(pairwise([0, *cuts, table.num_rows]), start=first):
        path = folder / f"f{number:03d}.parquet"
        pq.write_table(table.slice(a, b - a), path)
        os.utime(path, (1_000_000_000 + number,) * 2)


def source(spark: SparkSession, folder: Path) -> DataFrame:
    """The files of a folder, one a micro-batch."""
    return read(spark, folder, stream=True, options={"maxFilesPerTrigger": "1"})


def run(spark: SparkSession, script: str, folder: Path, **options: Any) -> Stream:
    """Take in what is there, and end."""
    options.setdefault("checkpoint", folder.parent / "ck")
    running = start(script, available_now=True, events=source(spark, folder), **options)
    running.await_termination()
    return running


def always_tidy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every batch write windows down and put pieces together, as few batches of many do."""
    monkeypatch.setattr("ids.spark.stream_store._TOGETHER", 2)
    for limit in ("_MANY", "_FAR"):
        monkeypatch.setattr(f"ids.spark.stream_time.{limit}", 1)


def in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Spark work out all windows, as it does where the driver would have to hold many sums."""
    monkeypatch.setattr("ids.spark.stream_panes._FEW_ROWS", -1)


def expected(script: str, table: pa.Table, lateness: str = "0 seconds") -> pa.Table:
    """A batch's emits at the instants before the watermark."""
    emits = ids.sql(script, events=table)
    last = pc.max(table["event_time"].cast(pa.int64())).as_py() - microseconds(lateness)
    return emits.filter(pc.less(emits["emit_at"], pa.scalar(last, UTC)))
