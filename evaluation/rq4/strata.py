"""A sample of each stratum beside a uniform one of as many rows, for a predicate that is rare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from evaluation.rq4.window import Window
from ids.estimates import Drawn, Parts, Whole, estimate
from ids.games import GAMES
from tests.oracles.moments import repeated

__all__ = ["Beside", "beside_uniform", "size_for"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


class Beside(NamedTuple):
    """Both samples, for one game.

    rows          as many of either
    *_mae         mean of |error|
    *_empty       the share of trials whose sample holds no row of the predicate
    """

    game: str
    size: int
    rows: int
    strata: int
    trials: int
    exact: float
    uniform_mae: float
    stratified_mae: float
    uniform_empty: float
    stratified_empty: float

    @property
    def times_better(self) -> float | None:
        """None where strata are exact: one with no more rows than are drawn, up to last bits."""
        if self.stratified_mae <= 1e-9 * abs(self.exact):
            return None
        return self.uniform_mae / self.stratified_mae


def size_for(counts: Integers, rows: int) -> int:
    """The largest size of each stratum's sample with which all have ``rows`` rows, or fewer.

    >>> size_for(np.array([2, 12, 5_000, 90_000]), 100)
    43
    """
    low, high = 1, int(counts.max())
    while low < high:
        middle = (low + high + 1) // 2
        if np.minimum(counts, middle).sum() <= rows:
            low = middle
        else:
            high = middle - 1
    return low


def beside_uniform(
    window: Window,
    holds: Booleans,
    games: Sequence[str],
    size: int,
    trials: int,
    rng: np.random.Generator,
) -> list[Beside]:
    """``size`` rows of each of the window's strata, against a uniform sample of as many in all."""
    order = np.argsort(window.stratum, kind="stable")
    counts = np.unique(window.stratum, return_counts=True)[1]
    strata = np.split(order, np.cumsum(counts)[:-1])
    sizes = np.minimum(counts, size)
    total = int(sizes.sum())
    drawn = np.concatenate([
        rows[rng.choice(len(rows), few, replace=False)]
        for _ in range(trials) for rows, few in zip(strata, sizes, strict=True)
    ])  # fmt: skip
    plain = np.concatenate(
        [rng.choice(len(window.value), total, replace=False) for _ in range(trials)]
    )
    low = np.array([window.value[rows].min() for rows in strata])
    high = np.array([window.value[rows].max() for rows in strata])
    divided = _Divided(np.tile(sizes, trials), np.tile(counts, trials),
                       np.tile(low, trials), np.tile(high, trials), trials)  # fmt: skip
    least, most = np.full(trials, window.value.min()), np.full(trials, window.value.max())
    sampled, inside = np.full(trials, total), np.full(trials, len(window.value))
    one = _Divided(sampled, inside, least, most, trials)
    empty = [
        float(np.mean(~holds[rows].reshape(trials, total).any(axis=1))) for rows in (plain, drawn)
    ]
    found = []
    for game in games:
        exact = window.exact(game, holds)
        off = [
            float(np.mean(np.abs(way.estimated(window, game, holds, rows) - exact)))
            for way, rows in ((one, plain), (divided, drawn))
        ]
        found.append(Beside(game, size, total, len(strata), trials, exact, *off, *empty))
    return found


class _Divided(NamedTuple):
    """How trials are divided into parts: rows drawn, rows stood for, least and largest value."""

    sizes: Integers
    population: Integers
    low: Floats
    high: Floats
    trials: int

    def estimated(self, window: Window, game: str, holds: Booleans, rows: Integers) -> Floats:
        trial = np.arange(len(self.sizes)) // (len(self.sizes) // self.trials)
        return estimate(
            GAMES[game], repeated(window.moments, self.trials),
            Parts(trial, self.population, self.low, self.high),
            Drawn(np.concatenate([[0], np.cumsum(self.sizes)]), window.value[rows], holds[rows]),
            Whole.none(self.trials), confidence=0.95,
        ).value  # fmt: skip
