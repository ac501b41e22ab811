"""Count windows on a stream: any split into micro-batches gives what a batch would give."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ids
from ids.errors import ScriptError
from ids.plan import planned
from ids.spark import stream_count as row_store
from ids.spark import stream_store as store
from ids.spark.file_system import files_at
from ids.spark.frame import Frame
from ids.spark.rank import Division, Ranked
from ids.spark.spark_prepare import Ready
from ids.spark.stream_batch import Batch, Outcome
from ids.spark.stream_count import CountStep
from ids.spark.stream_store import Manifest, Piece, Store
from tests.spark.streams import arrive
from tests.spark.tables import events, same

MINUTE = 60_000_000
ITEMS = (
    "AVG(latency) AS a, VAR_POP(level) AS v, COUNT(shop) AS c, "
    "SHAPLEY_ATTRIBUTE(AVG(latency), region = 'EU' AND NOT tier = 'premium' WITH (SHARE)) AS s, "
    "SHAPLEY_DELTA(SUM(bytes), cached) AS d"
)


def script(window: str, where: str = "") -> str:
    return f"SELECT {ITEMS} FROM events {where} WINDOW w AS ({window}) EMIT CHANGES;"


def step_of(spark: SparkSession, text: str, table: pa.Table) -> CountStep:
    frame = Frame.of(spark.createDataFrame(table))
    plan = next(planned(text, lambda _: frame.schema)).plan
    assert plan is not None
    return CountStep(plan, frame)


class Told(NamedTuple):
    """What a micro-batch gave, its emits fetched."""

    emits: pa.Table
    outcome: Outcome

    @property
    def pieces(self) -> list[Piece]:
        """Everything that is remembered."""
        return [piece for some in self.outcome.pieces.values() for piece in some]


@dataclass
class Stream:
    """Micro-batches one after another, each taken by a process of its own."""

    spark: SparkSession
    text: str
    folder: Path
    lateness: int = 0

    def take(self, table: pa.Table, number: int, tries: int = 1) -> Told:
        """Only the last try counts."""
        files = files_at(self.folder)
        files.make("ids")
        for _ in range(tries):
            state = Store(files, self.spark)
            before = state.begin()
            step = step_of(self.spark, self.text, table)
            data = Frame.of(self.spark.createDataFrame(table)).data.repartition(1 + number % 2)
            outcome = step.advance(Batch(number, data, self.lateness, before, state), _no_faults)
            emits = outcome.emits.fetched() if outcome.emits else step.schema.empty_table()
        state.commit(Manifest(number, {"step": outcome.facts}, outcome.pieces))
        return Told(emits, outcome)


def run(
    spark: SparkSession, text: str, batches: list[pa.Table], lateness: int, folder: Path
) -> list[Told]:
    """What one micro-batch after another gives; the second one is tried twice."""
    stream = Stream(spark, text, folder, lateness)
    return [stream.take(table, n, tries=2 if n == 1 else 1) for n, table in enumerate(batches)]


def _no_faults(rows: Ready, faults: int) -> None:
    raise AssertionError(f"{faults} faults")


def expected(
    text: str, batches: list[pa.Table], lateness: int
) -> tuple[pa.Table, list[int], list[int]]:
    """What a batch gives over all rows before the last watermark; late rows, watermarks."""
    taken, late, watermarks = [], [], []
    watermark, last = -(2**62), -(2**62)
    for table in batches:
        times = table["event_time"].cast(pa.int64()).to_numpy()
        taken.append(table.filter(pa.array(times >= watermark)))
        late.append(int((times < watermark).sum()))
        last = max(last, int(times.max()))
        watermark = max(watermark, last - lateness)
        watermarks.append(watermark)
    whole = pa.concat_tables(taken)
    settled = whole["event_time"].cast(pa.int64()).to_numpy() < watermark
    return ids.sql(text, events=whole.filter(pa.array(settled))), late, watermarks


def batches_of(seed: int, rows: int, count: int, disorder: int) -> list[pa.Table]:
    """Rows that come about in order, by up to ``disorder`` µs too late, in uneven batches."""
    rng = np.random.default_rng(seed)
    table = events(seed, rows)
    # ties must be settled by a column: a shuffle between tasks has no order to keep
    table = table.append_column("id", pa.array(np.arange(rows)))
    times = table["event_time"].cast(pa.int64()).to_numpy()
    table = table.take(np.argsort(times + rng.integers(0, disorder + 1, rows), kind="stable"))
    cuts = np.sort(rng.choice(np.arange(1, rows), count - 1, replace=False)).tolist()
    borders = [0, *cuts, rows]
    return [table.slice(a, b - a) for a, b in pairwise(borders)]


@pytest.mark.parametrize(
    ("window", "lateness", "disorder", "sizes"),
    [
        ("ORDER BY event_time, id ROWS 50 PRECEDING", 10 * MINUTE, 10 * MINUTE, {"_TOGETHER": 2}),
        pytest.param(
            "ORDER BY event_time, id ROWS 20 PRECEDING SLIDE 7 ROWS",
            0,
            0,
            {"_UNFOLDED": 100, "_TASK_ROWS": 40},
            marks=pytest.mark.slow,
        ),
        (
            "PARTITION BY region, shop ORDER BY event_time, id ROWS 9 PRECEDING SLIDE 4 ROWS",
            2 * MINUTE,
            20 * MINUTE,
            {"_UNFOLDED": 1, "_BUCKET_ROWS": 30},
        ),
        pytest.param(
            "PARTITION BY region ORDER BY event_time, id ROWS 5 PRECEDING SLIDE 3 ROWS",
            MINUTE,
            2 * MINUTE,
            {"_UNFOLDED": 60, "_BUCKET_ROWS": 15, "_TASK_ROWS": 20},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_any_split_gives_the_emits_of_one_batch(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    window: str,
    lateness: int,
    disorder: int,
    sizes: dict[str, int],
) -> None:
    for name, size in sizes.items():
        monkeypatch.setattr(store if name == "_TOGETHER" else row_store, name, size)
    tasks = spied_tasks(monkeypatch)
    batches = batches_of(seed=len(window), rows=500, count=4, disorder=disorder)
    text = script(window, "WHERE bytes > -1000000000000")
    where = [b.filter(_passes(b)) for b in batches]
    told = run(spark, text, batches, lateness, tmp_path)
    table, late, watermarks = expected(text, where, lateness)
    same(table, pa.concat_tables([each.emits for each in told]))
    assert [each.outcome.counts.late for each in told] == late
    assert [each.outcome.counts.rows for each in told] == [b.num_rows for b in where]
    assert [each.outcome.watermark for each in told] == watermarks
    assert (sum(late) > 0) == (disorder > lateness)
    if "_BUCKET_ROWS" in sizes:
        assert told[-1].outcome.facts["buckets"] > 2
    if "_TASK_ROWS" in sizes:
        assert max(tasks) > 2


def spied_tasks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tasks answered each micro-batch, as they come."""
    real, found = Division.emits, []

    def emits(division: Division) -> Ranked:
        ranked = real(division)
        found.append(len(ranked.bounds))
        return ranked

    monkeypatch.setattr(Division, "emits", emits)
    return found


