"""The chapter on sampling: trials against exact values, strata, samplers, and what is shown."""

from __future__ import annotations

from itertools import combinations, product
from math import comb

import numpy as np
import pyarrow as pa
import pytest

import ids
from evaluation.rq4 import own_samples
from evaluation.rq4.conditions import LEAST, aligned, conditions, window_of
from evaluation.rq4.ingest import enter, refuse_another_sample
from evaluation.rq4.strata import beside_uniform, size_for
from evaluation.rq4.trials import GAMES_ASKED, Judged, Way, trials
from evaluation.rq4.window import Window
from evaluation.subject import Subject
from ids.model.sampling import Sampling
from ids.model.window import CountWindow, TimeWindow
from ids.source import open_table
from ids.state.sample import WindowSample

SUBJECT = Subject("shop", "price", ("city", "till"), None)


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


@pytest.fixture(scope="module")
def window() -> Window:
    return window_of(events(), SUBJECT)


def judged(window: Window, way: Way, r: int, times: int) -> dict[tuple[str, str], Judged]:
    found = trials(window, way, r, times, np.random.default_rng(1))
    return {(one.game, one.predicate): one for one in found}


# What is asked


def test_conditions_mean_to_the_engine_what_their_masks_say(window: Window) -> None:
    engine = ids.Engine(window=CountWindow(3_000), value="price")
    engine.ingest(events())
    for name, holds in window.holds.items():
        assert engine.attribute("COUNT", name).value == holds.sum() > 0, name
        for game in GAMES_ASKED:
            exact = window.exact(game, holds)
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
    value = np.array([1.0, 2.0, 4.0, 9.0, 3.0, 5.0])
    holds = np.array([True, False, True, False, False, True])
    small = Window.of(value, {"p": holds}, np.zeros(6, np.int64))
    own = np.where(holds, value, 0.0)
    for replacement, samples in (
        (False, combinations(range(6), r)),
        (True, product(range(6), repeat=r)),
    ):
        sums = [6 / r * own[list(rows)].sum() for rows in samples]
        found = small.deviation("SUM", "p", r, 0, replacement)
        # the divisor of a sample's variance, where draws are independent
        assert found * ((5 / 6) ** 0.5 if replacement else 1) == pytest.approx(np.std(sums))


@pytest.mark.parametrize("way", [Way("default"), Way("plain", extremes=False),
                                 Way("replaced", replacement=True, extremes=False)])  # fmt: skip
def test_errors_of_trials_are_as_spread_as_the_population_says(window: Window, way: Way) -> None:
    found = judged(window, way, 240, 600)
    assert len(found) == len(GAMES_ASKED) * len(window.holds)
    for (game, name), one in found.items():
        expected = window.deviation(game, name, 240, way.whole(game, 240), way.replacement)
        assert one.rmse == pytest.approx(expected, rel=0.2), (game, name)
        assert abs(one.z) < 4.5, (game, name)
        assert one.coverage > 0.95
        assert one.mae <= one.rmse <= one.observed


def test_a_control_variate_leaves_less_variance_where_a_predicate_follows_the_measure(
    window: Window,
) -> None:
    plain = judged(window, Way("plain", extremes=False), 600, 300)
    leaning = judged(window, Way("leaning", control_variate=True, extremes=False), 600, 300)
    assert not any(game == "COUNT" for game, _ in leaning)
    name = next(name for name in window.holds if name.startswith("price >"))
    assert leaning["AVG", name].rmse < 0.7 * plain["AVG", name].rmse


