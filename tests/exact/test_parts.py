from __future__ import annotations

from fractions import Fraction
from math import nextafter
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ids.exact import FEW_LEVELS, Parts, split, split_integer

doubles = st.floats(allow_nan=False, allow_infinity=False)


def joined(parts: list, exponent: int) -> Fraction:
    """Return Σ part_k · 2**(exponent - 28·k)."""
    return sum(
        (
            Fraction(int(part[0])) * Fraction(2) ** (exponent - 28 * k)
            for k, part in enumerate(parts, 1)
        ),
        Fraction(0),
    )


def fit(*values: float) -> Parts:
    sizes = [abs(v) for v in values if v]
    return Parts.fit(max(sizes, default=0.0), min(sizes, default=0.0), 2)


@given(doubles, doubles)
@example(1.7976931348623157e308, 5e-324)
@example(5e-324, 1.7976931348623157e308)
@example(-1e16, 1e-60)
def test_parts_fitted_to_values_hold_every_bit_of_them_and_of_their_squares(
    y: float, other: float
) -> None:
    parts = fit(y, other)
    first, second = split(np.array([y]), parts)
    assert joined(first, parts.exponent) == Fraction(y)
    assert joined(second, 2 * parts.exponent) == Fraction(y) ** 2
    assert (len(first), len(second)) == (parts.levels, parts.squares)
    assert all(abs(int(part[0])) <= 2**28 for part in first)
    assert all(abs(int(part[0])) <= (2**31 if parts.wide else 2**28) for part in second)


@given(st.floats(-1.0, 1.0, exclude_min=True, exclude_max=True), st.integers(1, FEW_LEVELS))
def test_the_square_is_that_of_the_parts_even_where_bits_are_rounded(y: float, levels: int) -> None:
    parts = Parts(0, levels, 2 * levels)
    first, second = split(np.array([y]), parts)
    held = joined(first, 0)
    assert abs(held - Fraction(y)) <= Fraction(1, 2 ** (28 * levels + 1))
    assert joined(second, 0) == held**2
    assert all(abs(int(part[0])) <= 2**28 for part in first + second)


@given(st.integers(-(2**63), 2**63 - 1))
@example(2**63 - 1)
def test_whole_numbers_of_64_bits_are_held_with_their_squares(y: int) -> None:
    parts = Parts.for_integers(64, 2)
    first, second = split_integer(np.array([y]), parts)
    whole = y if y < 2**63 - 1 else 2**63  # the nearest double
    assert joined(first, parts.exponent) == whole
    assert joined(second, 2 * parts.exponent) == whole**2
    assert all(abs(int(part[0])) <= 2**28 for part in first + second)


@given(st.integers(-(2**53), 2**53))
def test_a_whole_number_is_held_alike_as_a_double(y: int) -> None:
    parts = Parts.for_integers(54, 2)
    as_integer, as_double = split_integer(np.array([y]), parts), split(np.array([float(y)]), parts)
    for one, other, power in zip(as_integer, as_double, (1, 2), strict=True):
        assert joined(one, power * parts.exponent) == joined(other, power * parts.exponent)


@given(st.lists(doubles, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_sums_of_parts_are_the_same_in_any_order(values: list[float], random: Random) -> None:
    parts = fit(*values)
    first, _ = split(np.array(values), parts)
    random.shuffle(values)
    again, _ = split(np.array(values), parts)
    exact = sum((Fraction(v) for v in values), Fraction(0))
    for found in (first, again):
        assert joined([part.sum(keepdims=True) for part in found], parts.exponent) == exact


def test_the_fewest_levels_that_hold_every_bit() -> None:
    assert Parts.fit(1.0, 1.0, 2) == Parts(1, 2, 4)
    assert Parts.fit(1.0, 2.0**-20, 1) == Parts(1, 3, 0)
    assert Parts.fit(0.0, 0.0, 2) == Parts(0, 1, 2)
    assert Parts.fit(1e300, 1e-300, 0) == Parts(0, 0, 0)
    assert Parts.for_integers(20, 1) == Parts(28, 1, 0)


def test_parts_are_wide_where_64_bit_limbs_do_not_hold_their_products() -> None:
    assert Parts.fit(1e30, 1e-30, 2).wide
    assert not Parts.fit(2.0 ** (28 * FEW_LEVELS - 1), 2.0**52, 2).wide


@pytest.mark.parametrize("largest", [1.7976931348623157e308, 5e-324, 2.0**-1022, 2.0**-990])
def test_the_ends_of_the_doubles_have_parts(largest: float) -> None:
    for y in (largest, 5e-324 if largest < 1.0 else 1e300):
        parts = fit(largest, y)
        assert joined(split(np.array([y]), parts)[0], parts.exponent) == Fraction(y)


@given(st.lists(st.floats(1.5, 700.0), min_size=1, max_size=30))
def test_a_trimmed_square_is_the_whole_square(values: list[float]) -> None:
    parts = Parts.fit(700.0, 1.5, 2)
    trimmed = parts.trimmed(1.5)
    assert trimmed.squares == parts.squares - 1
    y = np.array(values)
    (_, whole), (_, fewer) = split(y, parts), split(y, trimmed)
    assert np.array_equal(whole[:-1], fewer)
    assert not whole[-1].any()
    assert parts.trimmed(2.0**-40) == parts


def test_a_square_is_trimmed_only_where_its_last_part_is_0_however_far_values_are_apart() -> None:
    y = nextafter(1.0, 2.0)  # with its last bit set
    for apart in range(90):
        trimmed = Parts.fit(2.0**apart, 1.0, 2).trimmed(1.0)
        _, second = split(np.array([y]), trimmed)
        assert joined(second, 2 * trimmed.exponent) == Fraction(y) ** 2, apart