def _passes(table: pa.Table) -> pa.Array:
    return pa.array([b is not None and b > -1_000_000_000_000 for b in table["bytes"].to_pylist()])


def test_a_micro_batch_without_rows_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    first, second = batches_of(seed=1, rows=120, count=2, disorder=0)
    text = script("ORDER BY event_time, id ROWS 5 PRECEDING")
    with_pause = run(spark, text, [first[:0], first, first[:0], second], 0, tmp_path)
    without, _, _ = expected(text, [first, second], 0)
    same(without, pa.concat_tables([each.emits for each in with_pause]))
    watermarks = [each.outcome.watermark for each in with_pause]
    assert watermarks[0] is None
    assert watermarks[2] == watermarks[1]


def test_state_is_no_more_than_tails_and_what_waits(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = batches_of(seed=2, rows=400, count=3, disorder=0)
    text = script("ORDER BY event_time, id ROWS 6 PRECEDING SLIDE 2 ROWS")
    monkeypatch.setattr(row_store, "_UNFOLDED", 1)
    told = run(spark, text, batches, 0, tmp_path)
    for each in told:
        rows = sum(piece.rows for piece in each.pieces)
        assert rows <= 6 + 2 + 40  # a tenth of all rows may be of one instant
    named = {piece.name for each in told for piece in each.pieces}
    written = {str(p.parent.relative_to(tmp_path)) for p in tmp_path.glob("data/**/*.parquet")}
    assert written == named & written, "what the first try left is gone"


def test_buckets_without_settled_rows_are_neither_read_nor_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_store, "_UNFOLDED", 1)
    monkeypatch.setattr(row_store, "_BUCKET_ROWS", 10)
    busy = 7  # the row of the second batch that is settled with the third is this key's, too
    key = np.concatenate([np.arange(8, 168) % 16, np.full(30, busy)])
    at = pa.array(np.arange(len(key)) * MINUTE, pa.timestamp("us", "UTC"))
    table = pa.table({"event_time": at, "key": key, "x": np.arange(len(key)) % 17})
    text = (
        "SELECT SUM(x) AS s, SHAPLEY_DELTA(SUM(x), x > 4) AS d FROM events "
        "WINDOW w AS (PARTITION BY key ORDER BY event_time ROWS 4 PRECEDING) EMIT CHANGES;"
    )
    stream, emits = Stream(spark, text, tmp_path), []
    for number in range(2):
        told = stream.take(table.slice(80 * number, 80), number)
        emits.append(told.emits)
    before = told.outcome.pieces[row_store.TAILS]
    assert len(before) > 4
    for piece in before:
        folder = tmp_path / piece.name
        held = pa.concat_tables([pq.read_table(file) for file in folder.glob("*.parquet")])
        if busy not in held["ids_k0"].to_pylist():
            shutil.rmtree(folder)  # nobody will miss it
    told = stream.take(table.slice(160), 2)
    emits.append(told.emits)
    same(ids.sql(text, events=table.slice(0, table.num_rows - 1)), pa.concat_tables(emits))
    after = told.outcome.pieces[row_store.TAILS]
    assert len(after) == len(before)
    assert len([piece for piece in before if piece not in after]) == 1


