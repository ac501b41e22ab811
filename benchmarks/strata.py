"""A sample of each stratum beside a uniform one of as many rows, for a predicate that is rare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.fares import Window, repeated
from ids.estimates import Drawn, Estimates, Parts, Whole, estimate
from ids.games import GAMES

__all__ = ["against_uniform"]

TRIALS = 1_000
SIZES = (1, 4, 16)  # rows a stratum

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def against_uniform(
    window: Window, games: Sequence[str], rng: np.random.Generator
) -> list[dict[str, Any]]:
    """Strata by pick-up against a uniform sample of as many rows, for the rarest predicate."""
    name, holds = list(window.holds.items())[-1]
    order = np.argsort(window.place, kind="stable")
    counts = np.unique(window.place, return_counts=True)[1]
    strata = np.split(order, np.cumsum(counts)[:-1])
    low = np.array([window.value[rows].min() for rows in strata])
    high = np.array([window.value[rows].max() for rows in strata])
    found = []
    for r in SIZES:
        sizes = np.minimum(counts, r)
        total = int(sizes.sum())
        drawn = np.concatenate([
            rows[rng.choice(len(rows), size, replace=False)]
            for _ in range(TRIALS) for rows, size in zip(strata, sizes, strict=True)
        ])  # fmt: skip
        divided = _Divided(np.tile(sizes, TRIALS), np.tile(counts, TRIALS),
                           np.tile(low, TRIALS), np.tile(high, TRIALS))  # fmt: skip
        plain = np.concatenate(
            [rng.choice(len(window.value), total, replace=False) for _ in range(TRIALS)]
        )
        ends = (np.full(TRIALS, y) for y in (window.value.min(), window.value.max()))
        one = _Divided(np.full(TRIALS, total), np.full(TRIALS, len(window.value)), *ends)
        for game in games:
            exact = window.exact(game, holds)
            by_strata = divided.estimate(window, game, holds, drawn).value
            uniform = one.estimate(window, game, holds, plain).value
            maes = [float(np.mean(np.abs(each - exact))) for each in (uniform, by_strata)]
            found.append({
                "game": game, "predicate": name, "rows_a_stratum": r, "rows": total,
                "strata": len(strata), "uniform_mae": maes[0], "stratified_mae": maes[1],
                # a stratum with no more rows than are drawn is exact up to the last bits
                "times_better": maes[0] / maes[1] if maes[1] > 1e-9 * abs(exact) else None,
            })  # fmt: skip
    return found


class _Divided(NamedTuple):
    """How trials are divided into parts: rows drawn, rows stood for, least and largest value."""

    sizes: Integers
    population: Integers
    low: Floats
    high: Floats

    def estimate(
        self, window: Window, game: str, holds: npt.NDArray[np.bool_], rows: Integers
    ) -> Estimates:
        trial = np.arange(len(self.sizes)) // (len(self.sizes) // TRIALS)
        return estimate(
            GAMES[game], repeated(window.moments, TRIALS),
            Parts(trial, self.population, self.low, self.high),
            Drawn(np.concatenate([[0], np.cumsum(self.sizes)]), window.value[rows], holds[rows]),
            Whole.none(TRIALS), confidence=0.95,
        )  # fmt: skip
