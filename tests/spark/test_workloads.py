from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import ids
from ids.errors import SourceError
from ids.workloads import arrivals, auction, preparing, requests, stress, synthetic, writing
from ids.workloads.catalogue import Recipe
from ids.workloads.manifest import EVENTS, TRUTH, differences
from ids.workloads.preparing import prepare
from ids.workloads.replay import Replay

ROWS = 100_000
NAMES = ("synthetic", "stress", "auction")


@dataclass(frozen=True)
class Prepared:
    directory: Path
    table: pa.Table

    def __getitem__(self, name: str) -> npt.NDArray:
        column: npt.NDArray = self.table.column(name).to_numpy()
        return column

    def gaps(self) -> npt.NDArray[np.int64]:
        """µs between arrivals."""
        times = self.table.column("event_time").cast(pa.int64()).to_numpy()
        gaps: npt.NDArray[np.int64] = np.diff(times)
        return gaps


@pytest.fixture(scope="module")
def prepared(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Prepared]:
    """The three generated ones, in several files each."""
    root = tmp_path_factory.mktemp("prepared")
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrivals, "BLOCK", 30_000)
        for name in NAMES:
            prepare(spark, Recipe(name, 5, ROWS), root / name)
            made[name] = Prepared(root / name, pq.read_table(root / name / EVENTS))
    return made


def near(share: float, expected: float, rows: int) -> bool:
    """Within four standard deviations of a share counted among that many rows."""
    return abs(share - expected) <= 4 * math.sqrt(expected * (1 - expected) / rows)


def contents(directory: Path) -> dict[str, bytes]:
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


# ── the same bytes ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
def test_the_bytes_are_the_same_at_any_parallelism(
    spark: SparkSession, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "BLOCK", 1000)
    made = []
    for partitions in ("1", "2", "7"):
        # what spark.range asks for the number of its partitions
        monkeypatch.setattr(SparkContext, "defaultParallelism", int(partitions))
        monkeypatch.setitem(writing._SETTINGS, "spark.sql.shuffle.partitions", partitions)
        compiled = "false" if partitions == "7" else "true"
        monkeypatch.setitem(writing._SETTINGS, "spark.sql.codegen.wholeStage", compiled)
        prepare(spark, Recipe(name, 1, 4500), tmp_path / partitions)
        made.append(contents(tmp_path / partitions))
    assert made[0] == made[1] == made[2]
    assert sum(path.startswith("events/") for path in made[0]) == 5


def test_another_seed_gives_other_events(
    spark: SparkSession, prepared: dict[str, Prepared], tmp_path: Path
) -> None:
    manifest = prepare(spark, Recipe("stress", 6, 1000), tmp_path / "other")
    other = pq.read_table(tmp_path / "other" / EVENTS).column("latency").to_numpy()
    assert manifest.rows == 1000
    assert (other != prepared["stress"]["latency"][:1000]).mean() > 0.99


def test_the_first_rows_of_more_rows_are_the_same_rows(
    spark: SparkSession, prepared: dict[str, Prepared], tmp_path: Path
) -> None:
    prepare(spark, Recipe("stress", 5, 1000), tmp_path / "fewer")
    fewer = pq.read_table(tmp_path / "fewer" / EVENTS)
    assert fewer.equals(prepared["stress"].table.slice(0, 1000))


@pytest.mark.slow
def test_the_command_makes_the_same_bytes_on_one_core(tmp_path: Path, spark: SparkSession) -> None:
    prepare(spark, Recipe("synthetic", 5, 20_000), tmp_path / "here")
    arguments = ["prepare", "synthetic", "--out", str(tmp_path / "there"), "--seed", "5"]
    arguments += ["--rows", "20000", "--master", "local[1]"]
    code = "from ids.cli.workload import workload; workload()"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("synthetic: 20,000 rows in 1 file, every hash as in ")
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@pytest.mark.parametrize("name", NAMES)
def test_encodings_are_listed_in_an_order_that_every_jvm_shares(
    prepared: dict[str, Prepared], name: str
) -> None:
    codes = {"PLAIN": 0, "PLAIN_DICTIONARY": 2, "RLE": 3, "BIT_PACKED": 4}
    for part in (prepared[name].directory / EVENTS).iterdir():
        group = pq.ParquetFile(part).metadata.row_group(0)
        for column in map(group.column, range(group.num_columns)):
            listed = [codes[encoding] for encoding in column.encodings]
            assert len(listed) > 1 and listed == sorted(listed)


# ── written once ─────────────────────────────────────────────────────────────────────────────────


