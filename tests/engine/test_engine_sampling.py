"""Estimates of a running engine: what they carry, and that they are what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ids
from ids.errors import ArgumentError, StateError
from tests.engine.test_adhoc import batch

ASKED = "k BETWEEN 2 AND 5 AND flag"


def engine_of(window: Any = None, **sampling: Any) -> ids.Engine:
    return ids.Engine(
        window or ids.CountWindow(2_000), "ms", sampling=ids.Sampling(64, **sampling), retain=False
    )


def fed(engine: ids.Engine, seed: int = 0, batches: int = 8) -> ids.Engine:
    rng = np.random.default_rng(seed)
    for _ in range(batches):
        engine.ingest(batch(rng, 500))
    return engine


def test_an_estimate_carries_all_that_it_should() -> None:
    engine = fed(engine_of(seed=3))
    found = engine.attribute("AVG", ASKED)
    assert found.mechanism == "sample"
    assert (found.sample_size, found.seed, found.confidence) == (64, 3, 0.95)
    assert 0 < found.standard_error < found.error
    assert found.share + found.lift == pytest.approx(found.value)
    assert found.n == 2_000
    again = fed(engine_of(seed=3)).attribute("AVG", ASKED)
    assert again == found
    assert fed(engine_of(seed=4)).attribute("AVG", ASKED).value != found.value
    surer = engine.attribute("AVG", ASKED, sample=64, confidence=0.999)
    assert surer.value == found.value
    assert surer.error > found.error


@pytest.mark.parametrize("game", ["SUM", "COUNT(*)", "AVG", "VAR_POP", "VAR_SAMP"])
@pytest.mark.parametrize(
    "sampling",
    [{}, {"strata": ("region",)}, {"replacement": True}, {"bound": "hoeffding"},
     {"control_variate": True}, {"extremes": 0}],
    ids=["uniform", "stratified", "replacement", "hoeffding", "control", "no extremes"],
)  # fmt: skip
def test_estimates_are_near_the_truth_and_within_their_bound(
    game: str, sampling: dict[str, Any]
) -> None:
    """Thirty seeds: the mean is the truth up to its own error, and every bound holds."""
    exact = ids.Engine(ids.CountWindow(2_000), "ms")
    truth = fed(exact).attribute(game, ASKED).value
    found = [fed(engine_of(seed=seed, **sampling)).attribute(game, ASKED) for seed in range(30)]
    values = np.array([one.value for one in found])
    assert all(abs(one.value - truth) <= one.error for one in found)
    spread = np.sqrt(np.mean([one.standard_error**2 for one in found]))
    assert abs(values.mean() - truth) < 6 * spread / np.sqrt(len(found))
    assert 0.5 * spread < values.std() < 2 * spread


def test_a_time_window_samples_what_is_inside_alone() -> None:
    """Rows with a tag of their own minute: none of an expired one is ever drawn."""
    for replacement in (False, True):
        engine = ids.Engine(
            ids.TimeWindow(1_000), "ms", order_by="t", retain=False,
            sampling=ids.Sampling(16, replacement=replacement),
        )  # fmt: skip
        rng = np.random.default_rng(9)
        for start in range(0, 10_000, 500):
            rows = batch(rng, 200) | {"t": np.sort(start + rng.integers(0, 500, 200))}
            engine.ingest(rows | {"minute": np.full(200, start)})
            old = engine.attribute("COUNT(*)", f"minute < {start - 1_000}")
            assert old.value == 0
            assert old.standard_error == 0
        engine.advance(to=10**6)
        assert engine.attribute("AVG", "minute > 0").value == 0


def test_a_sample_larger_than_the_window_is_the_window() -> None:
    engine = fed(engine_of(ids.CountWindow(60)))
    exact = fed(ids.Engine(ids.CountWindow(60), "ms"))
    for game in ("SUM", "AVG", "VAR_POP"):
        found, right = engine.attribute(game, ASKED), exact.attribute(game, ASKED)
        assert found[:3] == right[:3]
        assert (found.error, found.standard_error) == (0.0, 0.0)
        assert found.rows_expected == found.rows_read == 60
        on_the_spot = exact.attribute(game, ASKED, sample=1_000)
        assert on_the_spot[:3] == right[:3]
        assert (on_the_spot.error, on_the_spot.sample_size) == (0.0, 60)


def test_a_sample_can_be_drawn_from_the_rows_on_the_spot() -> None:
    engine = fed(ids.Engine(ids.CountWindow(2_000), "ms"))
    right = engine.attribute("AVG", ASKED)
    found = engine.attribute("AVG", ASKED, sample=200)
    assert found.mechanism == "sample"
    assert found.rows_read == 2_000
    assert 0 < abs(found.value - right.value) <= found.error
    assert engine.attribute("AVG", ASKED).mechanism == "scan"


def test_a_sample_drawn_on_the_spot_takes_as_many_extremes_as_were_declared() -> None:
    """With the extremes of its size, 95 of 100 rows and the rest would be the whole window."""
    for extremes, whole in ((0, False), (None, True)):
        sampling = ids.Sampling(10, extremes=extremes)
        engine = fed(ids.Engine(ids.CountWindow(100), "ms", sampling=sampling))
        assert (engine.attribute("SUM", ASKED, sample=95).error == 0.0) is whole


def test_an_empty_window_gives_the_trivial_answer() -> None:
    engine = engine_of()
    assert engine.attribute("AVG", "k = 1", sample=5)[:5] == (0.0, 0.0, 0.0, "sample", 0.0)
    timed = ids.Engine(
        ids.TimeWindow(10), "ms", order_by="t", sampling=ids.Sampling(8), retain=False
    )
    timed.ingest({"t": [1], "ms": [2.0], "k": [1]})
    timed.advance(to=100)
    assert timed.attribute("AVG", "k = 1")[:5] == (0.0, 0.0, 0.0, "sample", 0.0)


def test_sizes_and_confidences_that_make_no_sense_are_refused() -> None:
    engine = fed(engine_of(), batches=1)
    with pytest.raises(ArgumentError, match="a sample of 0 rows"):
        engine.attribute("AVG", ASKED, sample=0)
    for confidence in (0.0, 1.0, 1.5, float("nan")):
        with pytest.raises(ArgumentError, match="confidence"):
            engine.attribute("AVG", ASKED, sample=5, confidence=confidence)
    with pytest.raises(StateError, match="keeps a sample of 64"):
        engine.attribute("AVG", ASKED, sample=65)
    with pytest.raises(ArgumentError, match="a sample of 0 rows"):
        ids.Sampling(0)
    with pytest.raises(ArgumentError, match="unknown bound"):
        ids.Sampling(bound="guess")
    with pytest.raises(ArgumentError, match="without replacement"):
        ids.Sampling(strata="k", replacement=True)


@pytest.mark.parametrize(
    "wrong",
    [{"size": 1.5}, {"size": "a"}, {"size": True}, {"seed": 2**70}, {"seed": "a"}, {"strata": 5},
     {"strata": (5,)}],
    ids=str,
)  # fmt: skip
def test_settings_of_the_wrong_kind_are_one_line(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        ids.Sampling(**wrong)


def test_questions_of_the_wrong_kind_are_one_line() -> None:
    engine = fed(engine_of(), batches=1)
    for asked in ({"sample": 1.5}, {"sample": "a"}, {"sample": 5, "confidence": "x"}):
        with pytest.raises(ArgumentError):
            engine.attribute("AVG", ASKED, **asked)
    with pytest.raises(ArgumentError, match="is not text"):
        ids.Engine(ids.CountWindow(5), "ms", index=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("sampling", [{}, {"strata": ("region",)}, {"replacement": True}])
def test_a_restored_engine_draws_on_as_if_it_had_never_stopped(
    sampling: dict[str, Any], tmp_path: Path
) -> None:
    engine = fed(engine_of(seed=5, **sampling))
    engine.checkpoint(tmp_path / "engine")
    restored = ids.Engine.restore(tmp_path / "engine")
    for seed in range(3):
        assert restored.attribute("VAR_POP", ASKED) == engine.attribute("VAR_POP", ASKED)
        fed(engine, seed, 2)
        fed(restored, seed, 2)
    assert restored.memory().sampler == engine.memory().sampler


def test_deletes_from_the_middle_leave_a_sample_of_the_rest() -> None:
    engine = ids.Engine(ids.CountWindow(400), "ms", sampling=ids.Sampling(50))
    rng = np.random.default_rng(6)
    rows = batch(rng, 400) | {"number": np.arange(400)}
    engine.ingest(rows)
    gone = {name: list(column)[100:300] for name, column in rows.items()}
    engine.apply(deletes=gone)
    found = engine.attribute("COUNT(*)", "number >= 100 AND number < 300", sample=50)
    assert (found.value, found.n) == (0.0, 200)
    assert engine.attribute("COUNT(*)", "number < 100", sample=50).value == pytest.approx(
        100, abs=60
    )
