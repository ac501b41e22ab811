"""Count windows on a stream: any split into micro-batches gives what a batch would give."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import ids
from ids.errors import ScriptError
from ids.plan import planned
from ids.spark.frames import Frame
from ids.spark.rows import Ready
from ids.spark.streaming.count_step import CountStep
from ids.spark.streaming.step import Batch, Outcome
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
    return CountStep(plan, frame, spark)


def run(
    spark: SparkSession, text: str, batches: list[pa.Table], lateness: int, folder: Path
) -> list[Outcome]:
    """The outcomes of one micro-batch after another, each tried twice: only the last try counts."""
    outcomes = []
    before = None
    for number, table in enumerate(batches):
        for attempt in range(2 if number == 1 else 1):
            fresh = folder / f"snapshot-{number}-{attempt}"
            fresh.mkdir(parents=True)
            step = step_of(spark, text, batches[0])
            data = Frame.of(spark.createDataFrame(table)).data.repartition(1 + number % 2)
            outcome = step.advance(Batch(number, data, lateness, before, fresh), _no_faults)
        outcomes.append(outcome)
        before = fresh
    return outcomes


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
    ("window", "lateness", "disorder"),
    [
        ("ORDER BY event_time, id ROWS 50 PRECEDING", 10 * MINUTE, 10 * MINUTE),
        ("ORDER BY event_time, id ROWS 20 PRECEDING SLIDE 7 ROWS", 0, 0),
        (
            "PARTITION BY region, shop ORDER BY event_time, id ROWS 9 PRECEDING SLIDE 4 ROWS",
            2 * MINUTE,
            20 * MINUTE,
        ),
    ],
)
def test_any_split_gives_the_emits_of_one_batch(
    spark: SparkSession, tmp_path: Path, window: str, lateness: int, disorder: int
) -> None:
    batches = batches_of(seed=len(window), rows=500, count=3, disorder=disorder)
    text = script(window, "WHERE bytes > -1000000000000")
    where = [b.filter(_passes(b)) for b in batches]
    outcomes = run(spark, text, batches, lateness, tmp_path)
    table, late, watermarks = expected(text, where, lateness)
    emits = pa.concat_tables([outcome.emits for outcome in outcomes])
    same(table, emits)
    assert [outcome.counts.late for outcome in outcomes] == late
    assert [outcome.counts.rows for outcome in outcomes] == [b.num_rows for b in where]
    assert [outcome.watermark for outcome in outcomes] == watermarks
    assert (sum(late) > 0) == (disorder > lateness)


def _passes(table: pa.Table) -> pa.Array:
    return pa.array([b is not None and b > -1_000_000_000_000 for b in table["bytes"].to_pylist()])


def test_a_micro_batch_without_rows_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    first, second = batches_of(seed=1, rows=120, count=2, disorder=0)
    text = script("ORDER BY event_time, id ROWS 5 PRECEDING")
    with_pause = run(spark, text, [first[:0], first, first[:0], second], 0, tmp_path)
    without, _, _ = expected(text, [first, second], 0)
    same(without, pa.concat_tables([outcome.emits for outcome in with_pause]))
    assert with_pause[0].watermark is None
    assert with_pause[2].watermark == with_pause[1].watermark


def test_state_is_no_more_than_tails_and_what_waits(spark: SparkSession, tmp_path: Path) -> None:
    batches = batches_of(seed=2, rows=400, count=3, disorder=0)
    text = script("ORDER BY event_time, id ROWS 6 PRECEDING SLIDE 2 ROWS")
    outcomes = run(spark, text, batches, 0, tmp_path)
    for outcome in outcomes:
        assert outcome.state_rows <= 6 + 2 + 40  # a tenth of all rows may be of one instant
    assert not list(tmp_path.glob("*/rows/ids_kind=0"))


def test_a_stream_is_ordered_by_time(spark: SparkSession) -> None:
    table = events(seed=1, rows=5)
    with pytest.raises(ScriptError, match="a stream needs a timestamp to order by, 'bytes' is"):
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
    outcomes = run(spark, text, batches, 0, tmp_path)
    whole, _, _ = expected(text, batches, 0)
    same(whole, pa.concat_tables([outcome.emits for outcome in outcomes]))
