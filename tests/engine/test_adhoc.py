"""Questions nobody registered: every exact mechanism gives the same bits, and says what it did."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ids
from ids.errors import ArgumentError, IdsError, StateError, UnknownNameError

REGIONS = ["EU", "US", "AP", None]
REGISTERED = {"eu": "region = 'EU'", "slow": "ms > 50", "odd": "k % 2 = 1"}

LEAVES = [
    "region = 'EU'", "region IN ('EU', 'US')", "region <> 'US'", "region LIKE '%U%'",
    "region IS NULL", "k = 3", "k BETWEEN 2 AND 7", "k IN (1, 4, 9)", "k % 2 = 1", "k > 5.5",
    "ms > 50", "50 < ms", "ms <= 20.25", "ms IS NULL", "flag", "NOT flag", "eu", "slow",
    "k > 4 AND flag", "UPPER(region) = 'AP'",
]  # fmt: skip


def conditions() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(LEAVES),
        lambda below: st.one_of(
            st.builds(lambda a, b: f"({a} AND {b})", below, below),
            st.builds(lambda a, b: f"({a} OR {b})", below, below),
            st.builds(lambda a: f"NOT ({a})", below),
        ),
        max_leaves=4,
    )


def batch(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    """Rows with NULLs in every column but the order."""
    ms = np.round(rng.gamma(2.0, 30.0, rows), 2)
    return {
        "region": [REGIONS[i] for i in rng.integers(0, len(REGIONS), rows)],
        "k": rng.integers(0, 10, rows),
        "flag": [None if x == 2 else bool(x) for x in rng.integers(0, 3, rows)],
        "ms": [None if x < 2 else float(x) for x in ms],
    }


def engine_of(*, registered: bool = False, **settings: Any) -> ids.Engine:
    engine = ids.Engine(ids.CountWindow(150), "ms", **settings)
    if registered:
        for name, condition in REGISTERED.items():
            engine.register(name, condition)
    return engine


def written_out(condition: str) -> str:
    """The condition without registered names."""
    for name, meaning in REGISTERED.items():
        condition = " ".join(
            f"({meaning})" if part == name else part
            for part in condition.replace("(", " ( ").replace(")", " ) ").split(" ")
        )
    return condition


@given(
    seed=st.integers(0, 2**32 - 1),
    asked=st.lists(conditions(), min_size=1, max_size=4),
    game=st.sampled_from(["SUM", "COUNT(*)", "AVG", "VAR_POP", "VAR_SAMP"]),
)
@settings(max_examples=60, deadline=None)
def test_every_exact_way_gives_the_bits_of_a_registered_predicate(
    seed: int, asked: list[str], game: str
) -> None:
    engines = [
        engine_of(registered=True),
        engine_of(registered=True, index=("region", "k", "ms", "flag")),
        engine_of(registered=True, index="k", promotion=ids.Promotion(threshold=1)),
    ]
    truth = engine_of(registered=True)
    for number, condition in enumerate(asked):
        truth.register(f"asked_{number}", written_out(condition))
    rng = np.random.default_rng(seed)
    for _ in range(3):
        rows = batch(rng, int(rng.integers(1, 120)))
        for engine in [*engines, truth]:
            engine.ingest(rows)
        for number, condition in enumerate(asked):
            right = truth.attribute(game, f"asked_{number}")
            for engine in engines:
                found = engine.attribute(game, condition)
                assert found[:3] == right[:3], (condition, found)
                assert found.error == 0.0
                assert found.rows_read == found.rows_expected


def test_a_condition_is_recognised_however_it_is_written() -> None:
    engine = engine_of(registered=True)
    engine.ingest(batch(np.random.default_rng(1), 100))
    for condition, mechanism in [
        ("'EU' = region", "marginal"),
        ("region IN ('EU')", "marginal"),
        ("NOT region <> 'EU'", "marginal"),
        ("ms > 50.0", "marginal"),
        ("NOT (ms < 50 OR ms = 50)", "marginal"),
        ("slow AND NOT eu", "compositional"),
        ("region = 'EU' AND k = 3", "scan"),
    ]:
        found = engine.attribute("AVG", condition)
        assert found.mechanism == mechanism, condition
        assert bool(found.rows_read) == (mechanism == "scan")


@pytest.mark.parametrize(
    "condition",
    ["NOT region <=> 'EU'", "NOT (ms > 50) IS TRUE", "k > 4 AND NOT region <=> 'EU'"],
)
def test_what_holds_where_a_registered_predicate_does_may_fail_elsewhere(condition: str) -> None:
    """eu is NULL where the region is; region <=> 'EU' holds alike, and is FALSE there."""
    engine, plain = engine_of(registered=True), engine_of()
    for each in (engine, plain):
        each.ingest(batch(np.random.default_rng(5), 150))
    assert engine.attribute("SUM", condition)[:3] == plain.attribute("SUM", condition)[:3]


def test_explain_says_which_why_and_at_what_cost() -> None:
    engine = engine_of(registered=True, index="k", sampling=ids.Sampling(16, seed=7))
    engine.ingest(batch(np.random.default_rng(3), 150))
    assert engine.explain("AVG", "eu").splitlines() == [
        "AVG of eu: marginal",
        "  reason: it is registered",
        "  rows read: 0 (expected 0)",
    ]
    told = engine.explain("AVG", "k = 3 AND flag")
    read = engine.attribute("AVG", "k = 3 AND flag").rows_read
    assert "AVG of k = 3 AND flag: index" in told
    assert f"rows read: {read} (expected {read})" in told
    assert "scan: 150 rows" in told
    assert "sample: " in told
    assert "seed 7" in engine.explain("AVG", "flag", sample=8, confidence=0.9)


def test_an_index_follows_late_rows_and_deletes() -> None:
    """Rows that move inside the window, of several blocks, are found where they are."""
    settings = {"order_by": "t", "lateness": 1_000, "index": ("k", "region")}
    engine = ids.Engine(ids.TimeWindow(500), "ms", **settings)  # type: ignore[arg-type]
    plain = ids.Engine(ids.TimeWindow(500), "ms", order_by="t", lateness=1_000)
    rng = np.random.default_rng(4)
    for start in range(0, 2_000, 100):
        rows = batch(rng, 600) | {"t": start + rng.integers(0, 300, 600)}
        for each in (engine, plain):
            each.ingest(rows)
        gone = {name: list(column)[::200] for name, column in rows.items()}
        if engine.rows and start % 300 == 0:
            for each in (engine, plain):
                each.apply(deletes=gone)
        for condition in ("k = 3", "region = 'EU' AND k > 5", "k <> 3 OR region IS NULL"):
            assert engine.attribute("SUM", condition)[:3] == plain.attribute("SUM", condition)[:3]


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("regoin = 'EU'", "unknown column 'regoin'"),
        ("region > 5", "compare"),
        ("ms", "a predicate must be a condition"),
        ("region = ", ""),
    ],
)
def test_a_bad_question_is_one_line(condition: str, error: str) -> None:
    engine = engine_of(index="k", sampling=ids.Sampling(8))
    engine.ingest(batch(np.random.default_rng(5), 20))
    for size in (None, 5):
        with pytest.raises(IdsError) as refused:
            engine.attribute("AVG", condition, sample=size)
        assert error in str(refused.value)
        assert "\n" not in str(refused.value)


def test_what_cannot_be_kept_is_refused_at_once() -> None:
    with pytest.raises(ArgumentError, match="an index requires retained rows"):
        ids.Engine(ids.CountWindow(5), "ms", index="k", retain=False)
    with pytest.raises(ArgumentError, match="promotion requires retained rows"):
        ids.Engine(ids.CountWindow(5), "ms", promotion=ids.Promotion(), retain=False)
    with pytest.raises(ArgumentError, match="Changelog"):
        ids.Engine(ids.Changelog(), "ms", sampling=ids.Sampling())
    with pytest.raises(ArgumentError, match="requires a sample"):
        ids.Engine(ids.CountWindow(5), "ms", promotion=ids.Promotion(bootstrap="sample"))
    engine = ids.Engine(ids.CountWindow(5), "ms", index="kk")
    with pytest.raises(UnknownNameError, match="'kk'"):
        engine.ingest({"k": [1], "ms": [2.0]})
    strata = ids.Engine(ids.CountWindow(5), "ms", sampling=ids.Sampling(4, strata="kk"))
    with pytest.raises(UnknownNameError, match="'kk'"):
        strata.ingest({"k": [1], "ms": [2.0]})
    bare = ids.Engine(ids.CountWindow(5), "ms", retain=False)
    bare.ingest({"ms": [2.0]})
    with pytest.raises(StateError, match="without retained rows"):
        bare.attribute("AVG", "ms > 1")
    with pytest.raises(StateError, match="neither a sample nor retained rows"):
        bare.attribute("AVG", "ms > 1", sample=5)
