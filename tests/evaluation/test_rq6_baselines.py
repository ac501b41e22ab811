from __future__ import annotations

from itertools import permutations
from math import factorial

import numpy as np
import pytest

import ids
from evaluation.baselines.estimators import (
    Aggregate,
    GroupGame,
    Walk,
    compiled,
    kernelshap,
    permutation,
    plain,
    shap_kernel,
    shapiq_exact,
    shapiq_kernel,
    shapiq_permutation,
    vectorised,
)

AGGREGATES: list[Aggregate] = ["AVG", "VAR_POP"]
WALKS: list[Walk] = [plain, vectorised, compiled]


def values(rows: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).lognormal(3.7, 0.5, rows)


def grouped(aggregate: Aggregate, groups: int = 5) -> GroupGame:
    rng = np.random.default_rng(2)
    of = np.concatenate([np.arange(groups), rng.integers(0, groups, 40)])
    return GroupGame(aggregate, values(len(of)), of, groups)


def aggregate_of(aggregate: Aggregate, rows: np.ndarray) -> float:
    if not len(rows):
        return 0.0
    return float(rows.mean() if aggregate == "AVG" else rows.var())


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_a_coalition_is_worth_the_aggregate_of_its_groups_rows(aggregate: Aggregate) -> None:
    y, of = values(30), np.arange(30) % 3
    game = GroupGame(aggregate, y, of, 3)
    for coalition in ([0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]):
        rows = y[np.isin(of, np.flatnonzero(coalition))]
        assert game(np.array(coalition))[0] == pytest.approx(aggregate_of(aggregate, rows))


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_exact_values_are_the_mean_gain_over_every_order(aggregate: Aggregate) -> None:
    game = grouped(aggregate)
    gains = np.zeros(5)
    for order in permutations(range(5)):
        there = np.zeros(5)
        for player in order:
            before = game(there)[0]
            there[player] = 1.0
            gains[player] += game(there)[0] - before
    assert game.shapley() == pytest.approx(gains / factorial(5))


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_where_each_row_is_a_player_the_exact_values_are_what_ids_attributes(
    aggregate: Aggregate,
) -> None:
    y = values(9)
    mask = np.arange(9) % 3 == 0
    engine = ids.Engine(window=ids.CountWindow(9), value="y")
    engine.register("p", "b")
    engine.ingest({"b": mask, "y": y})
    phi = GroupGame(aggregate, y).shapley()
    assert phi[mask].sum() == pytest.approx(engine.attribute(aggregate, "p").value)


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_all_orders_of_the_rows_give_the_exact_values(aggregate: Aggregate, walk: Walk) -> None:
    y = values(5)
    centred = y - y.mean() if aggregate == "VAR_POP" else y
    orders = np.array(list(permutations(range(5))))
    gains = walk(centred, orders, aggregate == "VAR_POP")
    exact = GroupGame(aggregate, y).shapley()
    assert gains / len(orders) == pytest.approx(exact)


@pytest.mark.parametrize("walk", [vectorised, compiled])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_one_seed_is_one_estimate_whatever_walks(aggregate: Aggregate, walk: Walk) -> None:
    y = values(60)
    expected = permutation(GroupGame(aggregate, y), 7, 3, walk=plain)
    found = permutation(GroupGame(aggregate, y), 7, 3, walk=walk)
    assert found == pytest.approx(expected)
    assert found.sum() == pytest.approx(aggregate_of(aggregate, y))


def test_more_orders_than_a_batch_are_all_walked() -> None:
    y = values(100_000)
    found = permutation(GroupGame("AVG", y), 3, 0, walk=vectorised)  # two, then one
    assert found.sum() == pytest.approx(y.mean())


def test_of_two_players_paired_kernelshap_is_exact_and_unpaired_is_near() -> None:
    game = grouped("AVG", 2)
    assert kernelshap(game, 10, 4, paired=True) == pytest.approx(game.shapley())
    assert kernelshap(game, 20_000, 4) == pytest.approx(game.shapley(), rel=0.05)
    assert kernelshap(game, 25, 4) != pytest.approx(game.shapley(), rel=1e-3)


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("paired", [False, True])
def test_kernelshap_converges_to_the_exact_values(aggregate: Aggregate, paired: bool) -> None:
    game = grouped(aggregate)
    found = kernelshap(game, 40_000, 5, paired=paired)
    whole = game(np.ones(5))[0]
    assert np.abs(found - game.shapley()).max() < 0.02 * abs(whole)
    assert found.sum() == pytest.approx(whole)


def test_kernelshap_stands_fewer_coalitions_than_players() -> None:
    game = grouped("AVG", 12)
    found = kernelshap(game, 4, 6)
    assert found.sum() == pytest.approx(game(np.ones(12))[0])


@pytest.mark.slow
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_the_libraries_agree_on_a_game_they_can_enumerate(aggregate: Aggregate) -> None:
    game = grouped(aggregate)
    exact = game.shapley()
    scale = np.abs(exact).max()
    assert shap_kernel(game, 100, 0) == pytest.approx(exact, abs=1e-9 * scale)
    assert shapiq_kernel(game, 100, 0) == pytest.approx(exact, abs=1e-5 * scale)
    assert shapiq_exact(game) == pytest.approx(exact, abs=1e-9 * scale)
    assert shapiq_permutation(game, 4_000, 0) == pytest.approx(exact, abs=0.1 * scale)


@pytest.mark.slow
def test_shap_is_seeded_and_leaves_numpys_own_generator_as_it_was() -> None:
    game = grouped("AVG", 14)
    np.random.seed(7)
    untouched = np.random.random()
    np.random.seed(7)
    first = shap_kernel(game, 60, 1)
    assert np.random.random() == untouched
    assert (shap_kernel(game, 60, 1) == first).all()
    assert (shap_kernel(game, 60, 2) != first).any()
