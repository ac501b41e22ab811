"""Samples of values far from 0: an estimate knows the spread, wherever the values lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ids

GAMES = ["SUM", "COUNT(*)", "COUNT(x)", "AVG", "VAR_POP", "VAR_SAMP"]
ROWS = 1_003
WAYS: dict[str, dict[str, Any]] = {
    "uniform": {},
    "stratified": {"strata": ("s",)},
    "replacement": {"replacement": True},
    "control": {"control_variate": True},
    "control, replacement": {"control_variate": True, "replacement": True},
}


def rows_around(base: float) -> dict[str, Any]:
    """Values on a grid so coarse that adding the base rounds nothing."""
    rng = np.random.default_rng(3)
    return {
        "t": np.arange(ROWS).astype("M8[s]"),
        "x": rng.integers(-1_000, 1_000, ROWS) / 1_024 + base,
        "g": np.where(rng.integers(0, 2, ROWS) == 1, "a", "b"),
        "s": rng.integers(0, 3, ROWS),
    }


@st.composite
def batches(draw: st.DrawFn) -> dict[str, Any]:
    base = draw(st.sampled_from([0.0, 1e9, 1e12, -1e15]))
    spread = st.floats(-1e-3, 1e-3) | st.floats(-1e3, 1e3) | st.just(1e200)
    rows = draw(
        st.lists(
            st.tuples(st.none() | spread, st.sampled_from("ab"), st.integers(0, 2)),
            min_size=1, max_size=30,
        )
    )  # fmt: skip
    return {
        "x": [None if y is None else base + y for y, _, _ in rows],
        "g": [g for _, g, _ in rows],
        "s": [s for _, _, s in rows],
    }


@given(batch=batches(), kept=st.sampled_from([None, {}, {"strata": ("s",)}, {"strata": ("g",)}]))
@settings(max_examples=60)
def test_a_draw_of_every_row_has_the_bits_of_the_exact_answer(
    batch: dict[str, Any], kept: dict[str, Any] | None
) -> None:
    size = len(batch["x"])
    exact = ids.Engine(ids.CountWindow(100), "x")
    exact.ingest({"x": [0.5], "g": ["a"], "s": [0]})
    exact.ingest(batch)
    sampling = None if kept is None else ids.Sampling(size + 1, **kept)
    engine = ids.Engine(ids.CountWindow(100), "x", sampling=sampling)
    engine.ingest({"x": [0.5], "g": ["a"], "s": [0]})
    engine.ingest(batch)
    for game in GAMES:
        found = engine.attribute(game, "g = 'a'", sample=size + 1)
        assert found[:3] == exact.attribute(game, "g = 'a'")[:3]
        assert (found.error, found.standard_error) == (0.0, 0.0)


def test_strata_that_were_drawn_whole_are_exact_to_the_bit() -> None:
    """The condition rules out the large strata, of which only some rows were drawn."""
    rows = rows_around(1e12)
    rows["s"] = np.where(np.arange(ROWS) % 20 == 0, 7, rows["s"])
    sampling = ids.Sampling(64, strata=("s",), extremes=0)
    engine = ids.Engine(ids.CountWindow(ROWS), "x", sampling=sampling)
    engine.ingest(rows)
    for game in GAMES:
        for condition in (
            "s = 7 AND g = 'a'",
            "NOT (s <> 7 OR g <> 'a')",
            "(s < 7 OR g > 'a') IS FALSE",
        ):
            found = engine.attribute(game, condition, sample=64)
            assert found.mechanism == "stratified"
            assert found.error == 0.0
            assert found[:3] == engine.attribute(game, condition)[:3]
        assert engine.attribute(game, "s = 1 AND g = 'a'", sample=64).error > 0


@pytest.mark.parametrize("base", [2.0**30, 2.0**40])
@pytest.mark.parametrize("way", WAYS)
def test_an_estimate_of_spread_does_not_depend_on_where_the_values_lie(
    way: str, base: float
) -> None:
    near, far = (
        ids.Engine(ids.CountWindow(ROWS), "x", sampling=ids.Sampling(100, **WAYS[way]))
        for _ in range(2)
    )
    near.ingest(rows_around(0.0))
    far.ingest(rows_around(base))
    for game in ("SUM", "AVG", "VAR_POP", "VAR_SAMP"):
        here, there = (e.attribute(game, "g = 'a'", sample=100) for e in (near, far))
        assert there.lift == pytest.approx(here.lift, rel=1e-12)
        if game.startswith("VAR"):
            assert there[:3] == pytest.approx(here[:3], rel=1e-12)
            assert there.error == pytest.approx(here.error, rel=1e-9)
            assert there.standard_error == pytest.approx(here.standard_error, rel=1e-9)


@pytest.mark.parametrize(
    "window",
    ["ROWS 500 PRECEDING", "RANGE INTERVAL '500' SECOND PRECEDING SLIDE INTERVAL '100' SECOND"],
)
def test_an_approximate_query_does_not_depend_on_where_the_values_lie(window: str) -> None:
    """The base is part of the measure, not of the rows: the same ones are drawn."""
    items = ", ".join(
        f"SHAPLEY_ATTRIBUTE({game}(x + %d), g = 'a' WITH (SHARE, LIFT) "
        f"APPROXIMATE USING RESERVOIR SAMPLE 100) AS {game}"
        for game in ("SUM", "AVG", "VAR_POP", "VAR_SAMP")
    )
    script = f"SELECT {items} FROM d WINDOW w AS (ORDER BY t {window}) EMIT CHANGES"
    near, far = (
        ids.sql(script.replace("%d", str(base)), d=rows_around(0.0)) for base in (0, 2**40)
    )
    for name in near.column_names:
        if ("VAR" in name and "mechanism" not in name) or name.endswith("_lift"):
            here, there = near[name].to_numpy(), far[name].to_numpy()
            assert np.abs(here - there).max() <= 1e-12 * np.abs(here).max()


@pytest.mark.parametrize("strata", [(), ("s",)])
@pytest.mark.parametrize("base", [0.0, 1e9, 1e12])
def test_a_provisional_answer_is_within_its_bound_wherever_the_values_lie(
    base: float, strata: tuple[str, ...]
) -> None:
    engine = ids.Engine(
        ids.CountWindow(ROWS), "x", degree=4, sampling=ids.Sampling(101, strata=strata),
        promotion=ids.Promotion(threshold=1, bootstrap="sample", rebuild_after=float("inf")),
    )  # fmt: skip
    exact = ids.Engine(ids.CountWindow(ROWS), "x", degree=4)
    for one in (engine, exact):
        one.ingest(rows_around(base))
    for slide in range(3):
        for game in [*GAMES, "M3", "M4"]:
            found, right = (one.attribute(game, "g = 'a'") for one in (engine, exact))
            assert found.mechanism == "provisional"
            assert abs(found.value - right.value) <= found.error
            if game.startswith("VAR"):
                assert found.error < 3.0  # of values between -1 and 1
        more = {name: column[: 100 + slide] for name, column in rows_around(base + slide).items()}
        for one in (engine, exact):
            one.ingest(more)


def test_a_provisional_answer_from_every_row_has_no_error() -> None:
    engine = ids.Engine(
        ids.CountWindow(ROWS), "x", sampling=ids.Sampling(ROWS),
        promotion=ids.Promotion(threshold=1, bootstrap="sample", rebuild_after=float("inf")),
    )  # fmt: skip
    exact = ids.Engine(ids.CountWindow(ROWS), "x")
    for one in (engine, exact):
        one.ingest(rows_around(1e12))
    for game in GAMES:
        found = engine.attribute(game, "g = 'a'")
        assert found.mechanism == "provisional"
        assert found[:3] == exact.attribute(game, "g = 'a'")[:3]
        assert found.error == 0.0
