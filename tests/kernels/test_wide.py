"""Wide integers against Python integers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ids.kernels.wide_numbers import fma, mul_add, power_add
from ids.model import DIGIT_BITS, Scale

words = st.integers(-(2**63), 2**63 - 1)


@cache
def kernel(name: str) -> Callable[..., Any]:
    """Compile a function that calls an intrinsic, which only compiled code can do."""
    bodies = {
        "mul_add": lambda low, high, x, y: mul_add(low, high, x, y),
        "fma": lambda x, y, z: fma(x, y, z),
        "power_add": lambda a, r, o, d, layout, s: power_add(
            a, np.int64(r), np.int64(o), d, layout, np.int64(s)
        ),
    }
    return numba.njit(bodies[name])  # type: ignore[no-any-return]


def signed(value: int, bits: int) -> int:
    value %= 2**bits
    return value - 2**bits if value >= 2 ** (bits - 1) else value


@given(low=words, high=words, x=words, y=words)
def test_a_product_is_added_to_128_bits(low: int, high: int, x: int, y: int) -> None:
    total = (low % 2**64) + (high << 64) + x * y
    found = kernel("mul_add")(low, high, x, y)
    assert found == (signed(total, 64), signed(total >> 64, 64))


@given(x=st.floats(-1e6, 1e6), y=st.floats(-1e6, 1e6))
def test_fma_knows_what_a_product_misses(x: float, y: float) -> None:
    product = x * y
    missing = kernel("fma")(x, y, -product)
    whole = Fraction(product) + Fraction(missing)
    assert abs(whole - Fraction(x) * Fraction(y)) <= Fraction(1, 2**1070)


@pytest.mark.parametrize(("digits", "degree"), [(1, 3), (2, 4), (3, 4), (2, 6), (3, 6)])
@given(data=st.data())
def test_powers_are_added_and_taken_away(digits: int, degree: int, data: st.DataObject) -> None:
    layout = Scale(0, digits, degree).layout
    width, powers = len(layout[3]), degree - 2
    rows = data.draw(
        st.lists(
            st.lists(
                st.integers(-(2**DIGIT_BITS), 2**DIGIT_BITS), min_size=digits, max_size=digits
            ),
            min_size=1,
            max_size=5,
        )
    )
    signs = data.draw(st.lists(st.sampled_from([1, -1]), min_size=len(rows), max_size=len(rows)))
    accumulators = np.zeros((3, 2 + powers * width), np.int64)
    for row, sign in zip(rows, signs, strict=True):
        kernel("power_add")(accumulators, 1, 2, np.array(row), layout, sign)
    values = [sum(q << (DIGIT_BITS * (digits - 1 - j)) for j, q in enumerate(row)) for row in rows]
    for p in range(powers):
        start = 2 + p * width
        found = [int(w) % 2**64 for w in accumulators[1, start : start + width]]
        total = signed(sum(w << (64 * k) for k, w in enumerate(found)), 64 * width)
        assert total == sum(s * v ** (p + 3) for s, v in zip(signs, values, strict=True))
    assert not accumulators[[0, 2]].any()
    assert not accumulators[1, :2].any()
