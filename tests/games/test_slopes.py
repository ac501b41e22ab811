"""The slopes λ of the closed forms: small exact values, edge cases, and harmonic numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ids.games.game import (
    average_slope,
    harmonic,
    harmonic_squares,
    population_slope,
    sample_slope,
)
from tests.oracles.shapley import lift_factor

SLOPES = {"AVG": average_slope, "VAR_POP": population_slope, "VAR_SAMP": sample_slope}
SMALL = {
    "AVG": {3: "3/4", 4: "11/18", 5: "25/48", 6: "137/300", 7: "49/120"},
    "VAR_POP": {3: "3/8", 4: "17/54", 5: "475/1728", 6: "2951/12000", 7: "24157/108000"},
    "VAR_SAMP": {3: "3/4", 4: "5/9", 5: "65/144", 6: "77/200", 7: "203/600"},
}


def ulps(found: float, exact: Fraction) -> float:
    return float(abs(Fraction(found) - exact) / Fraction(np.spacing(abs(float(exact)))))


def exact_sum(n: int, power: int) -> Fraction:
    """Return Σ 1/k**power as one integer over 2**160: the error is far below an ulp."""
    return Fraction(sum((1 << 160) // k**power for k in range(1, n + 1)), 1 << 160)


@pytest.mark.parametrize("game", SLOPES)
def test_small_windows_have_the_printed_slopes(game: str) -> None:
    for players, printed in SMALL[game].items():
        assert lift_factor(game, players) == Fraction(printed)
        assert ulps(float(SLOPES[game](players)), Fraction(printed)) <= 4


@pytest.mark.parametrize("game", SLOPES)
@pytest.mark.parametrize("players", [3, 10, 254, 255, 256, 257, 258, 1000, 10_000])
def test_slopes_are_exact_to_a_few_ulps_on_both_sides_of_the_table(game: str, players: int) -> None:
    assert ulps(float(SLOPES[game](players)), lift_factor(game, players)) <= 8


def test_windows_of_none_one_and_two_rows_have_no_lift() -> None:
    assert average_slope([0, 1, 2]).tolist() == [1.0, 1.0, 1.0]
    assert population_slope([0, 1, 2]).tolist() == [0.0, 0.0, 0.0]
    assert sample_slope([0, 1, 2]).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [0, 1, 2, 10, 254, 255, 256, 257, 1000, 10_000, 100_000])
def test_harmonic_numbers_are_the_exact_sums(n: int) -> None:
    if n == 0:
        assert harmonic(0) == harmonic_squares(0) == 0.0
        return
    assert ulps(float(harmonic(n)), exact_sum(n, 1)) <= (0.51 if n < 256 else 2)
    assert ulps(float(harmonic_squares(n)), exact_sum(n, 2)) <= (0.51 if n < 256 else 2)


def test_harmonic_numbers_never_step_back() -> None:
    n = np.arange(20_000)
    assert (np.diff(harmonic(n)) > 0).all()
    assert (np.diff(harmonic_squares(n)) > 0).all()
    far = np.array([2**20, 2**26, 2**40, 2**52], np.int64)
    assert (np.diff(harmonic(far)) > 0).all()
    assert np.allclose(harmonic(far), np.log(far) + np.euler_gamma, rtol=1e-6)


def test_arrays_of_any_shape_are_taken() -> None:
    n = np.array([[1, 300], [0, 4]])
    assert harmonic(n).shape == (2, 2)
    assert harmonic(n)[0, 1] == harmonic(300)
