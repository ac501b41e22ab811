from __future__ import annotations

from fractions import Fraction
from math import nextafter

import numpy as np
import pytest

from evaluation.recount import CLOSED, Recount, slope
from evaluation.rq1 import regression
from evaluation.rq1.accuracy import Worst, relative
from evaluation.rq1.drift import WINDOW, drift, moments, trace
from evaluation.rq1.enumeration import GAMES, shapley_values, worth
from evaluation.rq1.regression import KINDS, compare, windows
from tests.oracles import shapley

FINE = Fraction(1, 10**100)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 6])
def test_the_enumeration_is_that_of_the_test_oracle(game: str, n: int) -> None:
    for draw in KINDS.values():
        ys = draw(np.random.default_rng(n), n).tolist()
        assert shapley_values(game, ys) == shapley.shapley_values(game, ys)


@pytest.mark.parametrize("game", GAMES)
def test_enumerated_values_sum_to_the_worth_of_all(game: str) -> None:
    for n in (0, 1, 2, 5):
        ys = np.random.default_rng(n).normal(3.0, 1.0, n).tolist()
        assert sum(shapley_values(game, ys), Fraction(0)) == worth(game, ys)


@pytest.mark.parametrize("game", CLOSED)
def test_a_recount_is_the_enumeration_of_its_window(game: str) -> None:
    rng = np.random.default_rng(5)
    values, held = rng.lognormal(3.0, 0.5, 20), rng.random(20) < 0.4
    recount = Recount(values, {"p": held})
    for first, last in ((0, 0), (4, 5), (4, 6), (3, 10)):
        phi = shapley_values(game, values[first:last].tolist())
        exact = sum((p for p, h in zip(phi, held[first:last], strict=True) if h), Fraction(0))
        assert abs(recount.attribution(game, "p", first, last) - exact) < FINE
        whole = worth(game, values[first:last].tolist())
        assert recount.aggregate(game, first, last) == whole


@pytest.mark.parametrize("game", CLOSED)
@pytest.mark.parametrize("n", [1, 2, 3, 50, 400])
def test_slopes_have_hundreds_of_bits(game: str, n: int) -> None:
    assert abs(slope(game, n) - shapley.lift_factor(game, n)) < FINE


def test_an_error_is_relative_to_the_exact_value_or_where_that_is_zero_to_the_aggregate() -> None:
    assert relative(2.5, Fraction(2), Fraction(100)) == 0.25
    assert relative(0.5, Fraction(0), Fraction(-2)) == 0.25
    assert relative(0.5, Fraction(0), Fraction(0)) == 0.5
    assert relative(0.0, Fraction(0), Fraction(0)) == 0.0


def test_the_worst_is_kept_of_each_measure() -> None:
    worst = Worst()
    worst.see(1.0, Fraction(1), Fraction(9), 1.0)
    worst.see(nextafter(1.0, 2.0), Fraction(1), Fraction(9), 2.0)
    worst.see(1000.5, Fraction(1000), Fraction(9000), 1000.0)
    assert worst.cases == 3
    assert worst.absolute == 0.5
    assert worst.relative == 5e-4
    assert worst.units == pytest.approx(5e-4 * 2.0**53)


def test_every_kind_of_values_meets_every_size_of_window_and_of_predicate() -> None:
    drawn = list(windows(np.random.default_rng(0), 1))
    assert {(w.kind, len(w.values)) for w in drawn} == {(k, n) for k in KINDS for n in range(13)}
    assert sum(len(w.values) + 1 for w in windows(np.random.default_rng(0), 5)) >= 3_186


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_the_engine_is_within_a_few_roundings_of_the_enumeration(n: int) -> None:
    for window in windows(np.random.default_rng(1), 1):
        if len(window.values) == n:
            worst = {(game, window.kind): Worst() for game in GAMES}
            compare(window, worst)
            assert all(worst[game, window.kind].cases == n + 1 for game in GAMES)
            assert all(worst[game, window.kind].units < 8 for game in CLOSED)


def test_an_answer_that_is_off_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    window = next(w for w in windows(np.random.default_rng(1), 1) if len(w.values) == 4)
    given = regression.answers(window)
    given["AVG", 2] = given["AVG", 2]._replace(value=given["AVG", 2].value * (1 + 1e-12))
    monkeypatch.setattr(regression, "answers", lambda _: given)
    worst = {(game, window.kind): Worst() for game in GAMES}
    compare(window, worst)
    assert worst["AVG", window.kind].relative > 9e-13
    assert worst["VAR_POP", window.kind].relative < 9e-13


@pytest.mark.parametrize("slides", [30_000, 1_000_000])
def test_drift_is_asked_about_when_no_spike_is_inside(slides: int) -> None:
    asked = moments(slides)
    assert asked[-1] == slides
    assert asked[0] < 20
    for at in asked[:-1]:
        assert not any(row % 5_000 == 0 for row in range(at, at + WINDOW))


def test_a_trace_ends_where_the_drift_is() -> None:
    along = trace("spikes", 2_000, [100, 2_000])
    assert {state: errors[2_000] for state, errors in along.items()} == drift("spikes", 2_000)
    assert along["IDS"][100][1] <= 2.0**-52 < along["doubles, centred"][100][1]
