"""Every game against the definition: all coalitions are enumerated, in exact rationals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ids.games import GAMES, Attributed, Game, Moments, attribute, coefficients, find
from tests.oracles import shapley

values = st.lists(st.integers(-20, 20).map(lambda n: n / 4), min_size=0, max_size=7)


def central(ys: list[float], members: list[int], degree: int) -> tuple[Moments, Any, Any, Any]:
    """Compute moments and deviations from exact rationals."""
    exact = [Fraction(y) for y in ys]
    n, m = len(ys), len(members)
    mean = sum(exact, Fraction(0)) / n if n else Fraction(0)
    powers = [[(y - mean) ** d for y in exact] for d in range(degree + 1)]
    whole = [float(sum(p, Fraction(0))) for p in powers]
    own = [
        [[float(sum((p[i] for i in members), Fraction(0)) - Fraction(m, max(n, 1)) * sum(p))]]
        for p in powers[1:]
    ]
    total = float(sum(exact, Fraction(0)))
    moments = Moments(
        np.array([float(n)]), np.array([total]), np.array([float(mean)]), np.array(whole)[:, None]
    )
    item_total = np.array([[float(sum((exact[i] for i in members), Fraction(0)))]])
    return moments, np.array([[float(m)]]), item_total, np.array(own).reshape(degree, 1, 1)


def answer(game: Game, ys: list[float], members: list[int]) -> Attributed:
    return attribute(game, *central(ys, members, max(game.degree, 2)))


@pytest.mark.parametrize("name", shapley.GAMES)
@given(ys=values, data=st.data())
@settings(max_examples=40)
def test_a_game_is_its_definition(name: str, ys: list[float], data: st.DataObject) -> None:
    members = [i for i in range(len(ys)) if data.draw(st.booleans())]
    found = answer(GAMES[name], ys, members)
    exact = shapley.attribution(name, ys, members)
    size = abs(float(found.share[0, 0])) + abs(float(found.lift[0, 0]))
    assert abs(float(found.value[0, 0]) - exact) <= 1e-13 * max(size, 1.0)
    assert found.share[0, 0] + found.lift[0, 0] == pytest.approx(
        float(exact), abs=1e-12 * (1 + size)
    )
    whole = float(shapley.worth(name, [Fraction(y) for y in ys])) if ys else 0.0  # type: ignore[misc]
    assert answer(GAMES[name], ys, list(range(len(ys)))).value[0, 0] == pytest.approx(whole)


@pytest.mark.parametrize("name", shapley.GAMES)
def test_golden_windows(name: str, golden_cases: list[dict[str, Any]]) -> None:
    cases = [case for case in golden_cases if name in case["attribution"]]
    assert cases
    for case in cases:
        members = [i for i, signature in enumerate(case["signature"]) if signature & 1]
        found = float(answer(GAMES[name], case["y"], members).value[0, 0])
        exact = float(Fraction(case["attribution"][name]["p0"]))
        assert found == pytest.approx(exact, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("name", shapley.CLOSED)
@given(ys=values, data=st.data())
@settings(max_examples=60)
def test_coefficients_give_the_affine_form(name: str, ys: list[float], data: st.DataObject) -> None:
    members = [i for i in range(len(ys)) if data.draw(st.booleans())]
    total, squares = sum(ys), sum(y * y for y in ys)
    a_m, a_A, a_B = coefficients(find(name), len(ys), total, squares)
    own = [ys[i] for i in members]
    found = a_m * len(own) + a_A * sum(own) + a_B * sum(y * y for y in own)
    exact = float(shapley.attribution(name, ys, members))
    assert found == pytest.approx(exact, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("name", shapley.GAMES)
def test_a_window_without_players_attributes_nothing(name: str) -> None:
    found = answer(GAMES[name], [], [])
    assert (found.value[0, 0], found.share[0, 0], found.lift[0, 0]) == (0.0, 0.0, 0.0)
    assert coefficients(GAMES[name], 0, 0.0, 0.0) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("name", shapley.GAMES)
@pytest.mark.parametrize("ys", [[4.0], [4.0, -1.0], [3.0, 3.0]])
def test_one_and_two_rows_are_attributed_exactly(name: str, ys: list[float]) -> None:
    for members in ([], [0], list(range(len(ys)))):
        found = float(answer(GAMES[name], ys, members).value[0, 0])
        assert found == pytest.approx(float(shapley.attribution(name, ys, members)), abs=1e-15)


def test_many_emits_at_once_are_the_emits_one_by_one() -> None:
    windows = [[1.0, 2.0, 4.0], [5.0], [], [1.0, 1.0, 7.0, 2.0]]
    for game in GAMES.values():
        degree = max(game.degree, 2)
        parts = [central(ys, [0] if ys else [], degree) for ys in windows]
        moments = Moments(
            np.concatenate([p[0].players for p in parts]),
            np.concatenate([p[0].total for p in parts]),
            np.concatenate([p[0].mean for p in parts]),
            np.concatenate([p[0].central for p in parts], axis=1),
        )
        rest = [np.concatenate([p[k] for p in parts], axis=-1) for k in (1, 2, 3)]
        together = attribute(game, moments, *rest)
        for e, part in enumerate(parts):
            alone = attribute(game, *part)
            for whole, one in zip(together, alone, strict=True):
                assert whole[0, e] == one[0, 0]
