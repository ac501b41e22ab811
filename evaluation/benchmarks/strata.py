"""A sample of each pick-up place beside a uniform one of as many rows, for the rarest predicate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evaluation.rq4.strata import beside_uniform
from evaluation.rq4.window import Window

__all__ = ["against_uniform"]

TRIALS = 1_000
SIZES = (1, 4, 16)  # rows a stratum


def against_uniform(
    window: Window, games: Sequence[str], rng: np.random.Generator
) -> list[dict[str, Any]]:
    """For each number of rows a stratum, every game."""
    name, holds = list(window.holds.items())[-1]
    return [
        {
            "game": one.game,
            "predicate": name,
            "rows_a_stratum": one.size,
            "rows": one.rows,
            "strata": one.strata,
            "uniform_mae": one.uniform_mae,
            "stratified_mae": one.stratified_mae,
            "times_better": one.times_better,
        }
        for size in SIZES
        for one in beside_uniform(window, holds, games, size, TRIALS, rng)
    ]