def test_what_is_prepared_passes_its_own_check_and_is_left_alone(
    spark: SparkSession, prepared: dict[str, Prepared], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = prepared["auction"].directory
    assert differences(directory) == []
    before = {path: path.stat().st_mtime_ns for path in directory.rglob("*")}
    monkeypatch.setattr(preparing, "write_events", None)  # would be called, and fail
    assert prepare(spark, Recipe("auction", 5, ROWS), directory).rows == ROWS
    assert {path: path.stat().st_mtime_ns for path in directory.rglob("*")} == before


def test_a_preparation_that_fails_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(preparing, "take_stock", fail)  # after the events are written
    with pytest.raises(SourceError, match="No space left on device"):
        prepare(spark, Recipe("stress", 5, 100), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_the_users_session_keeps_its_settings(spark: SparkSession, tmp_path: Path) -> None:
    before = {name: spark.conf.get(name) for name in writing._SETTINGS}
    prepare(spark, Recipe("stress", 5, 100), tmp_path / "out {1}* [2]")
    assert {name: spark.conf.get(name) for name in writing._SETTINGS} == before
    assert differences(tmp_path / "out {1}* [2]") == []


# ── what the streams are like ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("name", "mean"), [("synthetic", 50_000), ("auction", 1_000)])
def test_arrivals_are_poisson(prepared: dict[str, Prepared], name: str, mean: float) -> None:
    gaps = prepared[name].gaps()
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(mean, rel=4 / np.sqrt(ROWS))
    assert gaps.std() == pytest.approx(mean, rel=0.03)
    for times in (0.1, 1.0, 3.0):
        assert near(float((gaps > times * mean).mean()), np.exp(-times), ROWS)
    # where one block ends and the next begins is an arrival like any other
    edges = gaps[[29_999, 59_999, 89_999]]
    assert (edges < 20 * mean).all()


@pytest.mark.parametrize("name", ["synthetic", "stress"])
def test_requests_have_their_shares(prepared: dict[str, Prepared], name: str) -> None:
    for column in ("region", "tier", "endpoint"):
        expected = getattr(requests, f"{column.upper()}S")
        values = prepared[name][column]
        assert set(values) == set(expected)
        assert all(near((values == v).mean(), share, ROWS) for v, share in expected.items())
    eu = prepared[name]["region"] == "EU-West"
    premium = prepared[name]["tier"] == "premium"
    assert near((eu & premium).mean(), 0.35 * 0.30, ROWS)


def test_latencies_are_lognormal_around_forty_milliseconds(prepared: dict[str, Prepared]) -> None:
    first, _ = synthetic.incident_rows(ROWS)
    calm = np.log(prepared["synthetic"]["latency"][:first])
    assert np.exp(np.median(calm)) == pytest.approx(40.0, rel=0.012)
    assert calm.std() == pytest.approx(0.5, rel=0.02)
    centred = (calm - calm.mean()) / calm.std()
    assert abs((centred**3).mean()) < 0.05
    assert (centred**4).mean() == pytest.approx(3, abs=0.1)


def test_the_incident_is_where_the_truth_says_and_nowhere_else(
    spark: SparkSession, prepared: dict[str, Prepared]
) -> None:
    shifted = prepared["synthetic"]
    calm = synthetic.events(spark, ROWS, 5, shift=1.0).orderBy("event_time").toArrow()
    ratio = shifted["latency"] / calm.column("latency").to_numpy()
    truth = json.loads((shifted.directory / TRUTH).read_text())
    row = np.arange(ROWS)
    inside = (row >= truth["from_row"]) & (row < truth["before_row"])
    affected = inside & (shifted["region"] == "EU-West") & (shifted["tier"] == "premium")
    assert truth["predicate"] == "region = 'EU-West' AND tier = 'premium'"
    assert inside.mean() == 0.04 and inside[ROWS // 2]
    assert (ratio[affected] == 4.0).all() and (ratio[~affected] == 1.0).all()
    assert affected.sum() == truth["rows"]
    times = shifted.table.column("event_time").filter(pa.array(affected))
    assert str(times[0].as_py().isoformat()).startswith(truth["first_event_time"][:26])
    assert str(times[-1].as_py().isoformat()).startswith(truth["last_event_time"][:26])


@pytest.mark.parametrize("beyond", [True, False])
def test_the_incident_ends_at_its_edges(
    spark: SparkSession, prepared: dict[str, Prepared], beyond: bool
) -> None:
    stream = prepared["synthetic"]
    eu_premium = (stream["region"] == "EU-West") & (stream["tier"] == "premium")
    # a row is of the same region and tier in a stream of any length: take a length with two such
    # rows just outside of the incident, or just inside
    for rows in range(100, 20_000):
        first, end = synthetic.incident_rows(rows)
        if eu_premium[[first - beyond, end - 1 + beyond]].all():
            break
    frame = synthetic.events(spark, rows, 5).orderBy("event_time").toArrow()
    calm = synthetic.events(spark, rows, 5, shift=1.0).orderBy("event_time").toArrow()
    ratio = frame.column("latency").to_numpy() / calm.column("latency").to_numpy()
    expected = np.flatnonzero(eu_premium[first:end]) + first
    assert np.flatnonzero(ratio != 1.0).tolist() == expected.tolist()


def test_the_truth_is_kept_apart_from_the_events(prepared: dict[str, Prepared]) -> None:
    names = ["event_time", "region", "tier", "endpoint", "latency"]
    assert prepared["synthetic"].table.column_names == names
    files = sorted(path.name for path in (prepared["synthetic"].directory / EVENTS).iterdir())
    assert files == [f"part-{i:05}.parquet" for i in range(4)]


def test_stress_is_a_tiny_deviation_on_a_huge_mean(prepared: dict[str, Prepared]) -> None:
    deviation = prepared["stress"]["latency"] - stress.MU  # exact
    assert abs(deviation.mean()) < 4 * stress.SIGMA / np.sqrt(ROWS)
    assert deviation.std() == pytest.approx(stress.SIGMA, rel=0.01)
    assert near(float((np.abs(deviation) < stress.SIGMA).mean()), 0.6827, ROWS)


def test_half_of_the_bids_go_to_the_hot_auction_which_moves(
    prepared: dict[str, Prepared],
) -> None:
    auctions = prepared["auction"]["auction"] - auction.FIRST_AUCTION
    opened = np.arange(ROWS) // 46 * 3 + 2
    hundred = opened // 100 * 100
    assert near(float((auctions == hundred).mean()), 0.5, ROWS)
    assert ((auctions >= hundred) & (auctions < hundred + 100)).all()
    assert len(np.unique(hundred)) == ROWS // 46 * 3 // 100 + 1


def test_the_other_auctions_are_popular_by_zipfs_law(prepared: dict[str, Prepared]) -> None:
    auctions = prepared["auction"]["auction"] - auction.FIRST_AUCTION
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


def test_channels_categories_and_prices_are_nexmarks(prepared: dict[str, Prepared]) -> None:
    bids = prepared["auction"]
    hot = np.isin(bids["channel"], auction.HOT_CHANNELS)
    assert near(float(hot.mean()), 0.5, ROWS)
    for channel in auction.HOT_CHANNELS:
        assert near(float((bids["channel"] == channel).mean()), 0.125, ROWS)
    assert len(np.unique(bids["channel"][~hot])) > 0.98 * auction.CHANNELS
    categories = set(zip(bids["auction"].tolist(), bids["category"].tolist(), strict=True))
    assert len(categories) == len(np.unique(bids["auction"]))  # an auction's own
    shares = np.bincount([category - 10 for _, category in categories]) / len(categories)
    assert len(shares) == 5
    assert all(near(share, 0.2, len(categories)) for share in shares)
    places = np.log10(bids["price"] / 100) / 6
    assert bids["price"].min() >= 100 and bids["price"].max() <= 10**8
    assert places.mean() == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / ROWS))
    assert places.std() == pytest.approx(np.sqrt(1 / 12), rel=0.01)


def test_the_demos_stream_is_lazy_and_in_the_jvm(spark: SparkSession) -> None:
    frame = synthetic.events(spark, 5_000, 7)
    plan = frame._jdf.queryExecution().toString()
    assert "Python" not in plan and "InPandas" not in plan
    assert frame.where(F.col("latency") <= 0).count() == 0
    assert frame.count() == 5_000


# ── replay ───────────────────────────────────────────────────────────────────────────────────────


def test_a_replay_of_a_prepared_workload_answers_as_a_query_over_its_files(
    prepared: dict[str, Prepared],
) -> None:
    directory = prepared["stress"].directory
    replay = Replay(directory, 7_000)
    assert replay.digest() == Replay(directory, 7_000).digest()
    engine = ids.Engine(ids.CountWindow(10_000), "latency", order_by="event_time")
    engine.register("eu", "region = 'EU-West'")
    assert replay.feed(engine) == ROWS
    answer = ids.sql(
        "SELECT SHAPLEY_ATTRIBUTE(VAR_POP(latency), region = 'EU-West') AS eu FROM events WINDOW "
        "w AS (ORDER BY event_time ROWS 10000 PRECEDING SLIDE 1000 ROWS) EMIT FINAL",
        events=str(replay.events),
    )
    assert engine.attribute("VAR_POP", "eu").value == answer["eu"][0].as_py()
