from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from evaluation.bench import Bench
from evaluation.step import FULL, QUICK, SUBJECTS
from evaluation.workloads import recipe
from evaluation.workloads.manifest import prepare
from ids.errors import SourceError


@pytest.fixture(scope="module")
def bench(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """With the stress workload in it, and no trips."""
    directory = tmp_path_factory.mktemp("workloads")
    found = Bench(QUICK, directory)
    rows = SUBJECTS["stress"].quick_rows
    prepare(spark, recipe("stress", rows=rows), found.place("stress"))
    return found


def test_what_is_there_is_not_made_again(bench: Bench) -> None:
    made: list[str] = []
    bench.prepare(["stress", "nyc"], made.append)
    assert made == []


def test_a_workload_that_was_altered_is_refused(bench: Bench, tmp_path: Path) -> None:
    other = Bench(QUICK, tmp_path)
    other.place("stress").symlink_to(tmp_path / "copy")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "manifest.json").write_text((bench.place("stress") / "manifest.json").read_text())
    with pytest.raises(SourceError, match="differs from its manifest"):
        other.prepare(["stress"], print)


def test_without_trips_there_is_no_nyc_and_auction_stands_in(bench: Bench) -> None:
    assert bench.missing("nyc") is not None
    assert bench.missing("stress") is None
    assert bench.real.workload == "auction"
    with pytest.raises(SourceError, match="nyc cannot be had"):
        bench.place("nyc")


def test_events_come_in_order_and_a_short_stream_goes_on_from_its_beginning(
    bench: Bench,
) -> None:
    stress = SUBJECTS["stress"]
    whole = bench.events(stress)
    assert whole.column_names == stress.columns
    assert whole.num_rows == stress.quick_rows
    longer = bench.events(stress, whole.num_rows + 100)
    assert longer.num_rows == whole.num_rows + 100
    again = longer.slice(whole.num_rows)
    for name in ("region", "latency"):
        assert again[name].to_pylist() == whole[name].slice(0, 100).to_pylist()
    gaps = pc.pairwise_diff(longer["event_time"].combine_chunks().cast(pa.int64()))
    assert pc.min(gaps).as_py() >= 0
    assert bench.events(stress, 10).equals(whole.slice(0, 10))


def test_other_trips_or_another_zone_table_lie_in_another_place(tmp_path: Path) -> None:
    files = []
    for number in range(13):
        files.append(tmp_path / f"{number:02}.parquet")
        files[-1].write_text(str(number))
    *months, zones, other = files
    kept = {
        Bench(FULL, tmp_path, trips).place("nyc")
        for trips in [(*months, zones), (*months[:-1], zones), (*months, other)]
    }
    assert len(kept) == 3
