"""Numbers since 1970 become instants: the nearest microsecond, exactly."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ids.source import micros_of

SECONDS = st.one_of(
    st.floats(-6e10, 2.5e11),
    st.floats(-1, 1),
    st.integers(-(10**6), 10**6).map(lambda k: k / 128),  # half a microsecond, exactly
    st.integers(-(10**9), 10**9).map(lambda k: (k + 0.5) / 1e6),  # nearly so
)


@pytest.mark.parametrize("units", [1, 1_000, 1_000_000])
@given(numbers=st.lists(SECONDS, min_size=1))
def test_a_number_becomes_the_nearest_microsecond_and_a_tie_the_even_one(
    units: int, numbers: list[float]
) -> None:
    found = micros_of(np.array(numbers), units)
    assert found.dtype == np.int64
    assert found.tolist() == [round(Fraction(x) * (1_000_000 // units)) for x in numbers]
