"""A stream as its watchers see it: Spark's listeners, its checkpoint, and who starts it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

import ids
from ids.spark import Stream, StreamProgress, start
from tests.spark.streams import PAPER, arrive, events, expected, run, source


class Listener(StreamingQueryListener):
    """Notes what a monitor of Spark's own would see of the queries' progress."""

    def __init__(self) -> None:
        self.seen: dict[int, dict[str, Row]] = {}

    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryProgress(self, event: Any) -> None:
        if event.progress.observedMetrics:
            self.seen[event.progress.batchId] = dict(event.progress.observedMetrics)

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryTerminated(self, event: Any) -> None: ...


def until(is_so: Callable[[], bool]) -> None:
    """Wait for it; a minute is too long."""
    end = monotonic() + 60
    while not is_so():
        assert monotonic() < end
        sleep(0.05)


def test_a_listener_sees_the_counts_of_every_batch(spark: SparkSession, tmp_path: Path) -> None:
    table = events(120, 40)
    latency = table["latency"].to_pylist()
    latency[5] = latency[50] = math.nan
    table = table.set_column(3, "latency", pa.array(latency))
    late = table.slice(0, 7)
    arrive(table, tmp_path / "in", [40, 80])
    arrive(late, tmp_path / "in", [], 3)
    told: list[StreamProgress] = []
    listener = Listener()
    spark.streams.addListener(listener)
    try:
        running = start(
            PAPER, checkpoint=tmp_path / "ck", available_now=True, on_progress=told.append,
            bad_rows=tmp_path / "bad", events=source(spark, tmp_path / "in"),
        )  # fmt: skip
        running.await_termination()
        until(lambda: len(listener.seen) == 4)
    finally:
        spark.streams.removeListener(listener)
    assert [progress.batch for progress in told] == [0, 1, 2, 3]
    before = dict.fromkeys(("rows", "late", "ahead", "bad", "emits"), 0)
    for progress in told:
        totals, seen = asdict(progress.totals), listener.seen[progress.batch or 0]["ids"].asDict()
        assert {name: seen[name] for name in totals} == {n: totals[n] - before[n] for n in totals}
        before = totals
        assert seen["state_rows"] == progress.state_rows > 0
        assert progress.watermark is not None
        assert seen["watermark"].timestamp() == progress.watermark.timestamp()
    assert before["late"] == 6 and before["bad"] == 3 and before["rows"] == 127
    last: Any = running.query.lastProgress
    assert last["observedMetrics"]["ids"]["late"] == 6
    found = ids.spark.status(tmp_path / "ck")
    assert (found.state_bytes, found.state_files) == (
        listener.seen[3]["ids"]["state_bytes"],
        listener.seen[3]["ids"]["state_files"],
    )


def test_a_stream_is_triggered_stopped_resumed_and_ends_when_all_is_taken(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(160, 41)
    folder = tmp_path / "in"
    options: dict[str, Any] = {"checkpoint": tmp_path / "ck", "output": f"{tmp_path}/out/"}
    arrive(table.slice(0, 40), folder, [])
    running = start(
        PAPER, trigger="200 milliseconds", events=str(folder), spark=spark, **options
    )  # fmt: skip
    until(lambda: running.last_progress.batch == 0)
    assert str(running.query._jsq.streamingQuery().trigger()) == "ProcessingTimeTrigger(200)"
    hidden = tmp_path / "hidden"
    arrive(table.slice(40, 40), hidden, [], 1)
    (hidden / "f001.parquet").rename(folder / "f001.parquet")  # it comes while the stream runs
    until(lambda: running.last_progress.batch == 1)
    assert not running.await_termination(0.1)
    running.stop()
    assert running.await_termination()
    at_rest = json.dumps(ids.spark.status(tmp_path / "ck").facts()["totals"])
    arrive(table.slice(80, 40), folder, [], 2)
    for first in (2, 3):
        again = start(PAPER, events=source(spark, folder), available_now=True, **options)
        assert again.await_termination() and again.last_progress.batch == first
        if first == 2:
            arrive(table.slice(120), folder, [], 3)
    assert json.loads(at_rest)["rows"] == 80
    assert again.last_progress.totals.rows == 160
    assert pq.read_table(tmp_path / "out").equals(expected(PAPER, table))


def test_a_checkpoint_on_any_file_system_tells_how_its_stream_stands(
    spark: SparkSession, tmp_path: Path
) -> None:
    mount = "fs.viewfs.mounttable.monitored.link./in"
    spark._jsc.hadoopConfiguration().set(mount, f"file:{tmp_path}/")
    arrive(events(40, 42), tmp_path / "in", [])
    place = "viewfs://monitored/in/ck"
    running: Stream = run(spark, PAPER, tmp_path / "in", checkpoint=place)
    found, there = ids.spark.status(place), ids.spark.status(tmp_path / "ck")
    assert found.totals == there.totals == running.last_progress.totals
    assert ids.spark.status(place, spark=spark).totals == there.totals
    assert (found.checkpoint, found.batch) == (place, 0)
    assert found.items["c"] == "COUNT(*)" and found.rows == 40
