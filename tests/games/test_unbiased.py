"""Estimates are unbiased: their mean over all possible samples is the exact attribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from ids.games import GAMES, Game, estimate
from tests.games.estimated_windows import Given, Window, given, moments_of, truth
from tests.oracles import shapley
from tests.oracles.moments import repeated

NULL = None
# NULLs, ties, an outlier, members and non-members
ROWS = Window([1.0, NULL, -2.5, 40.0, 1.0, 3.0, NULL, 7.25], [True, True, False, True] * 2)
NARROW = Window([5.0, 6.5, 6.0, 9.0, 5.5, 7.0, 8.0], [False, True, True, False, True, False, True])


def of_size(window: Window, size: int) -> Window:
    return Window(window.value[:size], window.holds[:size])


def means(game: Game, window: Window, samples: Given, **options: Any) -> list[float]:
    """Return each field's mean over the samples."""
    moments = repeated(moments_of(window), len(samples.whole.starts) - 1)
    found = estimate(game, moments, *samples, confidence=0.9, **options)
    return [float(np.mean(field)) for field in found]


def agrees(game: Game, window: Window, samples: Given, **options: Any) -> bool:
    found, exact = means(game, window, samples, **options), truth(game, window)
    scale = 1.0 + sum(abs(float(x)) for x in exact)
    return all(abs(a - float(b)) < 1e-11 * scale for a, b in zip(found, exact, strict=False))


def halves(rows: Sequence[int], r: int) -> Iterator[tuple[int, ...]]:
    """Yield every sample with every choice of its first half; order within a half is ignored."""
    for chosen in combinations(rows, r):
        for first in combinations(chosen, r // 2):
            yield (*first, *(i for i in chosen if i not in first))


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_without_replacement(name: str, size: int) -> None:
    window, rows = of_size(ROWS, size), range(size)
    for r in range(1, size + 1):
        samples = [[chosen] for chosen in combinations(rows, r)]
        assert agrees(GAMES[name], window, given(window, samples, [rows])), r


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize(("size", "r"), [(1, 3), (2, 4), (3, 3), (5, 4), (8, 2), (8, 3)])
def test_with_replacement(name: str, size: int, r: int) -> None:
    window, rows = of_size(ROWS, size), range(size)
    samples = [[drawn] for drawn in product(rows, repeat=r)]
    assert agrees(GAMES[name], window, given(window, samples, [rows]), replacement=True)


@pytest.mark.parametrize("name", GAMES)
def test_with_extremes_taken_whole(name: str) -> None:
    whole, rest = (2, 3), (0, 1, 4, 5, 6, 7)
    for r in range(1, len(rest) + 1):
        samples = [[chosen] for chosen in combinations(rest, r)]
        assert agrees(GAMES[name], ROWS, given(ROWS, samples, [rest], whole)), r


@pytest.mark.parametrize("name", GAMES)
def test_with_strata(name: str) -> None:
    strata, whole = [(0, 1, 4), (5,), (2, 6, 7), ()], (3,)
    for sizes in product((1, 2, 3), (1,), (1, 2), (0,)):
        choices = [combinations(rows, r) for rows, r in zip(strata, sizes, strict=True)]
        samples = list(product(*choices))
        assert agrees(GAMES[name], ROWS, given(ROWS, samples, strata, whole)), sizes


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("window", [ROWS, NARROW])
@pytest.mark.parametrize("r", [4, 5, 6])
def test_with_a_control_variate(name: str, window: Window, r: int) -> None:
    rows = range(len(window.value))
    samples = given(window, [[drawn] for drawn in halves(rows, r)], [rows])
    assert agrees(GAMES[name], window, samples, control_variate=True)


@pytest.mark.parametrize("name", GAMES)
def test_with_a_control_variate_and_extremes(name: str) -> None:
    whole, rest = (2, 3), (0, 1, 4, 5, 6, 7)
    samples = given(ROWS, [[drawn] for drawn in halves(rest, 4)], [rest], whole)
    assert agrees(GAMES[name], ROWS, samples, control_variate=True)


@pytest.mark.parametrize("name", GAMES)
def test_with_a_control_variate_and_replacement(name: str) -> None:
    window, rows = of_size(ROWS, 5), range(5)
    samples = given(window, [[drawn] for drawn in product(rows, repeat=4)], [rows])
    options = {"control_variate": True, "replacement": True}
    assert agrees(GAMES[name], window, samples, **options)


@pytest.mark.parametrize("name", GAMES)
def test_the_attribution_meant_is_that_of_the_definition(name: str) -> None:
    members = [i for i, y in enumerate(NARROW.player_values) if NARROW.holds[i]]
    exact = shapley.attribution(name, NARROW.player_values, members)
    assert float(truth(GAMES[name], NARROW).value) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("name", ["SUM", "COUNT", "AVG", "VAR_POP", "VAR_SAMP"])
def test_standard_errors_squared_are_the_variance_of_the_estimates(name: str) -> None:
    rows = range(8)
    for replacement in (False, True):
        draws = product(rows, repeat=3) if replacement else combinations(rows, 3)
        samples = given(ROWS, [[drawn] for drawn in draws], [rows])
        moments = repeated(moments_of(ROWS), len(samples.whole.starts) - 1)
        found = estimate(GAMES[name], moments, *samples, confidence=0.9, replacement=replacement)
        assert np.mean(found.standard_error**2) == pytest.approx(np.var(found.value), rel=1e-9)


@pytest.mark.parametrize("name", GAMES)
def test_a_population_off_by_one_is_seen(name: str) -> None:
    samples = [[chosen] for chosen in combinations(range(8), 4)]
    assert not agrees(GAMES[name], ROWS, given(ROWS, samples, [range(8)], population=1))


def test_a_control_variate_on_rows_in_the_order_of_their_values_is_seen() -> None:
    # the halves of a sample must be random
    samples = [[sorted(drawn, key=lambda i: NARROW.value[i] or 0.0)] for drawn in
               combinations(range(7), 4)]  # fmt: skip
    found = given(NARROW, samples, [range(7)])
    assert not agrees(GAMES["AVG"], NARROW, found, control_variate=True)
