"""The same games by the libraries shap and shapiq: each told what it needs to do well, and silent.

Both are imported when first used: they take seconds. Absent players are what shap calls a
background of zeros; its selection of features by the lasso is switched off: every player counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from evaluation.baselines.coalitions import Floats, GroupGame


def shap_kernel(game: GroupGame, budget: int, seed: int) -> Floats:
    """``shap.KernelExplainer`` from the worth of ``budget`` coalitions."""
    with _silence(), _seeded(seed):
        import shap

        explainer = shap.KernelExplainer(game, np.zeros((1, game.players)))
        found = explainer.shap_values(
            np.ones(game.players), nsamples=budget, l1_reg=False, silent=True
        )
    return np.asarray(found, dtype=np.float64)


def shapiq_kernel(game: GroupGame, budget: int, seed: int) -> Floats:
    """``shapiq.KernelSHAP``, each coalition with its complement."""
    with _silence():
        from shapiq.approximator import KernelSHAP

        approximator = KernelSHAP(n=game.players, pairing_trick=True, random_state=seed)
        found = approximator.approximate(budget, game)
    return np.asarray(found.get_n_order_values(1), dtype=np.float64)


def shapiq_permutation(game: GroupGame, budget: int, seed: int) -> Floats:
    """``shapiq.PermutationSamplingSV``: Castro's estimator, a worth at a time."""
    with _silence():
        from shapiq.approximator import PermutationSamplingSV

        approximator = PermutationSamplingSV(n=game.players, random_state=seed)
        found = approximator.approximate(budget, game, batch_size=1)
    return np.asarray(found.get_n_order_values(1), dtype=np.float64)


def shapiq_exact(game: GroupGame) -> Floats:
    """``shapiq.ExactComputer``: all coalitions, counted."""
    with _silence():
        from shapiq.game_theory.exact import ExactComputer

        found = ExactComputer(game, game.players)("SV", 1)
    return np.asarray(found.get_n_order_values(1), dtype=np.float64)


@contextmanager
def _silence() -> Iterator[None]:
    """What the libraries warn of, at import and when a small game needs no such budget."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """NumPy's global generator, the only one that shap asks, as it was when this ends."""
    before = np.random.get_state()
    np.random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(before)
