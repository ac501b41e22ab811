from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.baselines.coalitions import Aggregate, GroupGame
from evaluation.chapter import Tables
from evaluation.drawing import styled, svg
from evaluation.repeated import Repeated
from evaluation.rq6 import CHAPTER, contest, incident, paper
from evaluation.rq6.candidates import PLANTED, SIBLINGS
from evaluation.rq6.contest.convergence import trend
from evaluation.rq6.contest.measuring import IDS
from evaluation.rq6.incident.leading import RULES, Calm, Rule, leads, led_from
from evaluation.rq6.incident.replay import SIGNALS, replanted, replay
from evaluation.size import FULL, QUICK

CALM = Calm(np.zeros(3), np.ones(3))


def requests(rows: int = 20) -> pa.Table:
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "event_time": np.arange(rows),
            "region": rng.choice(["EU-West", "US-East"], rows),
            "tier": rng.choice(["premium", "basic"], rows),
            "endpoint": rng.choice(["/checkout", "/feed"], rows),
            "latency": rng.lognormal(3.7, 0.5, rows),
        }
    )


def same(*first: int) -> np.ndarray:
    """Signals of three candidates of which these are the first, emit by emit."""
    signal = np.zeros((3, len(first)))
    signal[list(first), np.arange(len(first))] = 5.0
    return signal


def test_a_lead_is_three_emits_in_a_row_and_its_third_is_where_it_counts() -> None:
    held = leads(same(0, 0, 1, 0, 0, 0, 0, 2), RULES[0], CALM)
    assert held.tolist() == [-1, -1, -1, -1, -1, 0, 0, -1]


def test_a_rule_may_ask_that_the_leader_stand_out_from_its_own_calm() -> None:
    signal = same(0, 0, 0)
    loud = Calm(np.array([1.0, 0.0, 0.0]), np.array([1.5, 0.1, 0.1]))
    assert leads(signal, Rule("", 2.0), loud).tolist() == [-1, -1, 0]
    assert leads(signal, Rule("", 3.0), loud).tolist() == [-1, -1, -1]


def test_a_run_that_began_before_the_onset_does_not_count() -> None:
    tuples = np.array([-20, 0, 20, 40, 60, 80])
    held = leads(same(0, 0, 0, 0, 0, 0), RULES[0], CALM)
    assert led_from(held, tuples) == 60
    assert led_from(held, tuples, candidate=1) is None


def exact(aggregate: Aggregate, window: pa.Table) -> list[float]:
    phi = GroupGame.of_tuples(aggregate, window["latency"].to_numpy()).shapley()
    return [float(phi[candidate.mask(window)].sum()) for candidate in SIBLINGS]


def test_the_replay_says_what_enumerating_every_window_says() -> None:
    rows = requests()
    signals = replay(rows, SIBLINGS, window=8, slide=2, onset=12)
    assert signals.tuples.tolist() == [-4, -2, 0, 2, 4, 6, 8]
    for at, end in enumerate(range(8, 21, 2)):
        now = rows.slice(end - 8, 8)
        mean = now["latency"].to_numpy().mean()
        assert signals.average[at] == pytest.approx(mean)
        shares = [candidate.mask(now).sum() / 8 * mean for candidate in SIBLINGS]
        lifts = np.array(exact("AVG", now)) - shares
        assert signals.by_name["AVG lift"][:, at] == pytest.approx(lifts)
        if at:
            before = exact("VAR_POP", rows.slice(end - 10, 8))
            change = np.array(exact("VAR_POP", now)) - before
            assert signals.by_name["ΔΦ of VAR"][:, at] == pytest.approx(change)


def test_an_incident_planted_anew_slows_the_planted_rows_after_the_onset_alone() -> None:
    calm = requests()
    changed = replanted(calm, 12, 4.0)["latency"].to_numpy() / calm["latency"].to_numpy()
    expected = np.where(PLANTED.mask(calm) & (np.arange(20) >= 12), 4.0, 1.0)
    assert expected.max() == 4.0
    assert changed == pytest.approx(expected)


def test_the_permutations_needed_follow_the_measured_slope() -> None:
    rows = [
        {"permutations": n, "error": 2.0 * n**-0.5, "seconds": Repeated.of([1e-3 * n])}
        for n in (50, 200, 800)
    ]
    found = trend(rows)
    assert found.slope == pytest.approx(-0.5)
    assert found.needed == pytest.approx(40_000)
    assert found.seconds == pytest.approx(40.0)


def cost(n: int, method: str, estimand: str, microseconds: float, error: float | None) -> Any:
    """Rows of both aggregates."""
    seconds = Repeated.of([1e-6 * microseconds] * 5)
    return [
        {
            "n": n,
            "aggregate": aggregate,
            "method": method,
            "estimand": estimand,
            "budget": 100,
            "seconds": seconds,
            "vs_ids": Repeated.of([microseconds / 2.0] * 5),
            "error": error,
        }
        for aggregate in ("AVG", "VAR_POP")
    ]


