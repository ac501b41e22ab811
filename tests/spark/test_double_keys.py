"""PARTITION BY a double: -0.0 and 0.0 are the key 0.0, NaN is one key, in every execution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import ids
from tests.spark.parity import plain
from tests.spark.streams import UTC, always_tidy, arrive, run

FRAMES = {
    "time": "RANGE INTERVAL '20' SECOND PRECEDING SLIDE INTERVAL '10' SECOND",
    "count": "ROWS 3 PRECEDING SLIDE 2 ROWS",
}


def _events() -> pa.Table:
    rng = np.random.default_rng(1)
    odd_nan = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
    keys = rng.choice([-0.0, 0.0, np.nan, odd_nan, 1.5], 60)
    keys[:2] = -0.0, odd_nan
    times = pa.array(np.arange(60) * 3_000_000, UTC)
    return pa.table({"event_time": times, "k": keys, "latency": rng.normal(0, 1, 60)})


@pytest.mark.parametrize("frame", FRAMES)
def test_a_double_key_has_one_spelling_in_batch_and_streams(
    spark: SparkSession, tmp_path: Path, frame: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    always_tidy(monkeypatch)
    table = _events()
    script = f"""SELECT SHAPLEY_ATTRIBUTE(AVG(latency), latency > 0) AS a, COUNT(*) AS c FROM events
        WINDOW w AS (PARTITION BY k ORDER BY event_time {FRAMES[frame]}) EMIT CHANGES"""
    emits = ids.sql(script, events=table)
    right = plain(emits)
    nan, zero, other = "NaN", "0" * 16, "3ff8" + "0" * 12
    assert set(right["k"][1]) == {zero, nan, other}
    assert plain(ids.spark.sql(script, events=spark.createDataFrame(table)).toArrow()) == right
    arrive(table, tmp_path / "in", [20, 41])
    last = pc.max(table["event_time"])
    safe = plain(emits.filter(pc.less(emits["emit_at"], last)))
    assert plain(run(spark, script, tmp_path / "in").table()) == safe
