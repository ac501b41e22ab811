from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ids.demo import SEED
from ids.demo import events as module
from ids.demo.events import ENDPOINTS, REGIONS, TIERS, events, generate, incident_rows
from ids.errors import SinkError, SourceError

ROWS = 100_000


@pytest.fixture(scope="module")
def stream(spark: SparkSession) -> pa.Table:
    """In several blocks."""
    return events(spark, ROWS, 5, 30_000).orderBy("event_time").toArrow()


def numbers(table: pa.Table, name: str) -> npt.NDArray[Any]:
    column: npt.NDArray[Any] = table.column(name).to_numpy()
    return column


def near(share: float, expected: float, rows: int) -> bool:
    """Within four standard deviations of a share counted among that many rows."""
    return abs(share - expected) <= 4 * math.sqrt(expected * (1 - expected) / rows)


def contents(directory: Path) -> dict[str, pa.Table]:
    return {path.name: pq.read_table(path) for path in sorted(directory.iterdir())}


# ── the files ────────────────────────────────────────────────────────────────────────────────────


def test_the_rows_of_each_file_are_the_same_at_any_parallelism(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    for partitions in ("1", "2", "7"):
        # what spark.range asks for the number of its partitions
        monkeypatch.setattr(SparkContext, "defaultParallelism", int(partitions))
        monkeypatch.setitem(module._SETTINGS, "spark.sql.shuffle.partitions", partitions)
        compiled = "false" if partitions == "7" else "true"
        monkeypatch.setitem(module._SETTINGS, "spark.sql.codegen.wholeStage", compiled)
        generate(spark, 4503, tmp_path / partitions)
        made.append(contents(tmp_path / partitions))
    assert made[0] == made[1] == made[2]
    assert [table.num_rows for table in made[0].values()] == [451] * 9 + [444]


def test_ten_files_in_the_order_of_their_rows_are_written_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "out {1}* [2]" / "events"
    directory.parent.mkdir()
    before = {name: spark.conf.get(name) for name in module._SETTINGS}
    generate(spark, 1000, directory)
    assert {name: spark.conf.get(name) for name in module._SETTINGS} == before
    files = sorted(directory.iterdir())
    assert [file.name for file in files] == [f"part-{i:05}.parquet" for i in range(10)]
    assert sorted(files, key=os.path.getmtime) == files  # as a stream takes them
    whole = pa.concat_tables(contents(directory).values())
    assert whole.equals(events(spark, 1000, SEED, 1000).orderBy("event_time").toArrow())
    monkeypatch.setattr(module, "write_parts", None)  # would be called, and fail
    generate(spark, 1000, directory)
    with pytest.raises(SourceError, match="has 1,000 requests, not 1,001; use a new directory"):
        generate(spark, 1001, directory)
    files[3].write_bytes(b"PAR1")
    with pytest.raises(SourceError, match="remove it, or use a new directory"):
        generate(spark, 1000, directory)


def test_events_that_could_not_be_written_whole_are_not_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "utime", fail)
        with pytest.raises(SinkError, match="No space left on device"):
            generate(spark, 100, tmp_path / "events")
    assert not (tmp_path / "events").exists()
    generate(spark, 100, tmp_path / "events")
    assert [path.name for path in tmp_path.iterdir()] == ["events"]


# ── what the stream is like ──────────────────────────────────────────────────────────────────────


def test_another_seed_gives_other_events_and_more_rows_the_same_first_ones(
    spark: SparkSession, stream: pa.Table
) -> None:
    other = events(spark, 1000, 6, 1000).orderBy("event_time").toArrow()
    fewer = events(spark, 1000, 5, 300).orderBy("event_time").toArrow()
    before = incident_rows(1000)[0]
    ours = numbers(stream, "latency")[:1000]
    assert (numbers(other, "latency") != ours).mean() > 0.99
    assert fewer.slice(0, before).equals(stream.slice(0, before))


def test_arrivals_are_poisson(stream: pa.Table) -> None:
    gaps = np.diff(stream.column("event_time").cast(pa.int64()).to_numpy())
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(50_000, rel=4 / np.sqrt(ROWS))
    assert gaps.std() == pytest.approx(50_000, rel=0.03)
    for times in (0.1, 1.0, 3.0):
        assert near(float((gaps > times * 50_000).mean()), np.exp(-times), ROWS)
    # where one block ends and the next begins is an arrival like any other
    assert (gaps[[29_999, 59_999, 89_999]] < 20 * 50_000).all()


def test_requests_have_their_shares(stream: pa.Table) -> None:
    names = ["event_time", "region", "tier", "endpoint", "latency"]
    assert stream.column_names == names
    for column, expected in (("region", REGIONS), ("tier", TIERS), ("endpoint", ENDPOINTS)):
        values = numbers(stream, column)
        assert set(values) == set(expected)
        assert all(near((values == v).mean(), share, ROWS) for v, share in expected.items())
    assert near(eu_premium(stream).mean(), 0.35 * 0.30, ROWS)


def test_latencies_are_lognormal_around_forty_milliseconds(stream: pa.Table) -> None:
    first, _ = incident_rows(ROWS)
    calm = np.log(numbers(stream, "latency")[:first])
    assert np.exp(np.median(calm)) == pytest.approx(40.0, rel=0.012)
    assert calm.std() == pytest.approx(0.5, rel=0.02)
    centred = (calm - calm.mean()) / calm.std()
    assert abs((centred**3).mean()) < 0.05
    assert (centred**4).mean() == pytest.approx(3, abs=0.1)


def eu_premium(table: pa.Table) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (numbers(table, "region") == "EU-West") & (
        numbers(table, "tier") == "premium"
    )
    return found


def slowed(spark: SparkSession, rows: int) -> npt.NDArray[np.float64]:
    """By how much each latency exceeds that of the same stream without an incident."""
    shifted, calm = (
        events(spark, rows, 5, 30_000, **shift).orderBy("event_time").toArrow()
        for shift in ({}, {"shift": 1.0})
    )
    ratio: npt.NDArray[np.float64] = numbers(shifted, "latency") / numbers(calm, "latency")
    return ratio


def test_the_incident_is_the_middle_4_percent_of_premium_requests_from_eu_west(
    spark: SparkSession, stream: pa.Table
) -> None:
    first, end = incident_rows(ROWS)
    row = np.arange(ROWS)
    inside = (row >= first) & (row < end)
    assert inside.mean() == 0.04 and inside[ROWS // 2]
    assert (slowed(spark, ROWS) == np.where(inside & eu_premium(stream), 4.0, 1.0)).all()


@pytest.mark.parametrize("beyond", [True, False])
def test_the_incident_ends_at_its_edges(
    spark: SparkSession, stream: pa.Table, beyond: bool
) -> None:
    planted = eu_premium(stream)
    # a row is of the same region and tier in a stream of any length: take a length with two such
    # rows just outside of the incident, or just inside
    for rows in range(100, 20_000):
        first, end = incident_rows(rows)
        if planted[[first - beyond, end - 1 + beyond]].all():
            break
    expected = np.flatnonzero(planted[first:end]) + first
    assert np.flatnonzero(slowed(spark, rows) != 1.0).tolist() == expected.tolist()


def test_the_stream_is_lazy_and_in_the_jvm(spark: SparkSession) -> None:
    frame = events(spark, 5_000, 7, 5_000)
    plan = frame._jdf.queryExecution().toString()
    assert "Python" not in plan and "InPandas" not in plan
    assert frame.where(F.col("latency") <= 0).count() == 0
    assert frame.count() == 5_000
