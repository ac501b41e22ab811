"""Power sums about a centre."""

from __future__ import annotations

from math import comb

from ids.kernels import closed_form as central


def test_a_power_of_a_sum_is_expanded_by_pascals_triangle() -> None:
    # centres are so close to the mean that a wrong binomial would rarely be noticed
    table = central._BINOMIAL.tolist()
    assert table == [[comb(n, k) for k in range(len(table))] for n in range(len(table))]
