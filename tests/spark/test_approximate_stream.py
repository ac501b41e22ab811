"""APPROXIMATE on a stream has the bits of ``ids.sql``, however the rows come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import ids
from ids.errors import ArgumentError, CheckpointError, ScriptError, SinkError
from ids.spark import start
from ids.spark.stream_count import _whole_alike
from tests.spark.streams import UTC, arrive, events, run, source
from tests.spark.tables import same

SEED = -(2**60) - 1
SECOND = 1_000_000


def sample(size: int, more: str = "") -> str:
    return f"APPROXIMATE USING RESERVOIR SAMPLE {size}{more}"


ITEMS = f"""
AVG(latency) AS exact, SHAPLEY_DELTA(AVG(latency), region = 'EU') AS exact_change,
SHAPLEY_ATTRIBUTE(AVG(latency), region = 'EU' WITH (SHARE, LIFT) {sample(16)}) AS a,
SHAPLEY_ATTRIBUTE(VAR_SAMP(latency), tier IS NULL {sample(9, " CONFIDENCE 0.8")}) AS `odd.name`,
SHAPLEY_DELTA(SUM(size), tier = 'free' {sample(9)}) AS change,
SHAPLEY_ATTRIBUTE(COUNT(*), latency > 20 {sample(16)}) AS c
"""


def script(window: str, items: str = ITEMS) -> str:
    where = "WHERE size IS NULL OR size > -900000000000"
    return f"SELECT {items} FROM events {where} WINDOW w AS ({window}) EMIT CHANGES"


def ranged(keys: str = "") -> str:
    partition = f"PARTITION BY {keys} " if keys else ""
    return (
        f"{partition}ORDER BY event_time "
        "RANGE INTERVAL '30' SECOND PRECEDING SLIDE INTERVAL '10' SECOND"
    )


def repeated(rows: int, seed: int, seconds: int) -> pa.Table:
    """Events, very many of one value, and some that are there several times."""
    table = events(rows, seed, seconds)
    latency = table["latency"].to_numpy().copy()
    latency[::4] = 50.0
    latency = pa.array(latency, from_pandas=True)
    table = table.set_column(table.schema.get_field_index("latency"), "latency", latency)
    again = np.repeat(np.random.default_rng(seed).integers(0, rows, rows // 8), 4)
    table = pa.concat_tables([table, table.take(pa.array(again))])
    return table.sort_by("event_time")


def shuffled(table: pa.Table, by: int) -> pa.Table:
    """The rows as they come, each up to ``by`` seconds after others of its time."""
    times = table["event_time"].cast(pa.int64()).to_numpy()
    late = np.random.default_rng(by).integers(0, by * SECOND, len(times))
    return table.take(pa.array(np.argsort(times + late, kind="stable")))


def accepted(table: pa.Table, cuts: list[int], lateness: int) -> tuple[pa.Table, int]:
    """The rows that are not late, and the last watermark in µs."""
    taken, watermark, last = [], -(2**62), -(2**62)
    for a, b in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        part = table.slice(a, b - a)
        times = part["event_time"].cast(pa.int64())
        taken.append(part.filter(pc.greater_equal(times, watermark)))
        last = max(last, pc.max(times).as_py())
        watermark = max(watermark, last - lateness)
    return pa.concat_tables(taken), watermark


def before(emits: pa.Table, watermark: int) -> pa.Table:
    return emits.filter(pc.less(emits["emit_at"], pa.scalar(watermark, UTC)))


def errors(emits: pa.Table) -> Any:
    return np.concatenate([emits[n].to_numpy() for n in emits.column_names if "_error" in n])


@pytest.mark.slow
def test_time_windows_are_sampled_as_in_process_whatever_breaks(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = shuffled(repeated(500, 3, 100), 25)
    cuts = [90, 330, 560]
    text = script(ranged("region"))
    rows, watermark = accepted(table, cuts, 15 * SECOND)
    assert rows.num_rows < table.num_rows, "some are late"
    expected = before(ids.sql(text, events=rows, seed=SEED), watermark)
    told = errors(expected)
    assert (told > 0).mean() > 0.2 and (told == 0).mean() > 0.1, "some windows are sampled"
    assert pc.any(pc.is_null(expected["region"])).as_py()
    arrive(table, tmp_path / "in", cuts)
    taken: list[pa.Table] = []

    def take(emits: pa.Table) -> None:
        if len(taken) == 2 and not (tmp_path / "mended").exists():
            raise OSError("the disk is full")
        taken.append(emits)

    options: dict[str, Any] = {"lateness": "15 seconds", "seed": SEED, "output": take}
    with pytest.raises(SinkError, match="the disk is full"):
        run(spark, text, tmp_path / "in", **options)
    (tmp_path / "mended").touch()
    # what is retained for questions is another matter, and may change
    run(spark, text, tmp_path / "in", retain=True, **options)
    assert all(emits.num_rows for emits in taken[1:])
    same(expected, pa.concat_tables(taken))
    with pytest.raises(CheckpointError, match="belongs to a stream with another seed;"):
        run(spark, text, tmp_path / "in", **options | {"seed": SEED + 1})
    with pytest.raises(CheckpointError, match=r"CONFIDENCE 0\.9\); use another alias"):
        run(spark, text.replace("0.8", "0.9"), tmp_path / "in", **options)


@pytest.mark.slow
def test_less_lateness_after_a_restart_takes_nothing_away(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = repeated(200, 11, 60)
    old, new = table.slice(0, 40), table.slice(40)
    text = script(ranged())
    arrive(new, tmp_path / "in", [])
    first = run(spark, text, tmp_path / "in", lateness="10 minutes")
    assert not first.table().num_rows
    # all of it leaves the window with the batch that brings it
    arrive(old, tmp_path / "in", [], first=1)
    second = run(spark, text, tmp_path / "in", retain=True)
    last = pc.max(table["event_time"].cast(pa.int64())).as_py()
    same(before(ids.sql(text, events=table), last), second.table())


def test_count_windows_are_sampled_as_in_process_across_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = repeated(300, 10, 40)
    table = table.append_column("id", pc.rank(table["size"], tiebreaker="dense"))
    table = shuffled(table, 15)
    cuts = [120, 200, 300]  # tails of these are cut inside equal rows
    order = "ORDER BY event_time, id, region, tier, latency"
    text = script(f"PARTITION BY tier {order} ROWS 24 PRECEDING SLIDE 2 ROWS")
    rows, watermark = accepted(table, cuts, 4 * SECOND)
    assert rows.num_rows < table.num_rows
    times = rows["event_time"].cast(pa.int64())
    settled = rows.filter(pc.less(times, watermark))
    expected = ids.sql(text, events=settled, seed=9)
    assert errors(expected).any()
    folder, options = tmp_path / "in", {"lateness": "4 seconds", "seed": 9}
    arrive(table.slice(0, cuts[1]), folder, cuts[:1])
    first = run(spark, text, folder, **options)
    arrive(table.slice(cuts[1]), folder, [cuts[2] - cuts[1]], first=2)
    second = run(spark, text, folder, **options)
    found = pa.concat_tables([first.table(), second.table()])
    same(expected, found)


def test_a_tail_never_begins_inside_equal_rows() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        sizes = rng.integers(1, 12, 3)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        content = np.concatenate([rng.integers(0, 4, n) + 10 * k for k, n in enumerate(sizes)])
        first = np.array([rng.integers(0, n) for n in sizes])
        slow = []
        for k, begins in enumerate(first):
            own = content[starts[k] : starts[k + 1]].tolist()
            slow.append(min(own.index(value) for value in own[begins:]))
        assert _whole_alike(content, starts, first).tolist() == slow


def test_a_streaming_frame_and_wide_samples_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    arrive(events(9), tmp_path / "in", [])
    stream = source(spark, tmp_path / "in")
    with pytest.raises(ScriptError) as error:
        ids.spark.sql(script(ranged()), events=stream)
    assert str(error.value) == (
        "ids.spark.sql cannot run APPROXIMATE over a streaming DataFrame at line "
        "3, column 66; use ids.spark.start, or leave the clause out"
    )
    text = script(ranged(), f"SHAPLEY_ATTRIBUTE(SUM(size), size > 1 {sample(90_000)})")
    with pytest.raises(ScriptError, match=r"90,000 rows over a time window does not run on Spark"):
        start(text, checkpoint=tmp_path / "ck", events=stream)
    with pytest.raises(ArgumentError, match=r"a seed of 9\d+; choose a whole number of 64 bits"):
        start(script(ranged()), checkpoint=tmp_path / "ck", seed=2**63, events=stream)
    assert not (tmp_path / "ck").exists()
