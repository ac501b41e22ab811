"""Scales: what they hold, how they grow, and that sums survive it to the last bit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ids.kernels import apply_signed
from ids.model import DIGIT_BITS, Scale, lowest_bit
from ids.state import cut_column

EVERYONE = np.zeros(0, np.bool_)
plain = st.one_of(
    st.floats(-1e9, 1e9).filter(lambda v: v == 0 or abs(v) > 1e-6), st.integers(-9, 9).map(float)
)
columns = st.lists(plain, min_size=1, max_size=8).map(np.array)


def fitted(values: np.ndarray, degree: int, margin: int = 0) -> Scale:
    largest = float(np.abs(values).max(initial=0.0))
    return Scale.fit(values, largest, degree, margin=margin, lowest=lowest_bit(values))


def summed(values: np.ndarray, scale: Scale) -> np.ndarray:
    total = np.zeros((1, scale.words), np.int64)
    centre = np.array(scale.centre, np.int64)
    atom = np.zeros(len(values), np.uint32)
    apply_signed(total, atom, cut_column(values, scale), EVERYONE, centre, scale.layout, 1)
    return total


@pytest.mark.parametrize("degree", [1, 2, 4])
@given(values=columns, margin=st.integers(0, 20))
def test_a_fitted_scale_holds_its_values_to_the_last_bit(
    degree: int, values: np.ndarray, margin: int
) -> None:
    scale = fitted(values, degree, margin)
    assert scale.holds(values, float(np.abs(values).max()))
    assert np.abs(values).max() < 2.0**scale.exponent
    assert scale.values_of(cut_column(values, scale)).tolist() == values.tolist()


@pytest.mark.parametrize("end", [1.7976931348623157e308, -1.7976931348623157e308, 1e308, 5e-324])
def test_the_ends_of_the_doubles_come_back_from_their_digits(end: float) -> None:
    column = np.array([end, end / 8, 0.0])
    scale = fitted(column, 2)
    assert scale.values_of(cut_column(column, scale)).tolist() == column.tolist()


@pytest.mark.parametrize("degree", [1, 2, 4])
@given(values=columns, more=columns, up=st.integers(0, 45), down=st.integers(0, 45))
@settings(max_examples=80)
def test_sums_carry_over_to_a_wider_scale(
    degree: int, values: np.ndarray, more: np.ndarray, up: int, down: int
) -> None:
    scale = fitted(values, degree)
    more = more * 2.0**up if up > down else more / 2.0**down
    largest = float(np.abs(more).max())
    wider = scale.widen(largest, lowest_bit(more, scale.grid))
    if wider is None:
        return
    assert wider.holds(more, largest)
    assert wider.holds(values, float(np.abs(values).max()))
    moved = scale.convert(summed(values, scale), wider)
    finer = scale.grid - wider.grid
    count, sums = scale.decode(summed(values, scale)[0])
    assert wider.decode(moved[0]) == (count, [s << (finer * (d + 1)) for d, s in enumerate(sums)])
    # as good as cut under the wider scale from the start: digits added hold 0 in every row
    below = finer // DIGIT_BITS
    top = wider.digits - scale.digits - below
    padded = np.pad(cut_column(values, scale), ((0, 0), (top, below)))
    again = np.zeros((1, wider.words), np.int64)
    centre = np.array(wider.centre, np.int64)
    atom = np.zeros(len(values), np.uint32)
    apply_signed(again, atom, padded, EVERYONE, centre, wider.layout, 1)
    assert (again == moved).all()


@given(values=columns)
def test_a_scale_that_suffices_is_left_as_it_is(values: np.ndarray) -> None:
    scale = fitted(values, 2)
    assert scale.widen(float(np.abs(values).max()), lowest_bit(values, scale.grid)) == scale
    assert scale.widen(0.0, scale.grid) == scale


def test_digits_are_not_without_end() -> None:
    scale = fitted(np.array([1.0]), 2)
    assert scale.widen(1e300, scale.grid) is None
    assert scale.widen(0.0, -1075) is None
    most = Scale.fit(np.array([1e300, 1e-300]), 1e300, 2, lowest=-1074)
    assert most.digits == 5
    assert most.exponent == int(np.frexp(1e300)[1])


@pytest.mark.parametrize("value", [1e-300, 5e-324, 2.0**-1000, 1.7e308, 2.0**1023])
def test_the_ends_of_the_doubles_are_held(value: float) -> None:
    column = np.array([value, -value])
    scale = fitted(column, 2, margin=8)
    assert scale.values_of(cut_column(column, scale)).tolist() == column.tolist()
    _, sums = scale.decode(summed(column, scale)[0])
    assert sums[0] == 0
    assert sums[1] * Fraction(2) ** (2 * scale.grid) == 2 * Fraction(value) ** 2


def test_a_column_of_zeros_has_a_scale() -> None:
    assert fitted(np.zeros(3), 2).digits == 2
    assert fitted(np.zeros(0), 2).digits == 2
    assert Scale.fit(np.zeros(3), 0.0, 0, lowest=0) == Scale(0, 0, 0)