def hand_made() -> Tables:
    costs = [
        *cost(1_000, IDS, "tuples", 2.0, None),
        *cost(1_000, "permutation MC, NumPy", "tuples", 8_000.0, 0.2),
        *cost(1_000, "permutation MC, plain Python", "tuples", 90_000.0, 0.2),
        *cost(1_000, "KernelSHAP", "two", 150.0, 0.08),
        *cost(1_000, "KernelSHAP, paired", "two", 140.0, 1e-16),
    ]
    leading: list[dict[str, Any]] = [
        {"rivals": rivals, "slide": 20, "signal": signal, "rule": rule.label}
        | {"led_after": 60 + 20 * k, "before": 390, "decoy_led": 5 - 2 * k, "planted_led": 0}
        for rivals in ("siblings", "parents")
        for signal in SIGNALS
        for k, rule in enumerate(RULES)
    ]
    onsets: list[dict[str, Any]] = [
        {"rivals": "siblings", "onset": onset, "signal": signal, "rule": rule.label}
        | {"led_after": None if onset == 2 and signal == "AVG lift" else 50 + onset}
        for onset in (1, 2)
        for signal in SIGNALS
        for rule in RULES
    ]
    series: list[dict[str, Any]] = [
        {"tuples": at, "near": True, "far": True, "average": 45.0 + at / 100}
        | {f"{s}: {c.label}": float(at * k) for s in SIGNALS for k, c in enumerate(SIBLINGS)}
        for at in range(-600, 801, 100)
    ]
    facts: dict[str, Any] = {
        "window": 2_000,
        "slide": 20,
        "incident": 500,
        "planted": PLANTED.label,
    }
    return Tables(
        {
            "rq6_cost": costs,
            "rq6_leads": leading,
            "rq6_onsets": onsets,
            "rq6_case": series,
            "rq6_case_facts": [facts],
        }
    )


def test_ours_stands_beside_the_papers_number_of_the_same_method_and_window() -> None:
    found = {c.what: c for c in contest.show(hand_made()).comparisons}
    assert (found["IDS, N = 1,000"].paper, found["IDS, N = 1,000"].ours) == (1.3, 2.0)
    ratio = found["permutation MC (200), N = 1,000, ours in NumPy: times as long as IDS"]
    assert (ratio.paper, ratio.ours, ratio.verdict) == (66_264, 4_000.0, "worse")
    assert ratio.reason
    kernel = found["KernelSHAP (100), N = 1,000, ours in NumPy: relative error"]
    assert (kernel.paper, kernel.ours, kernel.verdict) == (0.267, 0.08, "")
    assert found["permutation MC (200), N = 20,000, ours in NumPy: latency"].ours is None


def test_every_number_that_the_paper_prints_is_compared() -> None:
    both = [part.show(hand_made()).comparisons for part in (contest, incident)]
    printed = [c.paper for comparisons in both for c in comparisons]
    for row in paper.BASELINES:
        assert {row.microseconds, row.error, row.vs_ids} <= set(printed)
    assert {79, 9_399, 0, 1.8e6, 0.11} <= set(printed)


def test_delays_and_leads_before_the_onset_are_counted_by_one_rule() -> None:
    found = incident.show(hand_made()).comparisons
    plain, strict = found[:3], found[3:]
    assert [(c.paper, c.ours) for c in plain] == [(79, 60), (9_399, 60), (0, 5)]
    assert [(c.paper, c.ours) for c in strict] == [(79, 100), (9_399, 100), (0, 1)]
    assert [c.verdict for c in plain] == ["better", "", "worse"]
    assert [c.verdict for c in strict] == ["", "better", ""]


def test_an_onset_where_nobody_led_is_said_so() -> None:
    tables = incident.show(hand_made()).tables
    cells = next(row for row in tables[1].rows if row[1] == "AVG lift")
    assert cells[2] == "51 (51 to 51, 1 never)"


@pytest.mark.parametrize("part", [contest, incident])
def test_a_run_without_the_workload_has_nothing_to_say(part: Any) -> None:
    section = part.show(Tables({}))
    assert not section.remarks and not section.comparisons and not section.tables


def test_the_figures_draw_from_rows_alone() -> None:
    with styled():
        for figure in (*contest.FIGURES, *incident.FIGURES):
            assert hand_made().filled(figure.needs)
            drawn = svg(figure.draw(hand_made()))
            assert IDS in drawn or "leads: 60" in drawn


@pytest.mark.parametrize("size", [QUICK, FULL])
def test_steps_are_named_for_the_chapter_and_need_the_synthetic_stream(size: Any) -> None:
    steps = CHAPTER.steps(size)
    assert len({step.name for step in steps}) == len(steps)
    assert all(step.name.startswith("rq6-") and len(step.does) <= 50 for step in steps)
