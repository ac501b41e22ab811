"""What an engine, an answer and a running stream print: one line for a person."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError

import ids
from ids.spark import Stream, StreamProgress
from ids.spark.stream_checkpoint import Totals

LONG = f"<ids.Engine Changelog(), value x, x * 2, 2 rows, predicates {', '.join('abcdefgh')}"


def test_an_engine_shows_its_window_values_rows_and_predicates(tmp_path: Path) -> None:
    engine = ids.Engine(ids.Changelog(), ["x", "x *\n  2"])
    for name in "abcdefghij":
        engine.register(name, f"x > {ord(name)}")
    engine.apply(inserts={"x": [1.0, 2.0]})
    assert repr(engine) == LONG + " and 2 more>"
    engine.checkpoint(tmp_path / "engine.ids")
    assert repr(ids.Engine.restore(tmp_path / "engine.ids")) == LONG + " and 2 more>"


@pytest.mark.parametrize(
    ("window", "shown"),
    [
        (ids.CountWindow(10_000), "CountWindow(10_000)"),
        (ids.CountWindow(10_000, 100), "CountWindow(10_000, slide=100)"),
        (ids.TimeWindow("90 minutes"), "TimeWindow('90 minutes')"),
        (ids.TimeWindow("1 hour", "5 minutes"), "TimeWindow('1 hour', slide='5 minutes')"),
        (ids.TimeWindow(1_234_567), "TimeWindow('1234567 microseconds')"),
        (ids.Changelog(), "Changelog()"),
    ],
)
def test_a_window_is_shown_as_it_may_be_typed(window: Any, shown: str) -> None:
    engine = ids.Engine(window, order_by="t")
    assert repr(engine) == f"<ids.Engine {shown}, value none, 0 rows, predicates none>"
    assert eval(shown, vars(ids)) == window


def test_an_answer_shows_its_figures_and_a_bound_only_where_there_is_one() -> None:
    engine = ids.Engine(ids.CountWindow(100), "x", sampling=ids.Sampling(8))
    engine.ingest({"x": list(range(100))})
    exact = engine.attribute("AVG", "x > 90")
    assert repr(exact) == (
        f"Attribution(value={exact.value}, share={exact.share}, lift={exact.lift}, "
        "mechanism='scan', n=100)"
    )
    rough = engine.attribute("AVG", "x > 90", sample=8, confidence=0.9)
    assert rough.error > 0
    assert f"mechanism='sample', error={rough.error}, confidence=0.9, n=100)" in repr(rough)
    assert "\n" not in repr(rough)


@pytest.mark.parametrize(
    ("query", "failure", "stopped", "phase"),
    [
        ({"isActive": True}, None, False, "running"),
        ({"isActive": False, "exception": lambda: None}, None, False, "ended"),
        ({"isActive": False, "exception": lambda: None}, None, True, "stopped"),
        ({"isActive": False, "exception": lambda: ValueError()}, None, False, "failed"),
        ({"isActive": False}, ValueError(), True, "failed"),
        ({}, None, False, "disconnected from Spark"),
    ],
)
def test_a_stream_shows_its_state_and_its_totals(
    query: dict[str, Any], failure: Exception | None, stopped: bool, phase: str
) -> None:
    class Query(SimpleNamespace):
        def __getattr__(self, name: str) -> Any:
            raise Py4JNetworkError("an error occurred while trying to connect to the Java server")

    progress = StreamProgress(totals=Totals(rows=1_234, late=2, ahead=1, bad=3, emits=40))
    batches: Any = SimpleNamespace(progress=progress, failure=failure, end=lambda: None)
    unused: Any = None
    running = Stream(Query(**query), batches, unused, unused, Path(), unused)  # type: ignore[arg-type]
    running._stopped = stopped
    counts = "1,234 rows, 2 late, 1 ahead, 3 bad, 40 emits"
    assert repr(running) == f"<ids.spark stream, {phase}: {counts}>"
