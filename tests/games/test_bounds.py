"""Error bounds: the kernel against the textbook, and cases with a certain answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evaluation.baselines.estimators import paper_bound
from ids.errors import ArgumentError
from ids.games import GAMES, Drawn, Estimates, Moments, Parts, Whole, coefficients, estimate
from ids.kernels.error_bound import hull, logarithm
from tests.games import textbook_estimate as textbook
from tests.games.estimated_windows import Given, Window, moments_of, truth
from tests.games.estimated_windows import given as samples_of
from tests.oracles.moments import repeated

values = st.one_of(st.none(), st.integers(-40, 40).map(lambda n: n / 4), st.just(900.0))


@st.composite
def sampled(draw: st.DrawFn) -> tuple[Window, Given, bool]:
    """Draw a window with some rows known exactly, and the others in strata with rows drawn."""
    size = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    pool = draw(st.lists(values, min_size=1, max_size=6))
    window = Window(
        [pool[i] for i in rng.integers(0, len(pool), size)], (rng.random(size) < 0.6).tolist()
    )
    strata = draw(st.integers(1, 3))
    place = rng.integers(0 if draw(st.booleans()) else 1, strata + 1, size)
    parts = [np.flatnonzero(place == k).tolist() for k in range(1, strata + 1)]
    replacement = draw(st.booleans())
    drawn = []
    for rows in parts:
        r = draw(st.integers(0, len(rows) if not replacement else 2 * len(rows)))
        drawn.append(rng.choice(rows, r, replace=replacement).tolist() if rows else [])
    whole = np.flatnonzero(place == 0).tolist()
    return window, samples_of(window, [drawn], parts, whole), replacement


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("bound", ["bernstein", "hoeffding"])
@given(case=sampled(), confidence=st.floats(0.01, 0.999))
@settings(max_examples=60)
def test_an_estimate_is_that_of_the_textbook(
    name: str, bound: str, case: tuple[Window, Given, bool], confidence: float
) -> None:
    window, rows, replacement = case
    moments = moments_of(window)
    found = estimate(
        GAMES[name], moments, *rows, confidence=confidence, bound=bound, replacement=replacement
    )
    expected = textbook.estimate(GAMES[name], moments, rows, 1 - confidence, (bound, replacement))
    size = 1e-9 * (1.0 + expected[1] + abs(expected[0]))
    assert found.value[0] == pytest.approx(expected[0], abs=size)
    assert found.error[0] == pytest.approx(expected[1], rel=1e-7, abs=size)
    assert found.standard_error[0] == pytest.approx(expected[2], rel=1e-7, abs=size)
    assert found.share[0] + found.lift[0] == pytest.approx(found.value[0], abs=size)


def one(r: int, population: int, **options: Any) -> Estimates:
    """Estimate COUNT for a predicate that holds on half of r rows drawn."""
    moments = Moments.of(population, 0.0, 0.0, [population])
    parts = Parts(np.zeros(1, np.int64), np.array([population]), np.zeros(1), np.zeros(1))
    drawn = Drawn(np.array([0, r]), np.full(r, np.nan), np.arange(r) % 2 == 0)
    return estimate(GAMES["COUNT"], moments, parts, drawn, Whole.none(), **options)


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("r", [2, 50, 5_000, 90_000])
def test_large_samples_have_the_bounds_of_the_textbook(r: int, replacement: bool) -> None:
    population, delta, s = 100_000, 0.05, float(np.std(np.arange(r) % 2, ddof=1))
    options = {"confidence": 0.95, "replacement": replacement}
    hoeffding = population * textbook.hoeffding(1.0, r, population, delta, replacement)
    bernstein = population * textbook.bernstein(s, 1.0, r, population, delta, replacement)
    sure = population * 0.5 * (1.0 if replacement else 1 - r / population)
    found = one(r, population, bound="hoeffding", **options)
    assert found.error[0] == pytest.approx(min(hoeffding, sure), rel=1e-12)
    found = one(r, population, **options)
    assert found.error[0] == pytest.approx(min(bernstein if r > 50 else hoeffding, sure), rel=1e-9)


def test_the_finite_population_is_not_forgotten() -> None:
    few, many = one(5_000, 10_000, confidence=0.95), one(5_000, 10**9, confidence=0.95)
    assert few.error[0] / 10_000 < 0.9 * many.error[0] / 10**9
    again = [one(5_000, n, confidence=0.95, replacement=True) for n in (10_000, 10**9)]
    assert again[0].error[0] / 10_000 == pytest.approx(again[1].error[0] / 10**9)


@given(
    coefficient=st.lists(st.integers(-9, 9).map(float), min_size=1, max_size=7),
    left=st.floats(-5, 5),
    width=st.floats(0, 5),
)
@example(coefficient=[0.0, 0.0, -1.0, 0.0, 1.0], left=-1.0, width=2.0)
def test_the_range_of_a_polynomial_is_found(
    coefficient: list[float], left: float, width: float
) -> None:
    right = left + width
    low, high = hull(np.array(coefficient), left, right, 0.0, 0.0)
    grid = np.linspace(left, right, 20_001)
    taken = np.polynomial.polynomial.polyval(grid, coefficient)
    slack = 1e-12 * (1.0 + float(np.abs(taken).max()))
    assert low <= min(0.0, taken.min()) + slack
    assert high >= max(0.0, taken.max()) - slack
    # between two points of the grid the polynomial rises by at most ``step``
    steepest = float(np.abs(np.polynomial.polynomial.polyval(
        np.array([10.0]), np.abs(np.polynomial.polynomial.polyder(coefficient)))[0]))  # fmt: skip
    step = width / 20_000 * steepest
    assert low >= min(0.0, taken.min()) - step - slack
    assert high <= max(0.0, taken.max()) + step + slack


@pytest.mark.parametrize("name", GAMES)
@given(ys=st.lists(values, min_size=1, max_size=12), data=st.data())
@settings(max_examples=40)
def test_what_is_wholly_drawn_or_wholly_taken_is_exact(
    name: str, ys: list[float | None], data: st.DataObject
) -> None:
    window = Window(ys, [data.draw(st.booleans()) for _ in ys])
    rows = data.draw(st.permutations(range(len(ys))))
    cut = data.draw(st.integers(0, len(ys)))
    parts = samples_of(window, [[rows[cut:]]], [rows[cut:]], rows[:cut])
    for control in (False, True):
        found = estimate(
            GAMES[name], moments_of(window), *parts, confidence=0.95, control_variate=control
        )
        exact = truth(GAMES[name], window)
        scale = 1e-11 * (1.0 + float(np.abs(window.player_values or [0.0]).max()) ** 4)
        assert found.value[0] == pytest.approx(float(exact.value), rel=1e-11, abs=scale)
        assert (found.error[0], found.standard_error[0]) == (0.0, 0.0)


def test_a_part_with_no_row_drawn_may_be_all_it_could_hold() -> None:
    window = Window([1.0, 4.0, -3.0], [True] * 3)
    found = estimate(
        GAMES["SUM"], moments_of(window), *samples_of(window, [[[]]], [range(3)]), confidence=0.9
    )
    assert (found.value[0], found.error[0], found.standard_error[0]) == (0.0, 12.0, 12.0)


def test_many_windows_at_once_are_the_windows_one_by_one() -> None:
    rng = np.random.default_rng(3)
    window = Window(rng.lognormal(0, 2, 40).tolist(), (rng.random(40) < 0.4).tolist())
    strata = [range(25), range(25, 38)]
    draws = [[rng.choice(rows, 9, replace=False).tolist() for rows in strata] for _ in range(7)]
    moments = moments_of(window)
    together = estimate(
        GAMES["AVG"], repeated(moments, 7), *samples_of(window, draws, strata, (38, 39)),
        confidence=0.9,
    )  # fmt: skip
    for e, drawn in enumerate(draws):
        alone = estimate(
            GAMES["AVG"], moments, *samples_of(window, [drawn], strata, (38, 39)), confidence=0.9
        )
        assert [float(x[0]) for x in alone] == [float(x[e]) for x in together]


def test_a_control_variate_is_left_out_where_there_are_strata_or_no_values() -> None:
    window = Window([float(y) for y in range(20)], [True, False] * 10)
    halves = [range(10), range(10, 20)]
    divided = samples_of(window, [[list(range(6)), list(range(10, 16))]], halves)
    whole = samples_of(window, [[list(range(12))]], [range(20)])
    single = samples_of(window, [[list(range(6))]], halves[:1])  # without the other stratum
    for name, rows in (("AVG", divided), ("AVG", single), ("COUNT", whole)):
        both = [
            estimate(GAMES[name], moments_of(window), *rows, confidence=0.9, control_variate=c)
            for c in (False, True)
        ]
        assert both[0] == both[1]


def test_a_control_variate_knows_what_follows_the_values() -> None:
    rng = np.random.default_rng(5)
    window = Window(rng.normal(50, 9, 4000).tolist(), [True] * 4000)
    rows = samples_of(window, [[rng.choice(4000, 800, replace=False).tolist()]], [range(4000)])
    moments, exact = moments_of(window), float(truth(GAMES["SUM"], window).value)
    found = estimate(GAMES["SUM"], moments, *rows, confidence=0.95, control_variate=True)
    assert found.value[0] == pytest.approx(exact, rel=1e-12)
    assert found.standard_error[0] < 1e-6 * exact
    assert estimate(GAMES["SUM"], moments, *rows, confidence=0.95).standard_error[0] > 1e-3 * exact


@pytest.mark.parametrize("confidence", [0.0, 1.0, 2.0, -0.5, float("nan")])
def test_a_confidence_is_between_0_and_1(confidence: float) -> None:
    with pytest.raises(ArgumentError, match=r"a confidence of .*; choose a number between 0 and 1"):
        one(10, 100, confidence=confidence)


def test_a_bound_is_a_known_one() -> None:
    with pytest.raises(ArgumentError, match="unknown bound 'chernoff'; choose bernstein or"):
        one(10, 100, confidence=0.9, bound="chernoff")


def test_an_empty_window_attributes_nothing() -> None:
    nothing = Window([], [])
    for game in GAMES.values():
        rows = samples_of(nothing, [[[]]], [[]])
        found = estimate(game, moments_of(nothing), *rows, confidence=0.9, control_variate=True)
        assert [float(x[0]) for x in found] == [0.0] * 5


def test_the_papers_bound_is_its_equation_5() -> None:
    ys = np.array([1.0, -7.0, 3.0, 3.0, 2.5] * 40)
    n, total, squares = len(ys), float(ys.sum()), float(ys @ ys)
    a_m, a_A, a_B = coefficients(GAMES["VAR_POP"], n, total, squares)
    expected = (abs(a_m) + abs(a_A) * 7 + abs(a_B) * 49) * n
    expected *= np.sqrt(2 * (1 - 49 / n) * np.log(6 / 0.1) / 50)
    options: dict[str, Any] = {"largest": 7.0, "rows": 50, "confidence": 0.9}
    assert paper_bound(GAMES["VAR_POP"], n, total, squares, **options) == pytest.approx(expected)
    a_m, a_A, _ = coefficients(GAMES["AVG"], n, total)
    expected = (abs(a_A) * 7 + abs(a_m)) * n * np.sqrt(2 * np.log(4 / 0.1) / 50)
    found = paper_bound(GAMES["AVG"], n, total, squares, **options, replacement=True)
    assert found == pytest.approx(expected)


def test_logarithms_are_right_to_the_last_bits() -> None:
    for x in [1.0, 2.0, 10 / 0.05, 4 / 0.001, 1e9, 1e300, *np.geomspace(2, 1e6, 500).tolist()]:
        assert logarithm(x) == pytest.approx(np.log(x), rel=4e-16, abs=0.0)
