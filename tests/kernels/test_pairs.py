"""Double-double arithmetic against rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ids.kernels import wide_numbers as pairs

Pair = tuple[float, float]

EXPONENTS = st.integers(-60, 60)
# like the sums of a window: far from overflow and underflow
mantissas = st.one_of(st.just(0.0), st.floats(0.5, 1.0), st.floats(-1.0, -0.5))
doubles = st.builds(np.ldexp, mantissas, EXPONENTS).map(float)


@st.composite
def normalized(draw: st.DrawFn) -> Pair:
    high = draw(doubles)
    low = draw(mantissas) / 2 * float(np.spacing(abs(high)))
    return pairs.two_sum(high, low)  # type: ignore[no-any-return]


def exact(pair: Pair) -> Fraction:
    return Fraction(pair[0]) + Fraction(pair[1])


def is_normalized(pair: Pair) -> bool:
    return pair[0] + pair[1] == pair[0]


def within(found: Pair, value: Fraction, size: Fraction, bits: int) -> bool:
    return bool(abs(exact(found) - value) <= size / 2**bits + Fraction(1, 2**1000))


@given(a=doubles, b=doubles)
def test_two_sum_loses_nothing(a: float, b: float) -> None:
    assert exact(pairs.two_sum(a, b)) == Fraction(a) + Fraction(b)


@given(a=normalized(), b=normalized())
def test_addition_errs_by_the_last_bit_of_the_larger_operand(a: Pair, b: Pair) -> None:
    found = pairs.add(a, b)
    assert within(found, exact(a) + exact(b), max(abs(exact(a)), abs(exact(b))), 103)
    assert is_normalized(found)


@given(a=normalized(), x=doubles)
def test_times_a_double(a: Pair, x: float) -> None:
    value = exact(a) * Fraction(x)
    assert within(pairs.times(a, x), value, abs(value), 102)


@given(a=normalized(), b=normalized())
def test_times_a_pair(a: Pair, b: Pair) -> None:
    value = exact(a) * exact(b)
    assert within(pairs.multiply(a, b), value, abs(value), 101)


@given(a=normalized(), n=st.integers(1, 2**26))
def test_divided_by_a_count(a: Pair, n: int) -> None:
    value = exact(a) / n
    assert within(pairs.divide(a, float(n)), value, abs(value), 101)


@given(a=normalized(), k=st.integers(-400, 400))
def test_a_power_of_two_scales_exactly(a: Pair, k: int) -> None:
    assert exact(pairs.scale(a, 2.0**k)) == exact(a) * Fraction(2) ** k


@given(word=st.integers(-(2**63), 2**63 - 1))
def test_a_word_is_a_pair_exactly(word: int) -> None:
    assert exact(pairs.from_word(word)) == word


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@given(data=st.data())
def test_words_are_read_as_one_integer(count: int, data: st.DataObject) -> None:
    bits = data.draw(st.integers(1, 64 * count - 1))
    value = data.draw(st.integers(-(2**bits), 2**bits - 1))
    words = [(value >> (64 * w)) % 2**64 for w in range(count)]
    row = np.array([7, *words, 9], dtype=np.uint64).view(np.int64)
    assert within(pairs.from_words(row, 1, count), Fraction(value), Fraction(abs(value)), 102)


@given(
    total=normalized(), players=st.integers(1, 2**26), part=normalized(), m=st.integers(0, 2**26)
)
def test_a_deviation_is_rounded_once(total: Pair, players: int, part: Pair, m: int) -> None:
    mean, missing = pairs.mean_of(*total, float(players))
    average = exact(total) / players
    assert within((mean, missing), average, abs(average), 101)
    found = pairs.deviation_of(*part, float(m), mean, missing)
    value = exact(part) - m * average
    size = abs(exact(part)) + m * abs(average)
    assert abs(Fraction(found) - value) <= abs(value) / 2**52 + size / 2**100
