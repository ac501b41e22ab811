"""Corners where what stands beside the summaries once gave way: each names what went wrong."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import ids
from ids.engine.core import Batch, Core, TaggedRows
from ids.errors import ScriptError, StateError
from tests.engine.test_adhoc import batch


def promoting(**promotion: Any) -> ids.Engine:
    """An engine whose first question about ``k = 3`` was promoted."""
    policy = ids.Promotion(threshold=1, **promotion)
    engine = ids.Engine(ids.CountWindow(300), "ms", promotion=policy, sampling=ids.Sampling(40))
    engine.ingest(batch(np.random.default_rng(1), 400))
    engine.attribute("AVG", "k = 3")
    assert engine.promoted == {"promoted_1": "k = 3"}
    return engine


def provisional(**promotion: Any) -> ids.Engine:
    return promoting(bootstrap="sample", rebuild_after=float("inf"), **promotion)


def test_a_provisional_name_is_taken_until_it_is_dropped() -> None:
    """Registered a second time it could never be rebuilt, and every later slide was refused."""
    engine = provisional()
    with pytest.raises(ScriptError, match="already registered"):
        engine.register("Promoted_1", "k = 4")
    engine.drop("PROMOTED_1")
    assert engine.promoted == {}
    engine.register("promoted_1", "k = 4")
    assert engine.rebuild() == []
    assert engine.attribute("AVG", "promoted_1")[:3] == engine.attribute("AVG", "k = 4")[:3]


def test_a_stale_provisional_predicate_leaves_no_plan_behind() -> None:
    """The plan of a question outlived the predicate that was to answer it."""
    engine = provisional(stale=2, most=1, replaces=False)
    assert engine.attribute("AVG", "k = 3").mechanism == "provisional"
    for k in range(4, 8):
        engine.attribute("AVG", f"k = {k}")
    assert "k = 3" not in engine.promoted.values()
    assert engine.attribute("AVG", "3 = k").n == 300
    assert engine.attribute("AVG", "k = 3").n == 300


def test_what_the_user_wrote_with_a_promoted_predicate_keeps_it() -> None:
    """Its demotion failed halfway, in the face of whoever asked the next question."""
    engine = promoting(stale=2)
    engine.register("mine", "promoted_1 AND flag")
    for k in range(4, 9):
        engine.attribute("AVG", f"k = {k}")
    assert "promoted_1" not in engine.promoted
    assert "promoted_1" in engine.predicates
    written_out = engine.attribute("AVG", "k = 3 AND flag")
    assert engine.attribute("AVG", "mine")[:3] == written_out[:3]


def test_exact_sums_are_preferred_to_provisional_ones() -> None:
    engine = provisional()
    engine.register("mine", "k = 3")
    assert engine.attribute("AVG", "k = 3").mechanism == "marginal"
    assert engine.attribute("AVG", "promoted_1").mechanism == "provisional"


def test_a_sample_is_put_a_provisional_predicate_to() -> None:
    """It was unknown there by its name."""
    engine = provisional()
    for named, meant in [("promoted_1", "k = 3"), ("promoted_1 AND flag", "k = 3 AND flag")]:
        found = engine.attribute("AVG", named, sample=20)
        assert found[:3] == engine.attribute("AVG", meant, sample=20)[:3]


def test_no_rebuild_comes_by_itself_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that was to wait for ever broke down instead."""
    broken: list[object] = []
    monkeypatch.setattr(threading, "excepthook", broken.append)
    before = threading.active_count()
    engine = provisional()
    assert threading.active_count() == before
    assert not broken
    assert engine.rebuild() == ["promoted_1"]


def test_a_finer_scale_settles_what_is_provisional() -> None:
    """Once the huge value left, provisional sums were read in units that were not theirs."""
    policy = ids.Promotion(threshold=1, bootstrap="sample", rebuild_after=float("inf"))
    engine = ids.Engine(
        ids.CountWindow(100), "ms", promotion=policy, sampling=ids.Sampling(10)
    )  # fmt: skip
    plain = ids.Engine(ids.CountWindow(100), "ms")
    rng = np.random.default_rng(0)
    for step, ms in enumerate([np.array([1e300]), rng.random(99) * 1e-5, rng.random(5) * 1e-5]):
        rows = {"k": rng.integers(0, 4, len(ms)), "ms": ms}
        engine.ingest(rows)
        plain.ingest(rows)
        if step == 1:
            assert engine.attribute("SUM", "k = 2").mechanism == "provisional"
    found = engine.attribute("SUM", "k = 2")
    assert found.mechanism == "marginal"
    assert found[:3] == plain.attribute("SUM", "k = 2")[:3]


