from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from ids.exact import LIMB_BITS
from ids.exact.exact_sums import multiply, normalise, scale, subtract, to_pair

HALF = 2 ** (LIMB_BITS - 1)
raw = st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=20)
small = st.lists(st.integers(-(2**54), 2**54), min_size=1, max_size=18)
counts = st.integers(0, 2**26)


def arrays(limbs: list[int]) -> list[np.ndarray]:
    return [np.array([limb], dtype=np.int64) for limb in limbs]


def number(limbs: list) -> int:
    whole = 0
    for limb in limbs:
        whole = (whole << LIMB_BITS) + int(np.asarray(limb).reshape(-1)[0])
    return whole


def limbs_of(whole: int) -> list[np.ndarray]:
    """Return an integer as normalised limbs."""
    raw: list[int] = []
    sign, rest = (-1 if whole < 0 else 1), abs(whole)
    while rest or not raw:
        raw.insert(0, sign * (rest & (2**LIMB_BITS - 1)))
        rest >>= LIMB_BITS
    return normalise(arrays(raw))


@given(raw)
def test_normalising_keeps_the_number_and_bounds_its_limbs(limbs: list[int]) -> None:
    found = normalise(arrays(limbs))
    assert number(found) == number(limbs)
    assert len(found) == len(limbs) + 1
    assert all(-HALF <= int(limb[0]) < HALF for limb in found[1:])
    assert abs(int(found[0][0])) <= abs(limbs[0]) // 2**LIMB_BITS + 2**7


@given(small, small)
def test_a_difference_is_the_difference(a: list[int], b: list[int]) -> None:
    assert number(subtract(arrays(a), arrays(b))) == number(a) - number(b)


@given(small, small)
def test_a_product_is_the_product(a: list[int], b: list[int]) -> None:
    found = multiply(normalise(arrays(a)), normalise(arrays(b)))
    assert number(normalise(scale(found, 2))) == 2 * number(a) * number(b)


@given(small, counts)
def test_a_multiple_is_the_multiple(a: list[int], count: int) -> None:
    found = scale(normalise(arrays(a)), np.array([count]))
    assert number(normalise(found)) == number(a) * count


def pair_of(whole: int, unit: int = 0) -> tuple[float, float]:
    high, low = to_pair(limbs_of(whole), unit)
    return float(high[0]), float(low[0])


@given(st.integers(-(2**105), 2**105), st.integers(-300, 100))
@example(2**105 - 1, 0)
@example(-1, 0)
@example(2**53 + 1, -84)
@example(2**84 - 2**27, 0)
def test_a_pair_of_up_to_105_bits_is_exact(whole: int, unit: int) -> None:
    high, low = pair_of(whole, unit)
    exact = Fraction(whole) * Fraction(2) ** unit
    assert high == float(exact)
    assert Fraction(high) + Fraction(low) == exact


@given(st.integers(0, 104), st.integers(0, 104), st.integers(0, 104), st.sampled_from([-1, 1]))
def test_a_pair_of_few_bits_far_apart_is_exact(i: int, j: int, k: int, sign: int) -> None:
    whole = 2**i + sign * 2**j - 2**k
    high, low = pair_of(whole)
    assert high == float(whole)
    assert int(high) + int(low) == whole


@given(st.integers(-(2**400), 2**400))
def test_a_longer_pair_is_close(whole: int) -> None:
    high, low = pair_of(whole, -400)
    exact = Fraction(whole, 2**400)
    assert abs(Fraction(high) + Fraction(low) - exact) <= abs(exact) / 2**104
    assert high + low == high


def test_nothing_is_a_plain_zero() -> None:
    high, low = pair_of(0)
    assert (high.hex(), low.hex()) == ("0x0.0p+0", "0x0.0p+0")
