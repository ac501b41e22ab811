from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import ids.engine
from ids.cli import demo as verb
from ids.cli.server_events import server_events
from tests.cli import recount
from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]


@pytest.fixture
def recounting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids.engine, "run_script", recount.run_script, raising=False)


def test_the_stream_is_the_same_every_time_and_in_order() -> None:
    one, two = (server_events(np.random.default_rng(7), 1000) for _ in range(2))
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert (np.diff(one["event_time"]) >= np.timedelta64(0)).all()


def test_the_incident_is_where_it_was_planted_and_nowhere_else() -> None:
    shifted, calm = (server_events(np.random.default_rng(7), 10_000, s) for s in (4.0, 1.0))
    changed = np.flatnonzero(shifted["latency"] != calm["latency"])
    assert len(changed) > 20
    assert changed.min() >= 4800 and changed.max() < 5200
    assert set(shifted["region"][changed]) == {"EU-West"}
    assert set(shifted["tier"][changed]) == {"premium"}
    ratio = shifted["latency"][changed] / calm["latency"][changed]  # type: ignore[operator]
    assert np.allclose(ratio, 4.0)


def test_the_demo_finds_the_planted_predicate(recounting: None, call: Call) -> None:
    code, out, err = call("demo")
    assert (code, err) == (0, "")
    assert "\x1b" not in out
    text = " ".join(out.split())
    assert "region_eu AND tier_premium accounts for it: 10.5% of the rows" in text
    assert re.search(r"AVG\(latency\) went from 45\.\d to 56\.\d ms", text)


def test_the_engine_answers_the_demo_as_a_recount_does() -> None:
    tables = {"server_events": server_events(np.random.default_rng(7), 15_000)}
    script = verb._LISTINGS + verb._ranking()
    answers = ids.engine.run_script(script, tables)
    for answer, expected in zip(answers, recount.run_script(script, tables), strict=True):
        assert answer.table.column_names == expected.table.column_names
        for name in answer.table.column_names[1:]:
            ours, theirs = (t.column(name).to_numpy() for t in (answer.table, expected.table))
            assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-9), name


def test_the_demo_plays_on_a_terminal(
    recounting: None, call: Call, terminal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ids.cli.demo.time.sleep", lambda _: None)
    code, out, _ = call("demo")
    assert code == 0
    assert "accounts for it" in " ".join(out.split())


def test_the_verdict_is_read_from_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "_CANDIDATES", ("p", "q"))
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
    changes = verb.ranked(table, 0, 1)
    assert changes == [verb.Change("q", 25, 5.0, 7.0), verb.Change("p", 10, 1.0, 1.0)]
    text = verb.verdict(table, 0, 1, changes)
    assert text.startswith("Between 00:00:00 and 00:01:00 AVG(latency) went from 1.0 to 2.0 ms")
    assert "q accounts for it: 25.0% of the rows, yet its lift moved by +5.0 ms" in text
