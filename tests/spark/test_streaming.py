"""A stream's emits are a batch's emits at the instants before the watermark, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import Observation, SparkSession

import ids
from ids.errors import IdsError
from ids.spark import start
from ids.spark import stream_panes as collecting
from tests.spark.streams import (
    PAPER,
    always_tidy,
    arrive,
    events,
    expected,
    in_workers,
    run,
    source,
)

_ITEMS = """
SHAPLEY_ATTRIBUTE(SUM(latency), eu WITH (SHARE, LIFT)) AS s,
SHAPLEY_ATTRIBUTE(AVG(latency), NOT eu OR tier = 'free' WITH (SHARE, LIFT)) AS a,
SHAPLEY_ATTRIBUTE(VAR_POP(latency), latency > 20 AND eu WITH (SHARE, LIFT)) AS p,
SHAPLEY_ATTRIBUTE(VAR_SAMP(latency), size < 0) AS v,
SHAPLEY_ATTRIBUTE(COUNT(latency), eu) AS k, SHAPLEY_ATTRIBUTE(COUNT(*), eu) AS n_eu,
SHAPLEY_ATTRIBUTE(VARIANCE(size), eu) AS w,
SHAPLEY_DELTA(AVG(latency), eu) AS d, SHAPLEY_DELTA(SUM(size), tier = 'free') AS ds,
SUM(latency) AS sum_l, AVG(size) AS avg_s, VAR_SAMP(latency) AS var_l, COUNT(*) AS c
"""


def _script(keys: str = "", where: str = "", window: str = "30", slide: str = "10") -> str:
    partition = f"PARTITION BY {keys} " if keys else ""
    return f"""
    REGISTER PREDICATE eu AS (region = 'EU') ON events;
    SELECT {_ITEMS} FROM events {where}
    WINDOW w AS ({partition}ORDER BY event_time
      RANGE INTERVAL '{window}' SECOND PRECEDING SLIDE INTERVAL '{slide}' SECOND) EMIT CHANGES"""


@pytest.mark.parametrize(
    ("script", "seed", "tidy", "workers"),
    [
        pytest.param(_script(), 1, False, True, marks=pytest.mark.slow),
        (_script(keys="tier, size % 3"), 2, True, True),
        (_script(keys="tier, size % 3"), 2, True, False),
        pytest.param(
            _script(keys="region", where="WHERE latency > 5 OR latency IS NULL"),
            3,
            False,
            False,
            marks=pytest.mark.slow,
        ),
        pytest.param(_script(window="10"), 4, True, True, marks=pytest.mark.slow),
        pytest.param(
            _script(keys="tier", window="60", slide="1"), 5, False, True, marks=pytest.mark.slow
        ),
    ],
)
def test_any_split_into_micro_batches_gives_the_emits_of_a_batch(
    spark: SparkSession,
    tmp_path: Path,
    script: str,
    seed: int,
    tidy: bool,
    workers: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if tidy:
        always_tidy(monkeypatch)
    if workers:
        in_workers(monkeypatch)
    rng = np.random.default_rng(seed)
    table = events(400, seed)
    if "size % 3" in script:
        script = script.replace("size % 3", "third")
        table = table.append_column("third", pa.array(rng.choice([0.5, -1.0, 2.0], 400)))
    arrive(table, tmp_path / "in", sorted(rng.integers(0, 400, 3).tolist()))
    running = run(spark, script, tmp_path / "in")
    assert running.table().equals(expected(script, table))
    totals = running.last_progress.totals
    kept = 400 if "WHERE" not in script else None
    assert (totals.late, totals.bad) == (0, 0)
    assert kept is None or totals.rows == kept


@pytest.mark.parametrize("keys", ["", "tier"])
@pytest.mark.parametrize(
    ("workers", "tidy"),
    [(True, False), (True, True), pytest.param(False, False, marks=pytest.mark.slow)],
)
def test_windows_at_one_instant_are_sums_of_panes(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    keys: str,
    workers: bool,
    tidy: bool,
) -> None:
    if tidy:
        always_tidy(monkeypatch)
    if workers:
        in_workers(monkeypatch)
    items = "SHAPLEY_ATTRIBUTE(VAR_POP(latency), eu) AS v, AVG(size) AS s, COUNT(*) AS c"
    script = _script(keys, window="30", slide="10").replace(_ITEMS, items)
    table = events(90, 17, seconds=60)  # a batch for every slide, and one for ten without a row
    slides = table["event_time"].cast(pa.int64()).to_numpy() // 10_000_000
    arrive(table, tmp_path / "in", [*np.flatnonzero(np.diff(slides)) + 1])
    assert run(spark, script, tmp_path / "in").table().equals(expected(script, table))


@pytest.mark.slow
def test_rows_out_of_order_within_the_lateness_all_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(300, 6)
    rng = np.random.default_rng(6)
    jitter = rng.integers(0, 20_000_000, 300)
    order = np.argsort(table["event_time"].cast(pa.int64()).to_numpy() + jitter, kind="stable")
    arrive(table.take(pa.array(order)), tmp_path / "in", [60, 61, 150, 220])
    running = run(spark, PAPER, tmp_path / "in", lateness="20 seconds")
    assert running.table().equals(expected(PAPER, table, "20 seconds"))
    assert running.last_progress.totals.late == 0


def test_late_rows_are_dropped_and_counted_one_by_one(spark: SparkSession, tmp_path: Path) -> None:
    table = events(200, 7)
    times = table["event_time"].cast(pa.int64()).to_numpy()
    newest = times[99]
    # at the watermark itself a row is in time, a microsecond before it is late
    moved = np.array([newest, newest - 1, newest - 2_000_001, newest - 2_000_000, 0])
    late = table.slice(0, 5).set_column(0, "event_time", pa.array(moved, table.schema[0].type))
    on_time = pa.concat_tables([table.slice(0, 100), late, table.slice(100)])
    arrive(on_time, tmp_path / "in", [100, 105])
    running = run(spark, PAPER, tmp_path / "in", lateness="2 seconds")
    kept = pa.concat_tables([table.slice(0, 100), late.take([0, 1, 3]), table.slice(100)])
    assert running.table().equals(expected(PAPER, kept, "2 seconds"))
    assert running.last_progress.totals.late == 2
    assert running.last_progress.totals.rows == 205


class Repeated(Observation):
    """As Spark counts where it has run a task again because the worker with its output is lost."""

    @property
    def get(self) -> dict[str, Any]:
        found = super().get
        return found | {name: found[name] * 2 for name in ("rows", "late", "bad", "ahead", "runs")}


def test_rows_of_a_task_that_was_run_twice_count_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = events(60, 8)
    arrive(pa.concat_tables([table, table.slice(0, 9)]), tmp_path / "in", [40])
    calm = run(spark, PAPER, tmp_path / "in", checkpoint=tmp_path / "calm").last_progress
    monkeypatch.setattr(collecting, "Observation", Repeated)
    assert run(spark, PAPER, tmp_path / "in").last_progress.totals == calm.totals
    assert calm.totals.late == 9


@pytest.mark.slow
@pytest.mark.parametrize("workers", [False, True])
def test_values_that_reach_farther_and_farther_stay_exact(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: bool
) -> None:
    always_tidy(monkeypatch)  # sums under different parts come together
    if workers:
        in_workers(monkeypatch)
    table = events(240, 8)
    size = np.repeat([0.0, 1e-6, 1.0, 1e12, 1e-60, 1e90], 40)
    value = np.random.default_rng(8).normal(size=240) * size
    table = table.set_column(3, "latency", pa.array(value))
    arrive(table, tmp_path / "in", [40, 80, 120, 160, 200])
    items = [f"SHAPLEY_ATTRIBUTE({each}(latency), eu) AS {each}" for each in ("AVG", "VAR_POP")]
    script = _script(window="300", slide="10").replace(_ITEMS, ", ".join(items))
    assert run(spark, script, tmp_path / "in").table().equals(expected(script, table))


def test_more_than_63_predicates_and_many_atoms(spark: SparkSession, tmp_path: Path) -> None:
    table = events(300, 9)
    items = [
        f"SHAPLEY_ATTRIBUTE({'COUNT(*)' if k % 8 else 'AVG(latency)'}, size > {k}000000000) AS i{k}"
        for k in range(70)
    ]
    script = _script().replace(_ITEMS, ", ".join(items))
    arrive(table, tmp_path / "in", [150])
    assert run(spark, script, tmp_path / "in").table().equals(expected(script, table))


def test_a_stream_goes_on_where_it_was_stopped(spark: SparkSession, tmp_path: Path) -> None:
    table = events(300, 10)
    got = []
    for first, (a, b) in enumerate([(0, 120), (120, 130), (130, 300)]):
        arrive(table.slice(a, b - a), tmp_path / "in", [], first)
        got.append(run(spark, PAPER, tmp_path / "in"))
    assert pa.concat_tables([r.table() for r in got]).equals(expected(PAPER, table))
    assert [r.last_progress.totals.rows for r in got] == [120, 130, 300]
    assert got[-1].last_progress.totals.emits == expected(PAPER, table).num_rows
    again = run(spark, PAPER, tmp_path / "in")
    assert again.table().num_rows == 0
    assert again.last_progress.totals == got[-1].last_progress.totals


def test_more_lateness_after_a_restart_brings_no_watermark_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = events(120, 14)
    arrive(table.slice(0, 80), tmp_path / "in", [])
    passed = run(spark, PAPER, tmp_path / "in").last_progress.watermark
    arrive(pa.concat_tables([table.slice(80), table.slice(0, 5)]), tmp_path / "in", [40], 1)
    progress = run(spark, PAPER, tmp_path / "in", lateness="1 hour").last_progress
    assert (progress.watermark, progress.totals.late) == (passed, 5)


def test_bad_rows_end_the_stream_or_are_kept_once(spark: SparkSession, tmp_path: Path) -> None:
    table = events(200, 11)
    latency = table["latency"].combine_chunks().to_numpy(zero_copy_only=False).copy()
    empty = np.isnan(latency)
    latency[[20, 150]] = [np.nan, np.inf]
    empty[[20, 150]] = False
    bad = table.set_column(3, "latency", pa.array(latency, mask=empty, from_pandas=False))
    arrive(bad, tmp_path / "in", [100])
    with pytest.raises(
        IdsError, match=r"NaN of 'latency' in row 21 of f000.parquet; .*bad_rows='DIR'"
    ):
        run(spark, PAPER, tmp_path / "in")
    running = run(spark, PAPER, tmp_path / "in", bad_rows=tmp_path / "bad")
    good = bad.take(np.setdiff1d(np.arange(200), [20, 150]))
    assert running.table().equals(expected(PAPER, good))
    assert running.last_progress.totals.bad == 2
    import pyarrow.parquet as pq

    kept = pa.concat_tables(
        [pq.read_table(f) for f in sorted((tmp_path / "bad").glob("*.parquet"))]
    )
    assert kept["ids_reason"].to_pylist() == ["NaN of 'latency'", "an infinite value of 'latency'"]
    assert kept["size"].to_pylist() == bad["size"].take([20, 150]).to_pylist()


@pytest.mark.parametrize(
    ("script", "fact"),
    [
        (PAPER.replace("CHANGES", "FINAL"), "EMIT FINAL"),
        (PAPER + PAPER.split(";", 1)[1], "one SELECT, and this script has 2"),
        (
            "REGISTER PREDICATE eu AS (region = 'EU') ON events;",
            "one SELECT, and this script has none",
        ),
        (PAPER + "SHOW PREDICATES;", "SHOW"),
        (PAPER.replace("latency", "latensy"), "did you mean 'latency'"),
        (PAPER.replace("AVG", "M4"), "M4"),
    ],
)
def test_what_a_stream_cannot_do_is_said_before_it_starts(
    spark: SparkSession, tmp_path: Path, script: str, fact: str
) -> None:
    arrive(events(10), tmp_path / "in", [])
    with pytest.raises(IdsError, match=fact):
        start(script, checkpoint=tmp_path / "ck", events=source(spark, tmp_path / "in"))
    assert not (tmp_path / "ck").exists()


def test_a_finite_table_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(IdsError, match=r"batch DataFrame; .*ids.spark.sql"):
        start(PAPER, checkpoint=tmp_path / "ck", events=spark.createDataFrame(events(5)))
    with pytest.raises(IdsError, match="is not a stream"):
        start(PAPER, checkpoint=tmp_path / "ck", events=events(5), spark=spark)


def test_a_folder_is_a_table(spark: SparkSession, tmp_path: Path) -> None:
    table = events(100, 12)
    arrive(table, tmp_path / "in", [50])
    running = ids.spark.start(
        PAPER, checkpoint=tmp_path / "ck", available_now=True, spark=spark, events=tmp_path / "in"
    )
    running.await_termination()
    assert running.table().equals(expected(PAPER, table))


@pytest.mark.parametrize("where", ["", "WHERE region = 'nowhere'"])
def test_batches_of_which_nothing_is_left(spark: SparkSession, tmp_path: Path, where: str) -> None:
    table = events(90, 13)
    late = table.slice(0, 20)
    arrive(pa.concat_tables([table.slice(0, 60), late, table.slice(60)]), tmp_path / "in", [60, 80])
    script = PAPER.replace("FROM events", f"FROM events {where}")
    running = run(spark, script, tmp_path / "in")
    assert running.table().equals(expected(script, table))
    totals = running.last_progress.totals
    assert (totals.rows, totals.late) == ((0, 0) if where else (110, 20))
