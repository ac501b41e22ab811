from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from evaluation.workloads import Recipe, generated, manifest
from evaluation.workloads.generated import MU, SIGMA
from evaluation.workloads.manifest import EVENTS, Manifest, differences, prepare, standing
from ids.demo import events
from ids.errors import SinkError

ROWS = 100_000
NAMES = ("synthetic", "stress", "auction")
Columns = dict[str, npt.NDArray[Any]]


@pytest.fixture(scope="module")
def prepared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The two that only the evaluation has, in several files each."""
    root = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest, "_BLOCK", 30_000)
        for name in ("stress", "auction"):
            assert len(prepare(spark, Recipe(name, 5, ROWS), root / name).files) == 4
    return {name: root / name for name in ("stress", "auction")}


@pytest.fixture(scope="module")
def bids(prepared: dict[str, Path]) -> Columns:
    table = pq.read_table(prepared["auction"] / EVENTS)
    return {name: table.column(name).to_numpy() for name in table.column_names}


def near(share: float, expected: float, rows: int) -> bool:
    """Within four standard deviations of a share counted among that many rows."""
    return abs(share - expected) <= 4 * math.sqrt(expected * (1 - expected) / rows)


# ── the same events ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
def test_the_events_are_the_same_at_any_parallelism(
    spark: SparkSession, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "_BLOCK", 1000)
    made = []
    for partitions in ("1", "7"):
        # what spark.range asks for the number of its partitions
        monkeypatch.setattr(SparkContext, "defaultParallelism", int(partitions))
        monkeypatch.setitem(events._SETTINGS, "spark.sql.shuffle.partitions", partitions)
        compiled = "false" if partitions == "7" else "true"
        monkeypatch.setitem(events._SETTINGS, "spark.sql.codegen.wholeStage", compiled)
        made.append(prepare(spark, Recipe(name, 1, 4500), tmp_path / partitions))
    assert made[0].sha256 == made[1].sha256
    assert list(made[0].files) == [f"events/part-{i:05}.parquet" for i in range(5)]


@pytest.mark.slow
def test_the_command_makes_the_same_events_on_one_core(tmp_path: Path, spark: SparkSession) -> None:
    here = prepare(spark, Recipe("synthetic", 5, 20_000), tmp_path / "here")
    arguments = [
        "workload",
        "prepare",
        "synthetic",
        "--out",
        str(tmp_path / "there"),
        "--seed",
        "5",
    ]
    arguments += ["--rows", "20000", "--master", "local[1]"]
    command = [sys.executable, "-m", "evaluation", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("synthetic: 20,000 rows in 1 file, every hash as in ")
    assert Manifest.read(tmp_path / "there").sha256 == here.sha256


# ── written once ─────────────────────────────────────────────────────────────────────────────────


def test_what_is_prepared_passes_its_own_check_and_is_left_alone(
    spark: SparkSession, prepared: dict[str, Path]
) -> None:
    directory = prepared["auction"]
    assert differences(directory) == []
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    found = standing(Recipe("auction", 5, ROWS), directory)
    assert found is not None and found.rows == ROWS
    with pytest.raises(SinkError, match="cannot write"):
        prepare(spark, Recipe("auction", 5, 100), directory)
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before


def test_a_preparation_that_fails_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(manifest, "take_stock", fail)  # after the events are written
    with pytest.raises(SinkError, match="No space left on device"):
        prepare(spark, Recipe("stress", 5, 100), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# ── what the streams are like ────────────────────────────────────────────────────────────────────


def test_stress_is_a_tiny_deviation_on_a_huge_mean(prepared: dict[str, Path]) -> None:
    table = pq.read_table(prepared["stress"] / EVENTS)
    assert table.column_names == ["event_time", "region", "tier", "endpoint", "latency"]
    deviation = table.column("latency").to_numpy() - MU  # exact
    assert abs(deviation.mean()) < 4 * SIGMA / np.sqrt(ROWS)
    assert deviation.std() == pytest.approx(SIGMA, rel=0.01)
    assert near(float((np.abs(deviation) < SIGMA).mean()), 0.6827, ROWS)


def test_half_of_the_bids_go_to_the_hot_auction_which_moves(
    bids: Columns,
) -> None:
    auctions = bids["auction"] - generated.FIRST_AUCTION
    opened = np.arange(ROWS) // 46 * 3 + 2
    hundred = opened // 100 * 100
    assert near(float((auctions == hundred).mean()), 0.5, ROWS)
    assert ((auctions >= hundred) & (auctions < hundred + 100)).all()
    assert len(np.unique(hundred)) == ROWS // 46 * 3 // 100 + 1


def test_the_other_auctions_are_popular_by_zipfs_law(bids: Columns) -> None:
    auctions = bids["auction"] - generated.FIRST_AUCTION
    others = auctions[auctions % 100 != 0]
    whole = others[others < others.max() // 100 * 100]  # the last hundred is not over
    counts = np.bincount(whole, minlength=whole.max() // 100 * 100 + 100).reshape(-1, 100)[:, 1:]
    # rank → auction is one to one in each hundred, turned by a number of the hundred's own
    profile = np.sort(counts, axis=1)[:, ::-1].sum(axis=0) / len(whole)
    ranks = np.arange(1, 31)
    slope = np.polyfit(np.log(ranks), np.log(profile[:30]), 1)[0]
    assert slope == pytest.approx(-1, abs=0.08)
    assert profile[0] == pytest.approx(1 / (1 / np.arange(1, 100)).sum(), rel=0.05)
    assert len(np.unique(counts.argmax(axis=1))) > 20


def test_channels_categories_and_prices_are_nexmarks(bids: Columns) -> None:
    hot = np.isin(bids["channel"], generated.HOT_CHANNELS)
    assert near(float(hot.mean()), 0.5, ROWS)
    for channel in generated.HOT_CHANNELS:
        assert near(float((bids["channel"] == channel).mean()), 0.125, ROWS)
    assert len(np.unique(bids["channel"][~hot])) > 0.98 * generated.CHANNELS
    categories = set(zip(bids["auction"].tolist(), bids["category"].tolist(), strict=True))
    assert len(categories) == len(np.unique(bids["auction"]))  # an auction's own
    shares = np.bincount([category - 10 for _, category in categories]) / len(categories)
    assert len(shares) == 5
    assert all(near(share, 0.2, len(categories)) for share in shares)
    places = np.log10(bids["price"] / 100) / 6
    assert bids["price"].min() >= 100 and bids["price"].max() <= 10**8
    assert places.mean() == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / ROWS))
    assert places.std() == pytest.approx(np.sqrt(1 / 12), rel=0.01)
