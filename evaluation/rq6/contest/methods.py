"""The contenders: each from a whole window to the attribution of the predicates asked about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from evaluation.baselines.coalitions import Aggregate, Floats, GroupGame
from evaluation.baselines.kernelshap import kernelshap
from evaluation.baselines.peers import shap_kernel, shapiq_exact, shapiq_kernel
from evaluation.baselines.permutation import Walk, compiled, estimate, plain, vectorised
from evaluation.rq6.contest.stage import Stage

__all__ = ["COALITIONS", "PERMUTATIONS", "Method", "methods"]

PERMUTATIONS = 200  # the paper's
COALITIONS = 100  # the paper's

Answer = Callable[[int, Sequence[str]], Floats]
"""(seed, predicates) to their attributions."""

Solve = Callable[[GroupGame, int], Floats]
"""(game, seed) to the players' values."""


class Method(NamedTuple):
    """A way to an attribution.

    label      as the table names it
    estimand   what it estimates: "tuples" (what IDS computes), "two" or "atoms" (the metagames)
    budget     permutations, or worths of coalitions that it may ask for
    """

    label: str
    estimand: str
    budget: int
    answer: Answer


def methods(stage: Stage, aggregate: Aggregate) -> list[Method]:
    """All that are measured beside IDS, from the paper's to the libraries'."""
    tuples = partial(_by_tuples, stage, aggregate)
    two = partial(_by_two, stage, aggregate)
    atoms = partial(_by_atoms, stage, aggregate)
    walks: list[tuple[str, Walk]] = [
        ("plain Python", plain),
        ("NumPy", vectorised),
        ("compiled", compiled),
    ]
    own: list[tuple[str, Solve]] = [
        ("KernelSHAP", partial(_kernelshap, paired=False)),
        ("KernelSHAP, paired", partial(_kernelshap, paired=True)),
        ("shap KernelExplainer", lambda game, seed: shap_kernel(game, COALITIONS, seed)),
        ("shapiq KernelSHAP", lambda game, seed: shapiq_kernel(game, COALITIONS, seed)),
    ]
    return [
        *(
            Method(f"permutation MC, {how}", "tuples", PERMUTATIONS, partial(tuples, walk))
            for how, walk in walks
        ),
        *(Method(label, "two", COALITIONS, partial(two, solve)) for label, solve in own),
        Method("shapiq ExactComputer", "two", 4, partial(two, lambda game, _: shapiq_exact(game))),
        *(Method(label, "atoms", COALITIONS, partial(atoms, solve)) for label, solve in own),
    ]


def _kernelshap(game: GroupGame, seed: int, *, paired: bool) -> Floats:
    return kernelshap(game, COALITIONS, np.random.default_rng(seed), paired=paired)


def _by_tuples(
    stage: Stage, aggregate: Aggregate, walk: Walk, seed: int, names: Sequence[str]
) -> Floats:
    """One estimate of all rows serves every predicate."""
    phi = estimate(aggregate, stage.y, PERMUTATIONS, np.random.default_rng(seed), walk)
    return np.array([phi[stage.masks[name]].sum() for name in names])


def _by_two(
    stage: Stage, aggregate: Aggregate, solve: Solve, seed: int, names: Sequence[str]
) -> Floats:
    """A game for each predicate."""
    return np.array([solve(stage.two(aggregate, name), seed)[0] for name in names])


def _by_atoms(
    stage: Stage, aggregate: Aggregate, solve: Solve, seed: int, names: Sequence[str]
) -> Floats:
    """One game; a predicate has what its atoms have."""
    phi = solve(stage.atoms(aggregate), seed)
    return np.array([phi[stage.atoms_of[name]].sum() for name in names])
