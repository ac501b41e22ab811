"""The chapter on sampling: trials against exact values, strata, samplers, the engine's own rows."""

from __future__ import annotations

from itertools import combinations, product
from math import comb
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ids
from evaluation.rq4.samplers import (
    fed,
    held,
    ingest,
    own,
    refuse_another_sample,
    refuse_other_answers,
)
from evaluation.rq4.trials import ASKED, WAYS, Way, beside_uniform, size_for, trials
from evaluation.rq4.window import LEAST, Window, aligned, conditions
from evaluation.step import Size, Subject
from ids.model import CountWindow, Sampling, TimeWindow
from ids.source import open_table

SUBJECT = Subject("shop", "price", ("city", "till"), None)
SIX = np.array([1.0, 2.0, 4.0, 9.0, 3.0, 5.0])
SOME = np.array([True, False, True, False, False, True])


def events(rows: int = 3_000) -> pa.Table:
    rng = np.random.default_rng(5)
    city = rng.choice(["Rome", "Oslo", "Kiev", "Bern"], rows, p=[0.55, 0.3, 0.1, 0.05])
    till = rng.choice([1, 2, 3], rows, p=[0.5, 0.4, 0.1])
    price = np.round(rng.lognormal(2.0 + (city == "Oslo"), 0.7), 2)
    return pa.table(
        {
            "city": pa.array(city).dictionary_encode(),
            "till": pa.array(till, mask=rng.random(rows) < 0.05),
            "price": price,
        }
    )


def bench(told: list[float]) -> Any:
    """A bench of the shop's rows."""
    return SimpleNamespace(
        size=Size("quick", 2), real=SUBJECT, said=told.append, events=lambda _, rows: events(rows)
    )


@pytest.fixture(scope="module")
def window() -> Window:
    return Window.of_events(events(), SUBJECT)


def judged(window: Window, way: Way, r: int, times: int) -> dict[tuple[str, str], dict[str, Any]]:
    found = trials(window, way, r, times, np.random.default_rng(1))
    return {(one["game"], one["predicate"]): one for one in found}


# What is asked


def test_conditions_mean_to_the_engine_what_their_masks_say(window: Window) -> None:
    engine = ids.Engine(window=CountWindow(3_000), value="price")
    engine.ingest(events())
    for name, holds in window.holds.items():
        assert engine.attribute("COUNT", name).value == holds.sum() > 0, name
        for game in ASKED:
            exact = window.exact(game, name)
            assert engine.attribute(game, name).value == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_conditions_go_from_common_to_rare_and_on_to_ranges_of_the_measure() -> None:
    asked = conditions(events(), SUBJECT)
    shares = [holds.mean() for name, holds in asked.items() if "price" not in name]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.4 and shares[-1] < 0.11
    assert len(shares) == len(asked) - 3 == 6
    assert min(holds.sum() for holds in asked.values()) >= LEAST


def test_the_rare_condition_is_a_part_of_a_stratum_that_is_rare_itself() -> None:
    name, holds = aligned(events(), SUBJECT)
    city, till = name.split(" AND ")
    assert city in ("city = 'Kiev'", "city = 'Bern'") and till.startswith("till = ")
    inside = np.array(events()["city"].to_pylist()) == city.split("'")[1]
    assert not (holds & ~inside).any() and holds.sum() < inside.sum()


def test_a_rare_part_of_a_common_stratum_is_not_taken() -> None:
    city = np.repeat(["Rome", "Bern"], [900, 100])
    till = np.concatenate([np.full(878, 1), np.full(22, 9), np.full(60, 1), np.full(40, 2)])
    rows = pa.table({"city": city, "till": till, "price": np.ones(1_000)})
    assert aligned(rows, SUBJECT)[0] == "city = 'Bern' AND till = 2"


# Trials


@pytest.mark.parametrize("r", [2, 3])
def test_the_deviation_expected_is_that_of_all_samples_there_are(r: int) -> None:
    small = Window(SIX, {"p": SOME}, np.zeros(6, np.int64))
    own = np.where(SOME, SIX, 0.0)
    for replacement, samples in (
        (False, combinations(range(6), r)),
        (True, product(range(6), repeat=r)),
    ):
        sums = [6 / r * own[list(rows)].sum() for rows in samples]
        found = small.deviation("SUM", "p", r, 0, replacement)
        # the divisor of a sample's variance, where draws are independent
        assert found * ((5 / 6) ** 0.5 if replacement else 1) == pytest.approx(np.std(sums))


@pytest.mark.parametrize("way", ["default", "plain", "replaced"])
def test_errors_of_trials_are_as_spread_as_the_population_says(window: Window, way: str) -> None:
    found = judged(window, WAYS[way], 240, 600)
    assert len(found) == len(ASKED) * len(window.holds)
    for cell, one in found.items():
        assert one["rmse"] == pytest.approx(one["expected"], rel=0.2), cell
        assert abs(one["z"]) < 4.5, cell
        assert one["coverage"] > 0.95
        assert one["mae"] <= one["rmse"] <= one["observed"]


def test_a_control_variate_leaves_less_variance_where_a_predicate_follows_the_measure(
    window: Window,
) -> None:
    plain = judged(window, WAYS["plain"], 600, 300)
    leaning = judged(window, WAYS["control"], 600, 300)
    assert not any(game == "COUNT" for game, _ in leaning)
    name = next(name for name in window.holds if name.startswith("price >"))
    assert leaning["AVG", name]["rmse"] < 0.7 * plain["AVG", name]["rmse"]


