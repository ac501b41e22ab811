from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import ids.engine
from ids.cli.app import invoke
from ids.demo import FEWEST, MOST, SEED, Story, story
from ids.demo.events import ENDPOINTS, REGIONS, TIERS, events, incident_rows
from tests.cli import recount

PLANTED = "region_eu AND tier_premium"


def requests(rows: int) -> dict[str, object]:
    rng = np.random.default_rng(7)
    return {
        "event_time": np.arange(rows).astype("M8[ms]"),
        "region": rng.choice(np.array(["EU-West", "US-East", "AP-South"], object), rows),
        "tier": rng.choice(np.array(["premium", "basic"], object), rows),
        "endpoint": rng.choice(np.array(["/feed", "/checkout"], object), rows),
        "latency": rng.lognormal(3.7, 0.5, rows),
    }


def with_an_incident(rows: int, seed: int) -> dict[str, object]:
    """Requests as the demo has them, of other random numbers."""
    rng = np.random.default_rng(seed)
    drawn = {
        name: rng.choice(np.array([*shares], object), rows, p=[*shares.values()])
        for name, shares in (("region", REGIONS), ("tier", TIERS), ("endpoint", ENDPOINTS))
    }
    row = np.arange(rows)
    first, end = incident_rows(rows)
    slow = (first <= row) & (row < end)
    slow &= (drawn["region"] == "EU-West") & (drawn["tier"] == "premium")
    latency = 40 * np.exp(rng.normal(0, 0.5, rows)) * np.where(slow, 4, 1)
    return {"event_time": (row * 50).astype("M8[ms]"), "latency": latency, **drawn}


def blamed(rows: int, stream: object) -> list[str]:
    """The candidates by what they account for, as the demo ranks them."""
    (answer,) = ids.query.run_script(Story(rows).ranking(), {"server_events": stream})
    calm, worst = story.incident(answer.table)
    changes = story.ranked(answer.table, calm, worst)
    assert f"{changes[0].predicate} accounts for it" in story.verdict(
        answer.table, calm, worst, changes
    )
    return [change.predicate for change in changes]


@settings(max_examples=10)
@given(rows=st.integers(FEWEST, 60_000), seed=st.integers(0, 2**32))
@example(rows=FEWEST, seed=1)
@example(rows=1_000_000, seed=1)
def test_the_story_blames_the_planted_predicate_however_many_rows(rows: int, seed: int) -> None:
    assert blamed(rows, with_an_incident(rows, seed))[0] == PLANTED


def test_the_demos_own_events_blame_the_planted_predicate_at_any_size(spark: SparkSession) -> None:
    for rows in (FEWEST, 33_333, 500_000):
        stream = events(spark, rows, SEED, rows).orderBy("event_time").toArrow()
        assert blamed(rows, stream)[0] == PLANTED, rows


@pytest.mark.parametrize("rows", [-1, 0, 1, FEWEST - 1, MOST + 1])
def test_a_size_without_a_story_is_refused_with_the_sizes_that_have_one(
    rows: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["demo", "--rows", str(rows), "--output", str(tmp_path / "demo")]) == 2
    told = capsys.readouterr().err
    remedy = f"use at least {FEWEST:,}" if rows < FEWEST else f"use at most {MOST:,}"
    assert told.startswith(f"error: --rows: {rows:,} requests are too ")
    assert remedy in told and told.count("\n") == 1
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("of", [Story.listing, Story.compositions, Story.ranking])
def test_the_engine_answers_the_story_as_a_recount_does(
    of: Callable[[Story], str],
) -> None:
    script = of(Story(200_000))
    tables = {"server_events": requests(13_000)}
    (answer,) = ids.query.run_script(script, tables)
    (expected,) = recount.run_script(script, tables)
    assert answer.table.column_names == expected.table.column_names
    for name in answer.table.column_names[1:]:
        ours, theirs = (t.column(name).to_numpy() for t in (answer.table, expected.table))
        assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-9), name


@pytest.mark.slow
def test_the_demo_finds_the_planted_predicate_and_can_be_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: object
) -> None:
    for _ in range(2):
        assert invoke(["demo", "--rows", str(FEWEST), "--output", str(tmp_path / "demo")]) == 0
        captured = capsys.readouterr()
        text = " ".join(captured.out.split())
        assert f"{PLANTED} accounts for it" in text
        assert re.search(r"AVG\(latency\) went from 4\d\.\d to \d\d\.\d ms", text)
        assert f"{FEWEST:,} rows" in captured.err and "0 late" in captured.err
    assert sorted(path.name for path in (tmp_path / "demo").glob("*")) == [
        "attributions",
        "candidates.parquet",
        "checkpoint",
        "compositions.parquet",
        "events",
    ]


def test_the_verdict_is_read_from_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(story, "_CANDIDATES", ("p", "q"))
    table = pa.table(
        {
            "emit_at": pa.array([0, 60_000_000], pa.timestamp("us", "UTC")),
            "n": [100, 100],
            "average": [1.0, 2.0],
            "variance": [3.0, 4.0],
            "average_0_lift": [0.0, 1.0],
            "variance_0": [9.0, 1.0],
            "rows_0": [1.0, 10.0],
            "average_1_lift": [-3.0, 2.0],
            "variance_1": [9.0, 7.0],
            "rows_1": [1.0, 25.0],
        }
    )
    changes = story.ranked(table, 0, 1)
    assert changes == [story.Change("q", 25, 5.0, 7.0), story.Change("p", 10, 1.0, 1.0)]
    text = story.verdict(table, 0, 1, changes)
    assert text.startswith("Between 00:00:00 and 00:01:00 AVG(latency) went from 1.0 to 2.0 ms")
    assert "q accounts for it: 25.0% of the rows, yet its lift moved by +5.0 ms" in text