def test_a_stream_is_ordered_by_time(spark: SparkSession) -> None:
    table = events(seed=1, rows=5)
    with pytest.raises(
        ScriptError, match="a stream requires ORDER BY a timestamp, and 'bytes' is not one"
    ):
        step_of(spark, script("ORDER BY bytes ROWS 5 PRECEDING"), table)


def test_large_whole_numbers_do_not_round_the_small_ones_before_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    at = pa.array(np.arange(40) * MINUTE, pa.timestamp("us", "UTC"))
    x = np.concatenate([np.arange(20) * 0.1, np.arange(20) * 2.0**60])
    table = pa.table({"event_time": at, "x": x})
    text = (
        "SELECT SUM(x) AS s, SHAPLEY_ATTRIBUTE(SUM(x), x < 100) AS small FROM events "
        "WINDOW w AS (ORDER BY event_time ROWS 8 PRECEDING) EMIT CHANGES;"
    )
    batches = [table.slice(0, 20), table.slice(20)]
    told = run(spark, text, batches, 0, tmp_path)
    whole, _, _ = expected(text, batches, 0)
    same(whole, pa.concat_tables([each.emits for each in told]))


@pytest.mark.slow
@pytest.mark.parametrize("keys", ["", "PARTITION BY key "])
def test_no_rows_keys_or_emits_pass_through_the_driver(tmp_path: Path, keys: str) -> None:
    rows, many = 300_000, 100_000
    rng = np.random.default_rng(5)
    key = np.where(rng.random(rows) < 0.3, 0, rng.integers(0, many, rows))  # and one heavy key
    at = pa.array(np.arange(rows) * 1_000, pa.timestamp("us", "UTC"))
    table = pa.table({"event_time": at, "key": key, "x": rng.integers(0, 1_000, rows)})
    text = (
        "SELECT SUM(x) AS s, SHAPLEY_DELTA(SUM(x), x > 400) AS d FROM events "
        f"WINDOW w AS ({keys}ORDER BY event_time ROWS 3 PRECEDING SLIDE 2 ROWS) EMIT CHANGES;"
    )
    arrive(table, tmp_path / "in", [120_000, 240_000])
    places = [str(tmp_path / name) for name in ("in", "out", "ck")]
    program = [sys.executable, "-m", "tests.spark.count_jobs", text, *places]
    subprocess.run(program, check=True, timeout=600)
    found = pq.read_table(tmp_path / "out").sort_by("emit_at")
    settled = table.slice(0, rows - 1)
    assert found.equals(ids.sql(text, events=settled).cast(found.schema))
    newest = Store(files_at(tmp_path / "ck")).latest()
    assert newest is not None
    assert (newest.facts["step"]["buckets"] > 1) == bool(keys)