def test_trials_are_the_same_in_blocks_of_any_size(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = judged(window, WAYS["default"], 100, 7)
    monkeypatch.setattr("evaluation.rq4.trials.BLOCK", 300)
    assert judged(window, WAYS["default"], 100, 7) == whole


def test_nothing_is_left_of_the_error_when_every_row_that_counts_is_taken_whole() -> None:
    value = np.arange(1000.0)
    high = Window(value, {"y > 989": value > 989}, np.zeros(1000, np.int64))
    one = judged(high, WAYS["default"], 160, 5)["SUM", "y > 989"]
    assert one["held"] == 200 and one["mae"] < 1e-9 and one["z"] == 0.0


# Strata


def test_the_size_of_a_stratum_is_the_largest_that_the_budget_allows() -> None:
    counts = [2, 12, 40, 9_000]
    for budget in (8, 50, 54, 100, 1_000):
        size = size_for(counts, budget)
        assert np.minimum(counts, size).sum() <= budget < np.minimum(counts, size + 1).sum()


def test_strata_are_beside_a_uniform_sample_of_as_many_rows() -> None:
    name, holds = aligned(events(), SUBJECT)
    window = Window.of_events(events(), SUBJECT, **{name: holds})
    rows: Any = beside_uniform(window, name, 15, 400, np.random.default_rng(3))
    found = {one["game"]: one for one in rows}
    assert {one["rows"] for one in found.values()} == {60}
    inside, n = int(holds.sum()), len(holds)
    expected = comb(n - inside, 60) / comb(n, 60)
    assert found["AVG"]["uniform_empty"] == pytest.approx(expected, abs=0.08), name
    assert found["AVG"]["stratified_empty"] < expected / 2
    assert found["COUNT"]["stratified_mae"] < found["COUNT"]["uniform_mae"]


def test_a_stratum_with_no_more_rows_than_are_drawn_is_exact() -> None:
    stratum = (np.arange(50) >= 47).astype(np.int64)
    few = Window(np.arange(50.0), {"few": stratum == 1}, stratum)
    rows: Any = beside_uniform(few, "few", 3, 50, np.random.default_rng(0))
    assert all(one["stratified_mae"] < 1e-9 and one["stratified_empty"] == 0 for one in rows)


def test_the_uniform_sample_has_the_error_that_all_samples_have() -> None:
    small = Window(SIX, {"p": SOME}, np.zeros(6, np.int64))
    rows: Any = beside_uniform(small, "p", 2, 20_000, np.random.default_rng(0))
    one = next(row for row in rows if row["game"] == "SUM")
    own = np.where(SOME, SIX, 0.0)
    off = [abs(3 * own[list(rows)].sum() - own.sum()) for rows in combinations(range(6), 2)]
    assert one["uniform_mae"] == pytest.approx(np.mean(off), rel=0.02)
    assert one["stratified_mae"] == pytest.approx(np.mean(off), rel=0.02)


# Samplers


def test_lazy_and_eager_and_a_plain_sort_draw_the_same_rows() -> None:
    for rows in (300, 1_000, 2_500):
        refuse_another_sample(40, rows, 1_000)


def test_another_sample_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.rq4.samplers.mix", lambda *given: given[-1].fill(0.5))
    with pytest.raises(AssertionError, match="disagree"):
        refuse_another_sample(40, 2_500, 1_000)


@pytest.mark.parametrize("kept", [CountWindow(800), TimeWindow(800)])
def test_a_sampler_is_fed_the_newest_rows_alone(kept: CountWindow | TimeWindow) -> None:
    table = open_table({"y": np.arange(1_000.0)}, "t").read(["y"])
    *_, sample = fed(table, "y", Sampling(size=30), kept, 2_000, 100)
    drawing = sample.drawn(1)
    assert drawing.population.sum() + drawing.whole == 800
    assert drawing.value.min() >= 200


def test_every_sampler_is_timed_over_the_rows_that_it_is_given() -> None:
    rows: Any = ingest(bench([]), n=4_000, r=50)["rq4_ingest"]
    assert len({row["contender"] for row in rows}) == len(rows) == 8
    assert all(len(row["ns"].samples) == 2 and row["ns"].best > 0 for row in rows)


def test_a_larger_sample_holds_more_and_needs_more() -> None:
    told: list[float] = []
    rows: Any = held(bench(told), windows=(10_000,), sizes=(500, 4_000))["rq4_bytes"]
    assert rows[0]["needed"] == pytest.approx(500 * (1 + np.log(20)))
    assert rows[0]["bytes"] < rows[1]["bytes"]
    assert all(row["bytes"] > 8 * row["needed"] for row in rows) and told == [1.0]


def test_the_engines_own_samples_are_as_good_as_random_rows() -> None:
    told: list[float] = []
    rows: Any = own(bench(told), n=4_000, times=40)["rq4_engine"]
    assert {(row["n"], row["r"]) for row in rows} == {(4_000, 40), (4_000, 200)}
    for row in rows:
        assert abs(row["z"]) < 4.5 and row["coverage"] > 0.9
        assert row["rmse"] == pytest.approx(row["expected"], rel=0.6)
    assert told == sorted(told) and told[-1] == 1.0


def test_other_answers_than_a_scan_gives_are_refused(window: Window) -> None:
    wrong = Window(window.value + 1.0, window.holds, window.stratum)
    with pytest.raises(AssertionError, match="by a scan"):
        refuse_other_answers(events(), SUBJECT, wrong)
