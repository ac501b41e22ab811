"""Permutation Monte Carlo (Castro et al. 2009): rows arrive in random orders, gains are averaged.

Each row's mean gain estimates its Shapley value in the tuple game, and a predicate's rows' gains
add up to an estimate of its attribution: the quantity that IDS computes. The worth is stepped by
running sums, so an order of N rows costs O(N), not O(N²). The three walks below take the same
orders to the same estimates, and differ in speed alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from evaluation.baselines.coalitions import Aggregate, Floats

Orders = npt.NDArray[np.int64]
"""[orders, N]: each row is a permutation of 0 … N − 1."""

Walk = Callable[[Floats, Orders, bool], Floats]
"""(values, orders, whether the game is a variance) to the sum of each player's gains."""

_BATCH = 1 << 18  # steps whose orders are drawn at once: they stay in the cache


def estimate(
    aggregate: Aggregate, y: Floats, permutations: int, rng: np.random.Generator, walk: Walk
) -> Floats:
    """Estimated Shapley values of all rows, from so many orders of them."""
    variance = aggregate == "VAR_POP"
    values = y - y.mean() if variance else y
    gains = np.zeros(len(y))
    at_once = max(1, _BATCH // len(y))
    for first in range(0, permutations, at_once):
        number = min(at_once, permutations - first)
        orders = np.tile(np.arange(len(y)), (number, 1))
        gains += walk(values, rng.permuted(orders, axis=1, out=orders), variance)
    return gains / permutations


def vectorised(values: Floats, orders: Orders, variance: bool) -> Floats:
    """Running sums of whole orders at once, in NumPy."""
    arriving = values[orders]
    rows = np.arange(1.0, len(values) + 1)
    worth = np.cumsum(arriving, axis=1) / rows
    if variance:
        worth = np.cumsum(arriving * arriving, axis=1) / rows - worth * worth
    gains = np.diff(worth, axis=1, prepend=0.0)
    summed = np.bincount(orders.ravel(), gains.ravel(), len(values))
    return summed.astype(np.float64, copy=False)


def plain(values: Floats, orders: Orders, variance: bool) -> Floats:
    """Row by row in Python, on lists: what a first implementation does."""
    gains = [0.0] * len(values)
    listed = values.tolist()
    for order in orders.tolist():
        _step(listed, order, variance, gains)
    return np.array(gains)


def compiled(values: Floats, orders: Orders, variance: bool) -> Floats:
    """Row by row, by Numba."""
    gains = np.zeros(len(values))
    for order in orders:
        _stepped(values, order, variance, gains)
    return gains


def _step(values: Any, order: Any, variance: bool, gains: Any) -> None:
    """One order: ``gains`` of each row as it arrives, changed in place."""
    rows, total, square, before = 0.0, 0.0, 0.0, 0.0
    for row in order:
        y = values[row]
        rows += 1.0
        total += y
        worth = total / rows
        if variance:
            square += y * y
            worth = square / rows - worth * worth
        gains[row] += worth - before
        before = worth


_stepped: Callable[[Floats, npt.NDArray[np.int64], bool, Floats], None] = njit(_step)
