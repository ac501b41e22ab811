"""Splitting values into digits loses no bit that fits into the digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ids.kernels import cut
from ids.model import DIGIT_BITS, Scale, lowest_bit
from ids.state import cut_column

DIGITS = (1, 2, 3, 5)

finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
near = st.floats(-1e12, 1e12)


def value_of(digits: npt.NDArray[np.int64], exponent: int) -> Fraction:
    unit = Fraction(2) ** exponent
    return sum(
        (int(q) * unit / 2 ** (DIGIT_BITS * (j + 1)) for j, q in enumerate(digits)), Fraction(0)
    )


@pytest.mark.parametrize("digits", DIGITS)
@given(values=st.lists(st.one_of(near, finite), min_size=1, max_size=8), spare=st.integers(0, 40))
def test_digits_add_up_to_the_value(digits: int, values: list[float], spare: int) -> None:
    column = np.array(values)
    largest = float(np.abs(column).max())
    exponent = max(int(np.frexp(largest)[1]) + spare, -900)
    assume(exponent <= 1000)
    found = cut_column(column, Scale(exponent, digits, 2, (0,) * digits))
    unit = Fraction(2) ** (exponent - DIGIT_BITS * digits)
    for value, row in zip(values, found, strict=True):
        rest = abs(value_of(row, exponent) - Fraction(value))
        assert rest == 0 if (Fraction(value) / unit).denominator == 1 else rest <= unit / 2


@pytest.mark.parametrize("digits", DIGITS)
@given(value=st.floats(-1, 1, exclude_min=True, exclude_max=True))
def test_digits_have_35_bits_and_a_sign(digits: int, value: float) -> None:
    row = cut_column(np.array([value]), Scale(0, digits, 2, (0,) * digits))[0]
    assert abs(int(row[0])) <= 2**DIGIT_BITS
    assert all(abs(int(q)) <= 2 ** (DIGIT_BITS - 1) for q in row[1:])


@given(value=near)
def test_a_value_and_its_negative_have_opposite_digits(value: float) -> None:
    scale = Scale(40, 3, 2, (0, 0, 0))
    rows = cut_column(np.array([value, -value]), scale)
    assert (rows[0] == -rows[1]).all()


def test_a_column_is_cut_in_place() -> None:
    digits = np.full((2, 2), 7, np.int64)
    cut(np.array([0.5, -0.25]), 1.0, Scale(0, 2, 2).layout, digits)
    assert digits.tolist() == [[2**34, 0], [-(2**33), 0]]


@given(values=st.lists(st.one_of(near, finite, st.integers(-50, 50).map(float)), max_size=8))
def test_the_lowest_bit_is_the_last_that_is_set(values: list[float]) -> None:
    exact = [Fraction(v) for v in values if v]
    found = lowest_bit(np.array(values, dtype=np.float64))
    if not exact:
        assert found == 0
        return
    unit = Fraction(2) ** found
    assert all((v / unit).denominator == 1 for v in exact)
    assert any((v / (2 * unit)).denominator != 1 for v in exact)


@given(values=st.lists(near, min_size=1, max_size=8), enough=st.integers(-80, 20))
def test_a_bound_on_the_lowest_bit_is_no_higher_than_the_bit(
    values: list[float], enough: int
) -> None:
    column = np.array(values)
    exact, bound = lowest_bit(column), lowest_bit(column, enough)
    if column.any():
        assert bound == exact or enough <= bound <= exact
    else:
        assert bound == enough
