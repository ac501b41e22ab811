"""A game whose players are groups of rows, and estimators of its Shapley values.

Also the paper's own bound on a sample's error, to compare ours with.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import log, sqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numba import njit

from ids.games import Game, coefficients
from tests.oracles.shapley import enumerated

Aggregate = Literal["AVG", "VAR_POP"]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.integer[Any]]
Orders = npt.NDArray[np.int64]  # [orders, N]: each row is a permutation of 0 … N − 1
Walk = Callable[[Floats, Orders, bool], Floats]
"""Values, orders and whether of a variance, to summed gains, by running sums, in O(N) an order."""
_BATCH = 1 << 18  # steps whose orders are drawn at once: they stay in the cache


class GroupGame:
    """AVG or VAR_POP of the rows of groups that take part; without groups, IDS's game of tuples.

    >>> game = GroupGame("AVG", np.array([1.0, 3.0, 8.0]), np.array([0, 0, 1]), 2)
    >>> game(np.array([[1, 0], [0, 1], [1, 1]])).tolist(), game.shapley().tolist()
    ([2.0, 8.0, 4.0], [-1.0, 5.0])
    """

    def __init__(
        self, aggregate: Aggregate, y: Floats, group: Ints | None = None, groups: int = 0
    ) -> None:
        values = y - y.mean() if aggregate == "VAR_POP" else y  # large squares lose a variance
        group = np.arange(len(y)) if group is None else group
        self.aggregate, self.players = aggregate, groups or len(y)
        self.count, self.total, self.square = (
            np.bincount(group, weight, self.players).astype(np.float64)
            for weight in (None, values, values * values)
        )

    def __call__(self, coalitions: npt.NDArray[Any]) -> Floats:
        """The worth of each coalition, a row of [coalitions, players], 1 for who takes part."""
        there = np.atleast_2d(coalitions).astype(np.float64, copy=False)
        rows = np.maximum(there @ self.count, 1.0)  # without rows the sums are 0, too
        mean = there @ self.total / rows
        worth: Floats = mean if self.aggregate == "AVG" else there @ self.square / rows - mean**2
        return worth

    def shapley(self) -> Floats:
        """Exact, from the worth of all 2^players coalitions."""
        members = (np.arange(1 << self.players)[:, None] >> np.arange(self.players)) & 1
        return np.array(enumerated(self(members).tolist(), self.players))


def permutation(game: GroupGame, budget: int, seed: int, *, walk: Walk) -> Floats:
    """Permutation Monte Carlo (Castro et al. 2009): each row's mean gain over random orders."""
    rng, gains, players = np.random.default_rng(seed), np.zeros(game.players), game.players
    at_once = max(1, _BATCH // players)
    for first in range(0, budget, at_once):
        orders = np.tile(np.arange(players), (min(at_once, budget - first), 1))
        rng.permuted(orders, axis=1, out=orders)
        gains += walk(game.total, orders, game.aggregate == "VAR_POP")
    return gains / budget


def vectorised(values: Floats, orders: Orders, variance: bool) -> Floats:
    """Running sums of whole orders at once, in NumPy."""
    arriving = values[orders]
    rows = np.arange(1.0, len(values) + 1)
    worth = np.cumsum(arriving, axis=1) / rows
    if variance:
        worth = np.cumsum(arriving * arriving, axis=1) / rows - worth * worth
    gains = np.diff(worth, axis=1, prepend=0.0)
    return np.bincount(orders.ravel(), gains.ravel(), len(values)).astype(np.float64, copy=False)


def plain(values: Floats, orders: Orders, variance: bool) -> Floats:
    """Row by row in Python, on lists: what a first implementation does."""
    return np.array(_walk(values.tolist(), orders.tolist(), variance, [0.0] * len(values)))


def compiled(values: Floats, orders: Orders, variance: bool) -> Floats:
    """Row by row, by Numba."""
    gains: Floats = _walk_compiled(values, orders, variance, np.zeros(len(values)))
    return gains


def _walk(values: Any, orders: Any, variance: bool, gains: Any) -> Any:
    """Every order, a row at a time; to ``gains`` is added what each row brings as it arrives."""
    for order in orders:
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
    return gains


_walk_compiled = njit(_walk)


def kernelshap(game: GroupGame, budget: int, seed: int, *, paired: bool = False) -> Floats:
    """KernelSHAP (Lundberg and Lee 2017): a linear game fitted to the worth of so many coalitions.

    ``paired`` takes each with its complement, at no cost: of two players, no noise is left.
    """
    players, rng = game.players, np.random.default_rng(seed)
    sizes = np.arange(1, players)  # neither empty nor whole
    weight = 1.0 / (sizes * (players - sizes))
    size = rng.choice(sizes, budget // 2 if paired else budget, p=weight / weight.sum())
    rank = rng.random((len(size), players)).argsort(axis=1).argsort(axis=1)
    drawn = (rank < size[:, None]).astype(np.float64)
    if paired:
        drawn = np.concatenate([drawn, 1.0 - drawn])
    whole = float(game(np.ones((1, players)))[0])
    # the last player gets what the others leave of the whole: one unknown less, and Efficiency
    last = drawn[:, -1:]
    given, wanted = drawn[:, :-1] - last, game(drawn) - last[:, 0] * whole
    try:  # by the normal equations: many times as fast as by the matrix itself
        found = np.linalg.solve(given.T @ given, given.T @ wanted)
    except np.linalg.LinAlgError:  # fewer coalitions than players tell less than all
        found = np.linalg.lstsq(given, wanted, rcond=None)[0]
    return np.append(found, whole - found.sum())


@contextmanager
def _silence() -> Iterator[None]:
    """The libraries, imported when first used, warn then, and of a budget that is not needed."""
    with warnings.catch_warnings(action="ignore"):
        yield


@_silence()
def shap_kernel(game: GroupGame, budget: int, seed: int) -> Floats:
    """``shap.KernelExplainer``: every player counts, and the absent are a background of zeros."""
    import shap

    before = np.random.get_state()  # of the one generator that it asks
    np.random.seed(seed)
    try:
        everyone = np.ones(game.players)
        explainer = shap.KernelExplainer(game, np.zeros((1, game.players)))
        found = explainer.shap_values(everyone, nsamples=budget, l1_reg=False, silent=True)
    finally:
        np.random.set_state(before)
    return np.asarray(found, dtype=np.float64)


@_silence()
def shapiq_kernel(game: GroupGame, budget: int, seed: int) -> Floats:
    """``shapiq.KernelSHAP``, each coalition with its complement."""
    from shapiq.approximator import KernelSHAP

    approximator = KernelSHAP(n=game.players, pairing_trick=True, random_state=seed)
    return _first_order(approximator.approximate(budget, game))


@_silence()
def shapiq_permutation(game: GroupGame, budget: int, seed: int) -> Floats:
    """``shapiq.PermutationSamplingSV``: Castro's estimator, a worth at a time."""
    from shapiq.approximator import PermutationSamplingSV

    approximator = PermutationSamplingSV(n=game.players, random_state=seed)
    return _first_order(approximator.approximate(budget, game, batch_size=1))


@_silence()
def shapiq_exact(game: GroupGame, _budget: int = 0, _seed: int = 0) -> Floats:
    """``shapiq.ExactComputer``: all coalitions, counted."""
    from shapiq.game_theory.exact import ExactComputer

    return _first_order(ExactComputer(game, game.players)("SV", 1))


def _first_order(found: Any) -> Floats:
    return np.asarray(found.get_n_order_values(1), dtype=np.float64)


def paper_bound(
    game: Game,
    count: int,
    total: float,
    squares: float,
    *,
    largest: float,
    rows: int,
    confidence: float,
    replacement: bool = False,
) -> float:
    """Eq. 6: a window of N = ``count`` rows with |y| <= ``largest``, ``rows`` of them drawn.

    One Hoeffding–Serfling term a coordinate.

    The attribution is a_m·m + a_A·A_P + a_B·B_P, and each of the sums that it has is bounded by
    itself: two for AVG (log 4/δ), three for the variances (log 6/δ), one for SUM and for COUNT.

    >>> from ids.games import find
    >>> round(paper_bound(find("COUNT"), 1000, 0, 0, largest=1, rows=100, confidence=0.95))
    258
    """
    a_m, a_A, a_B = coefficients(game, count, total, squares)
    sizes = (abs(a_m), abs(a_A) * largest, abs(a_B) * largest**2)
    if game.additive:
        sizes = (0.0, *sizes[1:])  # the sum alone: what is left of a_m is rounding
    coordinates = {0: 1, 1: 1 if game.additive else 2, 2: 3}[game.degree]
    left = 1.0 if replacement else 1.0 - (rows - 1) / count
    deviation = sqrt(2.0 * left * log(2.0 * coordinates / (1.0 - confidence)) / rows)
    return sum(sizes) * count * deviation
