"""KernelSHAP (Lundberg and Lee 2017) on groups of rows, as plainly as it can be written.

Coalitions are drawn by the Shapley kernel, and a linear game that is worth the same as a whole is
fitted to them by least squares; its coefficients estimate the groups' Shapley values.
"""

from __future__ import annotations

import numpy as np

from evaluation.baselines.coalitions import Floats, GroupGame


def kernelshap(
    game: GroupGame, samples: int, rng: np.random.Generator, *, paired: bool = False
) -> Floats:
    """Estimated Shapley values of the groups, from the worth of so many coalitions.

    ``paired`` draws half as many and takes each with its complement, which costs no more and
    cancels much of the noise: of two players, all of it.
    """
    players = game.players
    drawn = _draw(players, samples // 2 if paired else samples, rng)
    if paired:
        drawn = np.concatenate([drawn, 1.0 - drawn])
    whole = float(game(np.ones((1, players)))[0])
    # the last player gets what the others leave of the whole: one unknown less, and Efficiency
    last = drawn[:, -1:]
    others = drawn[:, :-1] - last
    found = _fitted(others, game(drawn) - last[:, 0] * whole)
    return np.append(found, whole - found.sum())


def _fitted(given: Floats, wanted: Floats) -> Floats:
    """Least squares by the normal equations: many times as fast as by the matrix itself."""
    try:
        found: Floats = np.linalg.solve(given.T @ given, given.T @ wanted).astype(np.float64)
    except np.linalg.LinAlgError:  # fewer coalitions than players tell less than all
        found = np.linalg.lstsq(given, wanted, rcond=None)[0].astype(np.float64)
    return found


def _draw(players: int, samples: int, rng: np.random.Generator) -> Floats:
    """Coalitions neither empty nor whole: of size s by weight 1/(s·(players − s)), then any."""
    sizes = np.arange(1, players)
    weight = 1.0 / (sizes * (players - sizes))
    size = rng.choice(sizes, samples, p=weight / weight.sum())
    rank = rng.random((samples, players)).argsort(axis=1).argsort(axis=1)
    drawn: Floats = (rank < size[:, None]).astype(np.float64)
    return drawn
