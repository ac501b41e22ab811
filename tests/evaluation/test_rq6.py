from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluation.drawing import svg
from evaluation.report import HERE, fill
from evaluation.rq6 import CHAPTER
from evaluation.rq6.contest import relative_error
from evaluation.rq6.figures import FIGURES
from evaluation.rq6.incident import (
    PLANTED,
    RIVALS,
    SIGNALS,
    leaders,
    led_from,
    replanted,
    replay,
)
from evaluation.step import FULL, QUICK, Repeated
from evaluation.tables import Tables
from ids.demo.events import INCIDENT
from tests.oracles.shapley import attribution

ALWAYS = np.full(3, -np.inf)
RULES = ("first of four", "first, 2 σ above its calm", "first, 3 σ above its calm")


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
    held = leaders(same(0, 0, 1, 0, 0, 0, 0, 2), ALWAYS)
    assert held.tolist() == [-1, -1, -1, -1, -1, 0, 0, -1]


def test_a_rule_may_ask_that_the_leader_stand_out_from_its_own_calm() -> None:
    assert leaders(same(0, 0, 0), np.array([4.0, 9.0, 9.0])).tolist() == [-1, -1, 0]
    assert leaders(same(0, 0, 0), np.array([5.5, 0.1, 0.1])).tolist() == [-1, -1, -1]


def test_a_run_that_began_before_the_onset_does_not_count() -> None:
    tuples = np.array([-20, 0, 20, 40, 60, 80])
    assert led_from(leaders(same(0, 0, 0, 0, 0, 0), ALWAYS), tuples) == 60
    assert led_from(leaders(same(1, 1, 1, 1, 1, 1), ALWAYS), tuples) is None


@pytest.mark.parametrize("rivals", RIVALS)
def test_the_replay_says_what_enumerating_every_window_says(rivals: str) -> None:
    rows, candidates = requests(), RIVALS[rivals]

    def exact(game: str, first: int) -> np.ndarray:
        now = rows.slice(first, 8)
        y = now["latency"].to_pylist()
        members = [np.flatnonzero(one.mask(now)).tolist() for one in candidates]
        return np.array([float(attribution(game, y, some)) for some in members])

    emits = replay(rows, candidates, window=8, slide=2, onset=12)
    assert emits["tuples"].to_pylist() == [-4, -2, 0, 2, 4, 6, 8]
    lift, delta = (
        np.stack([emits[f"{signal}: {one.label}"] for one in candidates]) for signal in SIGNALS
    )
    for at, first in enumerate(range(0, 13, 2)):
        now = rows.slice(first, 8)
        mean = now["latency"].to_numpy().mean()
        assert emits["average"][at].as_py() == pytest.approx(mean)
        lifts = exact("AVG", first) - [one.mask(now).sum() / 8 * mean for one in candidates]
        assert lift[:, at] == pytest.approx(lifts)
        if at:
            change = exact("VAR_POP", first) - exact("VAR_POP", first - 2)
            assert delta[:, at] == pytest.approx(change)


def test_an_incident_planted_anew_slows_the_planted_rows_after_the_onset_alone() -> None:
    calm = requests()
    changed = replanted(calm, 12)["latency"].to_numpy() / calm["latency"].to_numpy()
    expected = np.where(PLANTED.mask(calm) & (np.arange(20) >= 12), 4.0, 1.0)
    assert expected.max() == 4.0
    assert changed == pytest.approx(expected)


def test_the_planted_predicate_is_the_demos() -> None:
    assert PLANTED.condition == INCIDENT


def test_parents_hold_on_every_planted_row_and_siblings_on_none() -> None:
    rows = requests(200)
    planted = PLANTED.mask(rows)
    assert all((one.mask(rows) >= planted).all() for one in RIVALS["parents"][1:3])
    assert not any((one.mask(rows) & planted).any() for one in RIVALS["siblings"][1:3])


def test_an_attribution_near_zero_does_not_blow_up_the_relative_error() -> None:
    assert relative_error([[11.0, 1.0], [9.0, -1.0]], [10.0, 0.0]) == pytest.approx(0.2)


def cost(method: str, estimand: str, microseconds: float, error: float | None) -> list[Any]:
    facts = {"n": 1_000, "method": method, "estimand": estimand, "error": error}
    facts["budget"] = 100 if error is not None else None
    seconds = Repeated.of([1e-6 * microseconds] * 5)
    timing = {"seconds": seconds, "vs_ids": Repeated.of([microseconds / 2.0] * 5)}
    return [{**facts, **timing, "aggregate": aggregate} for aggregate in ("AVG", "VAR_POP")]