def test_trials_are_the_same_in_blocks_of_any_size(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = judged(window, Way("default"), 100, 7)
    monkeypatch.setattr("evaluation.rq4.trials.BLOCK", 300)
    assert judged(window, Way("default"), 100, 7) == whole


def test_nothing_is_left_of_the_error_when_every_row_that_counts_is_taken_whole() -> None:
    value = np.arange(1000.0)
    high = Window.of(value, {"y > 989": value > 989}, np.zeros(1000, np.int64))
    one = judged(high, Way("default"), 160, 5)["SUM", "y > 989"]
    assert one.held == 200 and one.mae < 1e-9 and one.slack is None and one.z == 0.0


def test_progress_ends_with_all_done(window: Window) -> None:
    told: list[float] = []
    list(trials(window, Way("default"), 100, 5, np.random.default_rng(0), told.append))
    assert told == sorted(told) and told[-1] == 1.0


# Strata


def test_the_size_of_a_stratum_is_the_largest_that_the_budget_allows() -> None:
    counts = np.array([2, 12, 40, 9_000])
    for budget in (8, 50, 54, 100, 1_000):
        size = size_for(counts, budget)
        assert np.minimum(counts, size).sum() <= budget < np.minimum(counts, size + 1).sum()


def test_strata_are_beside_a_uniform_sample_of_as_many_rows(window: Window) -> None:
    name, holds = aligned(events(), SUBJECT)
    found = {one.game: one for one in beside_uniform(window, holds, GAMES_ASKED, 15, 400,
                                                     np.random.default_rng(3))}  # fmt: skip
    assert {one.rows for one in found.values()} == {60}
    inside, n = int(holds.sum()), len(holds)
    expected = comb(n - inside, 60) / comb(n, 60)
    assert found["AVG"].uniform_empty == pytest.approx(expected, abs=0.08), name
    assert found["AVG"].stratified_empty < expected / 2
    assert found["COUNT"].stratified_mae < found["COUNT"].uniform_mae


def test_a_stratum_with_no_more_rows_than_are_drawn_is_exact() -> None:
    value = np.arange(50.0)
    stratum = (np.arange(50) >= 47).astype(np.int64)
    few = Window.of(value, {"few": stratum == 1}, stratum)
    (one,) = beside_uniform(few, stratum == 1, ["SUM"], 3, 50, np.random.default_rng(0))
    assert one.times_better is None and one.stratified_mae < 1e-9 and one.stratified_empty == 0


def test_the_uniform_sample_has_the_error_that_all_samples_have() -> None:
    value = np.array([1.0, 2.0, 4.0, 9.0, 3.0, 5.0])
    holds = np.array([True, False, True, False, False, True])
    small = Window.of(value, {"p": holds}, np.zeros(6, np.int64))
    (one,) = beside_uniform(small, holds, ["SUM"], 2, 20_000, np.random.default_rng(0))
    own = np.where(holds, value, 0.0)
    off = [abs(3 * own[list(rows)].sum() - own.sum()) for rows in combinations(range(6), 2)]
    assert one.uniform_mae == pytest.approx(np.mean(off), rel=0.02)
    assert one.stratified_mae == pytest.approx(np.mean(off), rel=0.02)


# Samplers


def test_lazy_and_eager_and_a_plain_sort_draw_the_same_rows() -> None:
    for rows in (300, 1_000, 2_500):
        refuse_another_sample(40, rows, 1_000)


def test_another_sample_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.rq4.ingest.mix", lambda *given: given[-1].fill(0.5))
    with pytest.raises(AssertionError, match="disagree"):
        refuse_another_sample(40, 2_500, 1_000)


@pytest.mark.parametrize("kept", [CountWindow(800), TimeWindow(800)])
def test_a_sampler_is_fed_the_newest_rows_alone(kept: CountWindow | TimeWindow) -> None:
    table = open_table({"y": np.arange(1_000.0)}, "t").read(["y"])
    sample = WindowSample({"y": table.columns["y"].kind}, 1, Sampling(size=30), kept)
    for first in range(0, 2_000, 100):
        enter(sample, table, "y", first, 100)
    drawing = sample.drawn(1)
    assert drawing.population.sum() + drawing.whole == 800
    assert drawing.value.min() >= 200


def test_the_engines_own_samples_are_as_good_as_random_rows() -> None:
    rows = own_samples.judged(events(4_000), SUBJECT, sizes=[100, 200], times=40)
    assert {row["n"] for row in rows} == {2_000}
    for row in rows:
        assert abs(row["z"]) < 4.5 and row["coverage"] > 0.9  # type: ignore[operator,arg-type]
        assert row["rmse"] == pytest.approx(row["expected"], rel=0.6)


def test_other_answers_than_a_scan_gives_are_refused(window: Window) -> None:
    wrong = Window.of(window.value + 1.0, window.holds, window.stratum)
    with pytest.raises(AssertionError, match="by a scan"):
        own_samples.refuse_other_answers(events(), SUBJECT, wrong)
