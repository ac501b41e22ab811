"""RQ5: conditions, traces, what a replay touches, and what is said of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from evaluation.chapter import Tables
from evaluation.drawing import styled
from evaluation.repeated import Repeated
from evaluation.rq5 import CHAPTER
from evaluation.rq5.conditions import conditions
from evaluation.rq5.costs import Promotable, costs
from evaluation.rq5.measuring import compared
from evaluation.rq5.paper import TABLE
from evaluation.rq5.provisional import Missed, invariance
from evaluation.rq5.trace import MOST, POLICIES, Outcome, replay, zipfian
from evaluation.size import FULL, QUICK
from evaluation.step import Row
from evaluation.subject import SUBJECTS
from evaluation.values import literal
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
    assert (static.promotions, static.adhoc, static.rebuild) == (0, 4 * WINDOW, 0)
    assert ours.touched.tolist() == [WINDOW, WINDOW, WINDOW, 0]
    assert (ours.promotions, ours.adhoc, ours.rebuild) == (1, 2 * WINDOW, WINDOW)
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
    assert found.promotions == 0


def test_time_is_that_of_the_questions_alone(events: pa.Table) -> None:
    ticks = iter(range(100))
    found = replay(
        events, "fare_amount", WINDOW, "static", ["vendor = 1"] * 3, lambda: float(next(ticks))
    )
    assert found.time == 3.0
    assert found.time_of_scan == 1.0


def outcome(touched: list[int], promoted: list[int] | None = None) -> Outcome:
    marks = np.zeros(len(touched), bool)
    marks[promoted or []] = True
    ones = np.ones(len(touched))
    return Outcome(np.array(touched), marks, ones, ones)


def test_policies_are_compared_trace_by_trace() -> None:
    outcomes = {
        "static": [outcome([10] * 40), outcome([10] * 40)],
        "ours": [outcome([10] * 4 + [0] * 36, [1]), outcome([10] * 20 + [0] * 20)],
    }
    found = compared(1, outcomes, {"window": 10})
    _, ours = found["rq5_trace"]
    assert ours["gain"] == Repeated((10.0, 2.0))
    assert (ours["adhoc"], ours["rebuild"]) == (Repeated((30.0, 200.0)), Repeated((10.0, 0.0)))
    assert ours["scans"] == Repeated((4.0, 20.0))
    curve = {(r["policy"], r["question"]): r["touched"] for r in found["rq5_curve"]}
    assert curve["static", 40] == 400
    assert curve["ours", 1] == 10
    assert curve["ours", 40] == pytest.approx((40 + 200) / 2)


def test_a_policy_that_answers_otherwise_is_refused() -> None:
    wrong = replace(outcome([10] * 40), value=np.zeros(40))
    with pytest.raises(AssertionError, match="otherwise"):
        compared(1, {"static": [outcome([10] * 40)], "ours": [wrong]}, {})


def test_a_promotion_and_a_demotion_are_timed_apart(events: pa.Table) -> None:
    known = ["vendor = 1", "borough = 'Bronx'"]
    window = Promotable.of(events, "fare_amount", WINDOW, known, "fare_amount > 10")
    ticks = iter(np.cumsum([0.0, 4.0, 1.0] * 100).tolist())
    (row,) = costs([window], 5, lambda: float(next(ticks)))
    assert row["promotion"] == Repeated((4.0,) * 5)
    assert row["promotion_a_tuple"] == Repeated((4.0 / WINDOW,) * 5)
    assert row["demotion"] == Repeated((1.0,) * 5)
    assert list(window.engine.predicates) == ["known_0", "known_1"]


def test_what_a_provisional_predicate_misses_never_changes_until_it_is_rebuilt(
    events: pa.Table,
) -> None:
    rows, short = invariance(
        events, "fare_amount", "borough = 'Queens'",
        window=WINDOW, slides=30, sample=50, rng=np.random.default_rng(3),
    )  # fmt: skip
    assert short["distinct_errors"] == 1
    assert not short["began_exact"]
    assert short["rebuilt_exact"]
    assert short["bounded"]
    assert [row["mechanism"] for row in rows] == ["provisional"] * 30 + ["marginal"]
    assert len({row["rows_missed"] for row in rows[:-1]}) == 1
    assert len({row["rows_exact"] for row in rows}) > 3, "the window must have moved"
    assert rows[-1]["rows_missed"] == 0


def test_a_sum_that_drifts_would_be_seen() -> None:
    assert Missed(((1, 2),)) != Missed(((1, 3),))
    assert not Missed(((0, 1),)).nothing
    assert Missed(((0, 0), (0, 0))).nothing


def trace_rows(alpha: int, window: int = 50_000, questions: int = 1_600) -> list[Row]:
    made: list[Row] = []
    for number, policy in enumerate(POLICIES):
        made.append({
            "alpha": alpha, "policy": policy, "workload": "nyc", "window": window,
            "questions": questions, "promotions": Repeated((8.0, 8.0)),
            "adhoc": Repeated((40e6 / (number + 1), 40e6 / (number + 1))),
            "rebuild": Repeated((0.4e6, 0.4e6)), "scans": Repeated((700.0, 700.0)),
            "gain": Repeated((number + 1.0, number + 1.0)), "seconds": Repeated((0.2, 0.2)),
            "scan_seconds": Repeated((1e-4, 1e-4)),
        })  # fmt: skip
    return made


def cost_row(window: int) -> Row:
    return {"workload": "nyc", "predicates": 4, "condition": "fare_amount > 7", "window": window,
            "atoms": 5, "promotion": Repeated((0.002,)),
            "promotion_a_tuple": Repeated((0.002 / window,)),
            "demotion": Repeated((0.0004,))}  # fmt: skip


SHORT: Row = {"workload": "nyc", "condition": "c", "window": 10, "sample": 5, "touched": 6,
              "slides": 3, "moved": 9, "distinct_errors": 1, "began_exact": False,
              "rebuilt_exact": True, "bounded": True, "last_mechanism": "marginal"}  # fmt: skip


def test_our_numbers_stand_beside_the_papers() -> None:
    tables = Tables({
        "rq5_trace": [*trace_rows(2), *trace_rows(1)],
        "rq5_costs": [cost_row(500_000), cost_row(50_000)], "rq5_invariance": [SHORT],
    })  # fmt: skip
    section = CHAPTER.show(tables)
    found = {one.what: one for one in section.comparisons}
    adhoc = found["α = 2, adaptive, f = 10: ad hoc tuples touched"]
    assert (adhoc.paper, adhoc.ours) == (8.25, pytest.approx(40 / 3))
    assert adhoc.verdict == "worse"
    assert adhoc.reason
    assert found["α = 1, adaptive, f = 10: times fewer than static"].paper == 2.25
    share = found["α = 2: rebuild in the adaptive total (the paper: under 5 %)"]
    assert share.ours == pytest.approx(100 * 0.4 / (40 / 3 + 0.4))
    assert found["promotion, a tuple"].ours == pytest.approx(0.004)
    assert found["demotion at N = 50,000 (the paper: tens of µs)"].verdict == "worse"
    assert section.tables[0].rows[2][:4] == ["1", "adaptive, f = 10", "8", "8"]
    assert section.tables[1].rows[-1][0] == "500,000"
    assert 3 <= len(section.remarks) <= 7
    assert "10.4 million by ours" in section.remarks[0]


def test_a_shorter_trace_is_not_put_beside_the_papers() -> None:
    section = CHAPTER.show(Tables({"rq5_trace": trace_rows(1, 20_000, 400)}))
    assert all(one.ours is None for one in section.comparisons)
    assert section.tables


def test_an_error_that_changes_is_said_to_change() -> None:
    drifted = {**SHORT, "distinct_errors": 7, "rebuilt_exact": False}
    (remark,) = CHAPTER.show(Tables({"rq5_invariance": [drifted]})).remarks
    assert "7 different ones" in remark
    assert "and not 0" in remark


def test_nothing_measured_is_nothing_said() -> None:
    section = CHAPTER.show(Tables({}))
    assert not section.remarks
    assert not section.tables
    assert {one.ours for one in section.comparisons} == {None}


def test_the_papers_table_adds_up() -> None:
    for (_, policy), row in TABLE.items():
        total = row.adhoc + row.rebuild
        assert row.gain == pytest.approx(80 / total, abs=0.006), policy


def test_every_figure_is_drawn_from_rows_alone() -> None:
    tables = Tables({
        "rq5_curve": [
            {"alpha": alpha, "policy": policy, "question": question, "touched": 100.0 * question}
            for alpha in (1, 2) for policy in POLICIES for question in (1, 20, 40)
        ],
        "rq5_provisional": [
            {"slide": slide, "rows_missed": -3 if slide < 9 else 0, "rows_exact": 40}
            for slide in range(10)
        ],
    })  # fmt: skip
    with styled():
        for figure in CHAPTER.figures:
            assert tables.filled(figure.needs)
            assert figure.draw(tables).axes


@pytest.mark.parametrize("size", [QUICK, FULL])
def test_steps_bear_the_chapters_key_and_fit_the_bar(size: object) -> None:
    made = CHAPTER.steps(size)  # type: ignore[arg-type]
    assert len({step.name for step in made}) == len(made)
    for step in made:
        assert step.name.startswith("rq5-")
        assert len(step.does) <= 50
        assert step.seconds < 120
