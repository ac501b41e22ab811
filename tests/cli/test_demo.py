from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import ids.engine
from ids.cli import story
from ids.cli.app import invoke
from tests.cli import recount


def requests(rows: int) -> dict[str, object]:
    rng = np.random.default_rng(7)
    return {
        "event_time": np.arange(rows).astype("M8[ms]"),
        "region": rng.choice(np.array(["EU-West", "US-East", "AP-South"], object), rows),
        "tier": rng.choice(np.array(["premium", "basic"], object), rows),
        "endpoint": rng.choice(np.array(["/feed", "/checkout"], object), rows),
        "latency": rng.lognormal(3.7, 0.5, rows),
    }


@pytest.mark.parametrize("script", [story.listing(), story.compositions(), story.ranking()])
def test_the_engine_answers_the_story_as_a_recount_does(script: str) -> None:
    tables = {"server_events": requests(13_000)}
    (answer,) = ids.engine.run_script(script, tables)
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
        assert invoke(["demo", "--rows", "60000", "--out", str(tmp_path / "demo")]) == 0
        captured = capsys.readouterr()
        text = " ".join(captured.out.split())
        assert "region_eu AND tier_premium accounts for it" in text
        assert re.search(r"AVG\(latency\) went from 4\d\.\d to \d\d\.\d ms", text)
        assert "60,000 rows" in captured.err and "0 late" in captured.err
    assert sorted(path.name for path in (tmp_path / "demo").glob("*")) == [
        "attributions",
        "candidates.parquet",
        "checkpoint",
        "compositions.parquet",
        "events",
        "workload",
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
