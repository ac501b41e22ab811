from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.shapley import (
    CLOSED,
    GAMES,
    attribution,
    closed_form,
    lift_factor,
    shapley_values,
    worth,
)

# The golden file's predicates: bit k of a signature says whether pk holds.
PREDICATES: dict[str, Callable[[int], bool]] = {
    "p0": lambda s: bool(s & 1),
    "p1": lambda s: bool(s & 2),
    "p2": lambda s: bool(s & 4),
    "p0 AND NOT p1": lambda s: s & 3 == 1,
    "p0 OR p2": lambda s: bool(s & 5),
    "NOT (p0 OR p1 OR p2)": lambda s: s == 0,
    "TRUE": lambda s: s >= 0,
}

windows = st.lists(
    st.fractions(-100, 100, max_denominator=64) | st.floats(-1e9, 1e9), min_size=1, max_size=6
)


def members_of(predicate: str, signatures: list[int]) -> list[int]:
    return [i for i, signature in enumerate(signatures) if PREDICATES[predicate](signature)]


@pytest.mark.parametrize("game", GAMES)
def test_enumeration_gives_every_golden_answer(
    game: str, golden_cases: list[dict[str, Any]]
) -> None:
    # M3 and M4 are golden for the smaller windows only.
    cases = [case for case in golden_cases if game in case["attribution"]]
    assert len(cases) >= 90
    for case in cases:
        phi = shapley_values(game, case["y"])
        for predicate, expected in case["attribution"][game].items():
            found = sum((phi[i] for i in members_of(predicate, case["signature"])), Fraction(0))
            assert found == Fraction(expected), (case["case"], predicate)


@pytest.mark.parametrize("game", CLOSED)
def test_the_closed_form_gives_every_golden_answer(
    game: str, golden_cases: list[dict[str, Any]]
) -> None:
    for case in golden_cases:
        for predicate, expected in case["attribution"][game].items():
            members = members_of(predicate, case["signature"])
            assert closed_form(game, case["y"], members) == Fraction(expected), case["case"]


@pytest.mark.parametrize("game", CLOSED)
@given(ys=windows, data=st.data())
def test_the_closed_form_is_the_enumeration(
    game: str, ys: list[float | Fraction], data: st.DataObject
) -> None:
    members = data.draw(st.sets(st.integers(0, len(ys) - 1)))
    assert closed_form(game, ys, members) == attribution(game, ys, members)


@pytest.mark.parametrize("game", GAMES)
@given(ys=st.lists(st.integers(-50, 50), min_size=0, max_size=5))
def test_the_values_of_all_players_sum_to_the_worth_of_the_window(game: str, ys: list[int]) -> None:
    assert sum(shapley_values(game, ys)) == worth(game, ys)


def test_the_lift_factors_are_the_printed_ones() -> None:
    printed = {
        "AVG": "3/4 11/18 25/48 137/300 49/120",
        "VAR_POP": "3/8 17/54 475/1728 2951/12000 24157/108000",
        "VAR_SAMP": "3/4 5/9 65/144 77/200 203/600",
    }
    for game, row in printed.items():
        assert [lift_factor(game, N) for N in range(3, 8)] == [Fraction(x) for x in row.split()]


@pytest.mark.parametrize("game", CLOSED)
def test_the_closed_form_reaches_large_windows(game: str) -> None:
    ys = [1e9 + (i * 7919 % 1000) * 2.0**-10 for i in range(2000)]
    thirds = [list(range(k, 2000, 3)) for k in range(3)]
    parts = sum((closed_form(game, ys, third) for third in thirds), Fraction(0))
    assert parts == closed_form(game, ys, range(2000))
