"""RQ5: conditions, traces, what a replay touches, and what is said of it."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.bench import literal
from evaluation.rq5.promotion import (
    MOST,
    Replay,
    compared,
    conditions,
    costs,
    provisional,
    replay,
    trace,
    zipfian,
)
from evaluation.step import SUBJECTS, Repeated, Size
from ids.language import parse_predicate

NYC = SUBJECTS["nyc"]
WINDOW = 400


def trips(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    start = np.datetime64("2024-01-01T00:00:00", "us")
    boroughs = np.array(["Manhattan", "Queens", "O'Hare", "Bronx"])
    payment = rng.integers(1, 5, rows)
    return pa.table({
        "event_time": start + np.arange(rows) * np.timedelta64(7, "m"),
        "borough": rng.choice(boroughs, rows, p=[0.6, 0.2, 0.15, 0.05]),
        "vendor": rng.integers(1, 3, rows),
        "payment": pa.array(payment, mask=payment == 4),
        "fare_amount": np.round(rng.lognormal(2.5, 0.6, rows), 2),
    })  # fmt: skip


@pytest.fixture(scope="module")
def events() -> pa.Table:
    return trips(2 * WINDOW)


def test_forty_conditions_that_all_differ_are_made_of_a_streams_own_columns(
    events: pa.Table,
) -> None:
    found = conditions(events, NYC)
    assert len(set(found)) == len(found) == 40
    for condition in found:
        parse_predicate(condition)
    assert "borough = " + literal("O'Hare") in found
    assert "payment = None" not in " ".join(found)
    kinds = ("borough =", "vendor =", "payment =", "fare_amount >", "BETWEEN", "HOUR(", " AND ")
    for kind in kinds:
        assert any(kind in condition for condition in found), kind


def test_columns_that_say_too_little_are_refused() -> None:
    rows = {"event_time": np.zeros(5, "datetime64[us]"), "borough": ["a"] * 5, "vendor": [1] * 5,
            "payment": [1] * 5, "fare_amount": [1.0] * 5}  # fmt: skip
    with pytest.raises(ValueError, match="conditions only"):
        conditions(pa.table(rows), NYC)


@pytest.mark.parametrize("alpha", [1, 2])
def test_a_trace_follows_zipfs_law(alpha: int) -> None:
    asked = [f"x = {number}" for number in range(40)]
    trace = zipfian(asked, alpha, np.random.default_rng(1), 200_000)
    counts = [count for _, count in Counter(trace).most_common()]
    law = 1.0 / np.arange(1, 41) ** alpha
    assert counts[:4] == pytest.approx(200_000 * law[:4] / law.sum(), rel=0.05)
    assert set(trace) <= set(asked)


def test_which_condition_is_asked_about_most_is_drawn() -> None:
    asked = [f"x = {number}" for number in range(40)]
    first = {
        Counter(zipfian(asked, 2, np.random.default_rng(seed), 500)).most_common(1)[0][0]
        for seed in range(8)
    }
    assert len(first) > 3


def test_a_promotion_is_counted_as_rebuild_and_answers_its_question(events: pa.Table) -> None:
    trace = ["fare_amount > 10", "vendor = 1", "fare_amount > 10", "fare_amount > 10"]
    static = replay(events, "fare_amount", WINDOW, "static", trace)
    ours = replay(events, "fare_amount", WINDOW, "ours", trace)
    assert static.touched.tolist() == [WINDOW] * 4
    assert static.promoted.tolist() == [False] * 4
    assert ours.touched.tolist() == [WINDOW, WINDOW, WINDOW, 0]
    assert ours.promoted.tolist() == [False, False, True, False]
    assert ours.value.tolist() == static.value.tolist()


def test_the_papers_policy_promotes_at_the_tenth_question(events: pa.Table) -> None:
    found = replay(events, "fare_amount", WINDOW, "adaptive, f = 10", ["vendor = 1"] * 12)
    assert np.flatnonzero(found.promoted).tolist() == [9]
    assert found.touched.tolist() == [WINDOW] * 10 + [0] * 2


def test_the_oracle_has_registered_what_is_asked_about_most(events: pa.Table) -> None:
    asked = [f"fare_amount > {bound}" for bound in range(5, 5 + MOST + 1)]
    trace = [condition for condition in asked[:-1] for _ in range(2)] + asked[-1:]
    found = replay(events, "fare_amount", WINDOW, "oracle", trace)
    assert np.flatnonzero(found.touched).tolist() == [len(trace) - 1]
    assert not found.promoted.any()


def test_time_is_that_of_the_questions_alone(events: pa.Table) -> None:
    ticks = iter(range(100))
    found = replay(
        events, "fare_amount", WINDOW, "static", ["vendor = 1"] * 3, lambda: float(next(ticks))
    )
    assert found.seconds.tolist() == [1.0] * 3


def touching(touched: list[int], promoted: list[int] | None = None) -> Replay:
    marks = np.zeros(len(touched), bool)
    marks[promoted or []] = True
    ones = np.ones(len(touched))
    return Replay(np.array(touched), marks, ones, ones)


def test_policies_are_compared_trace_by_trace() -> None:
    replays = {
        "static": [touching([10] * 40), touching([10] * 40)],
        "ours": [touching([10] * 4 + [0] * 36, [1]), touching([10] * 20 + [0] * 20)],
    }
    found = compared(1, replays, {"window": 10})
    _, ours = found["rq5_trace"]
    assert ours["gain"] == Repeated((10.0, 2.0))
    assert (ours["adhoc"], ours["rebuild"]) == (Repeated((30.0, 200.0)), Repeated((10.0, 0.0)))
    assert (ours["scans"], ours["promotions"]) == (Repeated((4.0, 20.0)), Repeated((1.0, 0.0)))
    assert (ours["seconds"], ours["scan_seconds"]) == (Repeated((40.0,) * 2), Repeated((1.0,) * 2))
    curve = {(r["policy"], r["question"]): r["touched"] for r in found["rq5_curve"]}
    assert curve["static", 40] == 400
    assert curve["ours", 1] == 10
    assert curve["ours", 40] == pytest.approx((40 + 200) / 2)


def test_a_policy_that_answers_otherwise_is_refused() -> None:
    wrong = touching([10] * 40)._replace(value=np.zeros(40))
    with pytest.raises(AssertionError, match="otherwise"):
        compared(1, {"static": [touching([10] * 40)], "ours": [wrong]}, {})


def bench(told: list[float]) -> Any:
    """A bench of these trips."""
    return SimpleNamespace(
        size=Size("quick", 1),
        real=NYC,
        said=told.append,
        events=lambda _, rows: trips(rows),
        rng=lambda _: np.random.default_rng(3),
    )


def test_every_policy_is_asked_the_same_and_touches_less_than_static() -> None:
    told: list[float] = []
    found: Any = trace(bench(told), alpha=1, window=WINDOW, questions=80)
    gains = {row["policy"]: row["gain"].mean for row in found["rq5_trace"]}
    assert gains["static"] == 1 < gains["adaptive, f = 10"] < gains["ours"]
    assert gains["oracle"] > gains["adaptive, f = 10"]
    assert [row["question"] for row in found["rq5_curve"]] == [1, *range(20, 81, 20)] * 4
    assert told == sorted(told) and told[-1] == 1.0


def test_a_promotion_and_a_demotion_are_timed_apart() -> None:
    ticks = iter(np.cumsum([0.0, 4.0, 0.0, 1.0] * 200).tolist())
    found: Any = costs(bench([]), (WINDOW, 2 * WINDOW), lambda: float(next(ticks)))
    small, large = found["rq5_costs"]
    assert small["promotion"] == large["promotion"] == Repeated((4.0,))
    assert large["promotion_a_tuple"] == Repeated((4.0 / (2 * WINDOW),))
    assert small["demotion"] == Repeated((1.0,))
    assert (small["window"], large["window"]) == (WINDOW, 2 * WINDOW)


def test_what_a_provisional_predicate_misses_never_changes_until_it_is_rebuilt() -> None:
    found: Any = provisional(bench([]), window=WINDOW, slides=30, sample=50)
    rows, (short,) = found["rq5_provisional"], found["rq5_invariance"]
    assert short["distinct_errors"] == 1
    assert not short["began_exact"]
    assert short["rebuilt_exact"]
    assert short["bounded"]
    assert [row["mechanism"] for row in rows] == ["provisional"] * 30 + ["marginal"]
    assert len({row["rows_missed"] for row in rows[:-1]}) == 1
    assert len({row["rows_exact"] for row in rows}) > 3, "the window must have moved"
    assert rows[-1]["rows_missed"] == 0


def test_an_error_that_changes_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    drifting = iter((number // 10, 1) for number in range(100))
    monkeypatch.setattr("evaluation.rq5.promotion.missed", lambda *_: next(drifting))
    found: Any = provisional(bench([]), window=WINDOW, slides=30, sample=50)
    (short,) = found["rq5_invariance"]
    assert short["distinct_errors"] == 3 and not short["rebuilt_exact"]