def hand_made() -> Tables:
    leads: list[Any] = [
        {"rivals": rivals, "slide": 20, "signal": signal, "rule": rule, "before": 390}
        | {"led_after": 60 + 20 * k + late, "decoy_led": 5 - 2 * k, "planted_led": 1}
        for rivals, late in (("siblings", 0), ("parents", 100))
        for signal in SIGNALS
        for k, rule in enumerate(RULES)
    ]
    onsets: list[Any] = [
        {"rivals": rivals, "onset": onset, "signal": signal, "rule": rule}
        | {"led_after": None if onset == 2 and signal == "AVG lift" else 50 + onset}
        for rivals in RIVALS
        for onset in (1, 2)
        for signal in SIGNALS
        for rule in RULES
    ]
    every = dict.fromkeys(one for some in RIVALS.values() for one in some)
    case: list[Any] = [
        {"tuples": at, "near": True, "far": True, "average": 45.0 + at / 100}
        | {f"{s}: {c.label}": float(at * k) for s in SIGNALS for k, c in enumerate(every)}
        for at in range(-600, 801, 100)
    ]
    facts = {"window": 2_000, "slide": 20, "incident": 500, "planted": PLANTED.label}
    costs = [
        *cost("IDS (closed form)", "tuples", 2.0, None),
        *cost("permutation MC, compiled", "tuples", 6_000.0, 0.2),
        *cost("permutation MC, NumPy", "tuples", 8_000.0, 0.2),
        *cost("permutation MC, plain Python", "tuples", 90_000.0, 0.2),
        *cost("KernelSHAP", "two", 150.0, 0.08),
        *cost("KernelSHAP, paired", "two", 140.0, 1e-16),
        *cost("KernelSHAP", "atoms", 140.0, 0.9),
    ]
    converge: list[Any] = [
        {"n": 1_000, "aggregate": "AVG", "permutations": n, "error": 2.0 * n**-0.5}
        | {"seconds": Repeated.of([1e-3 * n])}
        for n in (50, 200, 800)
    ]
    return Tables(
        {"rq6_cost": costs, "rq6_leads": leads, "rq6_onsets": onsets, "rq6_case": case}
        | {"rq6_case_facts": [facts], "rq6_converge": converge}
    )


def test_a_baseline_of_another_speed_gets_no_verdict_and_a_rival_set_gets_its_own() -> None:
    part = fill(HERE / "rq6", hand_made())
    found = {one.what: one for one in part.comparisons}
    ours = found["IDS, N = 1,000"]
    assert (ours.paper, ours.ours, ours.verdict) == (1.3, 2.0, "worse")
    ratio = found["permutation MC (200), N = 1,000, ours in NumPy: times as long as IDS"]
    assert (ratio.paper, ratio.ours, ratio.verdict) == (66_264, 4_000.0, "")
    assert ratio.incomparable
    led = "tuples until ΔΦ of VAR ranks the planted predicate first for three emits, among "
    by = {rivals: found[led + rivals] for rivals in RIVALS}
    assert {rivals: (one.ours, one.verdict) for rivals, one in by.items()} == {
        "siblings": (60, "better"),
        "parents": (160, "worse"),
    }
    printed = {one.paper for one in part.comparisons}
    assert {85_190, 1_752_013, 1.8e6, 296, 1_391, 230, 1_035, 0.843, 79, 9_399, 0} <= printed
    assert {80_277.9, 22.4, 40.7, 1.18, 14_894.7, 7.63, 0.36, 1.825, 58} <= printed


def test_the_text_shows_both_sets_of_rivals_and_what_was_extrapolated() -> None:
    body = fill(HERE / "rq6", hand_made()).body
    assert "| ΔΦ of VAR | first of four | 79 | 60 | 5 | 1 | 160 | 5 | 1 |" in body
    assert "| AVG lift | first of four | 51 (51 to 51, 1 never) | 51 (51 to 51, 1 never) |" in body
    assert "1 % takes 40,000 permutations and 40 s, compiled" in body  # along a slope of −½


def test_a_claim_that_is_no_longer_true_is_told() -> None:
    tables = hand_made()
    leads = [row | {"led_after": 10} if row["rivals"] == "parents" else row
             for row in tables["rq6_leads"]]  # fmt: skip
    part = fill(HERE / "rq6", Tables({"rq6_leads": leads}))
    assert any("no sooner" in claim for claim in part.failed)


def test_the_figures_draw_from_rows_alone() -> None:
    drawn = [svg(FIGURES[name], hand_made()) for name in FIGURES if "mech" not in name]
    assert all(text.startswith("<?xml") for text in drawn)


@pytest.mark.parametrize("size", [QUICK, FULL])
def test_steps_are_named_for_the_chapter_and_fit_the_bar(size: Any) -> None:
    steps = CHAPTER.steps(size)
    assert len({step.name for step in steps}) == len(steps)
    assert all(step.name.startswith("rq6-") and len(step.does) <= 50 for step in steps)
