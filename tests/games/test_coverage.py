"""Error bounds hold at least as often as the confidence says, on difficult populations."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ids.games import GAMES, Drawn, Estimates, Game, Parts, Whole, estimate
from tests.games.estimated_windows import Window, moments_of, truth
from tests.oracles.moments import repeated

TRIALS = 2_000
SIZE = 400


def heavy(seed: int) -> Window:
    """Return Pareto values of both signs, and a predicate that prefers large values."""
    rng = np.random.default_rng(seed)
    ys = (rng.pareto(1.1, SIZE) + 0.1) * np.where(rng.random(SIZE) < 0.3, -1.0, 1.0)
    ys[0] = 40.0 * float(np.abs(ys).max())
    return Window(ys.tolist(), (rng.random(SIZE) < np.where(np.abs(ys) > 3, 0.7, 0.1)).tolist())


WINDOW = heavy(1)
VALUE, MEMBER = np.array(WINDOW.value, np.float64), np.array(WINDOW.holds)
MOMENTS = repeated(moments_of(WINDOW), TRIALS)


@cache
def exact(game: Game) -> float:
    return float(truth(game, WINDOW).value)


@cache
def draws(r: int, extremes: int, replacement: bool) -> npt.NDArray[np.int64]:
    """Draw ``r`` rows per trial; every game and every bound is tried on the same rows."""
    rng = np.random.default_rng(7)
    rest = np.argsort(VALUE)[extremes : SIZE - extremes]
    if replacement:
        return rng.choice(rest, (TRIALS, r))
    return rest[np.argsort(rng.random((TRIALS, len(rest))), axis=1)[:, :r]]


def trials(
    game: Game, r: int, extremes: int = 0, *, own_range: bool = False, **options: Any
) -> Estimates:
    """Return many estimates, each from a separate sample; ``own_range`` is a deliberate mistake."""
    order = np.argsort(VALUE)
    whole = np.concatenate([order[:extremes], order[SIZE - extremes :]])
    rest = order[extremes : SIZE - extremes]
    rows = draws(r, extremes, options.get("replacement", False))
    low, high = np.full(TRIALS, VALUE[rest].min()), np.full(TRIALS, VALUE[rest].max())
    if own_range:
        low, high = VALUE[rows].min(axis=1), VALUE[rows].max(axis=1)
    parts = Parts(np.arange(TRIALS), np.full(TRIALS, len(rest)), low, high)
    drawn = Drawn(np.arange(TRIALS + 1) * r, VALUE[rows].ravel(), MEMBER[rows].ravel())
    taken = np.tile(whole, TRIALS)
    held = Whole(np.arange(TRIALS + 1) * len(whole), VALUE[taken], MEMBER[taken])
    return estimate(game, MOMENTS, parts, drawn, held, **options)


def coverage(game: Game, found: Estimates) -> float:
    apart = np.abs(found.value - exact(game))
    return float(np.mean(apart <= found.error + 1e-9 * abs(exact(game))))


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("bound", ["bernstein", "hoeffding"])
@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("control", [False, True])
def test_a_bound_holds_as_often_as_it_says(
    name: str, bound: str, replacement: bool, control: bool
) -> None:
    for r, extremes in ((5, 0), (40, 5), (300, 20)):
        for confidence in (0.5, 0.95):
            found = trials(
                GAMES[name], r, 0 if replacement else extremes, confidence=confidence,
                bound=bound, replacement=replacement, control_variate=control,
            )  # fmt: skip
            assert coverage(GAMES[name], found) >= confidence


@pytest.mark.parametrize("name", ["SUM", "AVG", "VAR_POP"])
def test_a_range_seen_in_the_sample_is_no_bound(name: str) -> None:
    found = trials(GAMES[name], 30, own_range=True, confidence=0.95)
    assert coverage(GAMES[name], found) < 0.5


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("control", [False, True])
def test_the_mean_of_many_estimates_is_the_attribution(name: str, control: bool) -> None:
    found = trials(GAMES[name], 60, 10, confidence=0.95, control_variate=control)
    apart = float(np.mean(found.value)) - exact(GAMES[name])
    # five standard errors of the mean: exceeded by chance once in two million runs
    assert abs(apart) <= 5 * float(np.std(found.value)) / np.sqrt(TRIALS)


@pytest.mark.parametrize("name", GAMES)
def test_a_bound_over_strata_holds_as_often_as_it_says(name: str) -> None:
    rng = np.random.default_rng(13)
    strata = [np.arange(k, SIZE, 3) for k in range(3)]
    r = 12
    drawn = np.concatenate(
        [rows[np.argsort(rng.random((TRIALS, len(rows))), axis=1)[:, :r]] for rows in strata],
        axis=1,
    ).ravel()
    parts = Parts(
        np.repeat(np.arange(TRIALS), 3),
        np.tile([len(rows) for rows in strata], TRIALS),
        np.tile([VALUE[rows].min() for rows in strata], TRIALS),
        np.tile([VALUE[rows].max() for rows in strata], TRIALS),
    )
    rows = Drawn(np.arange(3 * TRIALS + 1) * r, VALUE[drawn], MEMBER[drawn])
    for confidence in (0.5, 0.95):
        found = estimate(
            GAMES[name], MOMENTS, parts, rows, Whole.none(TRIALS), confidence=confidence
        )
        assert coverage(GAMES[name], found) >= confidence
        apart = abs(float(np.mean(found.value)) - exact(GAMES[name]))
        assert apart <= 5 * float(np.std(found.value)) / np.sqrt(TRIALS)