def test_rows_a_sample_cannot_take_change_nothing() -> None:
    """They were refused after the window had taken them in."""
    sampling = ids.Sampling(4, replacement=True)
    engine = ids.Engine(ids.CountWindow(10), "ms", order_by="t", sampling=sampling)
    engine.ingest({"t": [0, 1, 2, 3], "ms": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(StateError, match="out of order"):
        engine.apply(
            deletes={"t": [0], "ms": [1.0]}, inserts={"t": [2], "ms": [9.0]}
        )  # fmt: skip
    assert engine.rows == engine.attribute("COUNT(*)", "t < 9").value == 4
    assert engine.attribute("SUM", "t < 2").value == 3.0

    engine = ids.Engine(ids.CountWindow(10), "ms", retain=False, sampling=ids.Sampling(4))
    engine.ingest({"k": [2**60 + 1] * 3, "ms": [1.0, 2.0, 3.0]})
    with pytest.raises(StateError, match="beyond 2"):
        engine.ingest({"k": [0.5] * 3, "ms": [1.0, 2.0, 3.0]})
    for _ in range(4):
        engine.ingest({"k": [5] * 3, "ms": [1.0, 2.0, 3.0]})
    assert (engine.rows, engine.aggregate("SUM")) == (10, 21.0)


@pytest.mark.parametrize("strata", [(), ("word",)])
def test_words_that_leave_take_none_with_them_that_come(strata: tuple[str, ...]) -> None:
    """Rows exchanged for others were kept under the codes of words, and strata, just forgotten."""
    words = [f"w{n}" for n in range(3000)]
    sampling = ids.Sampling(2, strata=strata)
    engine = ids.Engine(ids.CountWindow(3000), "ms", index="word", sampling=sampling)
    engine.ingest({"word": words, "ms": [1.0] * 3000})
    engine.apply(
        deletes={"word": words[:2990], "ms": [1.0] * 2990},
        inserts={"word": ["new", "w2999"], "ms": [7.0, 8.0]},
    )
    for word, value in [("new", 7.0), ("w2999", 9.0), ("w2990", 1.0), ("w0", 0.0)]:
        assert engine.attribute("SUM", f"word = '{word}'").value == value
    engine.ingest({"word": ["new"] * 2999, "ms": [2.0] * 2999})  # all but the last leave
    assert engine._core is not None
    assert engine._core.sample is not None
    assert engine._core.sample._strata.population.min() >= 0
    drawn = engine.attribute("COUNT(*)", "word = 'new'", sample=2)
    assert abs(drawn.value - 2999) <= drawn.error


def test_an_engine_without_predicates_has_no_atoms_to_give_up() -> None:
    engine = ids.Engine(ids.CountWindow(5), "ms", atom_limit=0)
    engine.ingest({"k": [1, 2], "ms": [1.0, 2.0]})
    assert engine.attribute("SUM", "k = 2").value == 2.0


def test_an_empty_window_is_divided_whatever_its_rows_were_tagged_with() -> None:
    """The tags of atoms given up outlived the last row, and the next predicate read them."""
    engine = ids.Engine(ids.TimeWindow(10), "ms", order_by="t", atom_limit=1)
    engine.register("odd", "k % 2 = 1")
    engine.ingest({"t": [1, 2], "k": [1, 2], "ms": [1.0, 2.0]})
    assert not engine.atoms
    engine.advance(100)
    engine.drop("odd")
    engine.register("two", "k = 2")
    engine.register("three", "k = 3")
    engine.ingest({"t": [101, 102], "k": [2, 2], "ms": [1.0, 2.0]})
    assert engine.attribute("SUM", "two AND NOT three").value == 3.0


@pytest.mark.filterwarnings("error")
def test_a_bound_that_no_double_holds_is_infinite() -> None:
    """It came with a warning."""
    policy = ids.Promotion(threshold=1, bootstrap="sample", rebuild_after=float("inf"))
    engine = ids.Engine(ids.CountWindow(50), "ms", promotion=policy, sampling=ids.Sampling(4))
    engine.ingest({"k": [1, 2] * 25, "ms": [1e200, -1e200, 3e200, 2e200, 1e199] * 10})
    found = engine.attribute("VAR_POP", "k = 2")
    assert (found.mechanism, found.error) == ("provisional", float("inf"))


@pytest.mark.filterwarnings("ignore:overflow")
def test_an_estimate_that_no_double_holds_claims_no_error_of_nothing() -> None:
    rows = {"at": np.arange(30).astype("datetime64[us]"), "y": np.linspace(1e200, 9e200, 30)}
    found = ids.sql(
        "SELECT SHAPLEY_ATTRIBUTE(VAR_POP(y), y > 2 APPROXIMATE USING RESERVOIR SAMPLE 3) AS x "
        "FROM t WINDOW w AS (ORDER BY at ROWS 29 PRECEDING) EMIT FINAL",
        t=rows,
    )
    assert found.column("x_error").to_pylist() == [float("inf")]


def test_a_question_between_the_first_scale_and_the_first_row_finds_no_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Readers may ask while the first batch is classified: its scale is there, its rows are not."""
    engine, answers = ids.Engine(window=ids.CountWindow(5), value="x"), []
    classify = Core.classify

    def asked_meanwhile(core: Core, batch: Batch) -> TaggedRows:
        answers.append(engine.attribute("SUM", "x > 1"))
        return classify(core, batch)

    monkeypatch.setattr(Core, "classify", asked_meanwhile)
    engine.ingest({"x": [1.0, 2.0]})
    assert [(one.value, one.n) for one in answers] == [(0.0, 0)]
    assert engine.attribute("SUM", "x > 1").value == 2.0
