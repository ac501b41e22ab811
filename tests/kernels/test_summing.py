"""Signed rows, merges, slides and replays against a recount in Python integers."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ids.kernels import (
    Bounds,
    Cut,
    Lists,
    Rows,
    add_delta,
    add_rows,
    apply_signed,
    centre_block,
    merge_summaries,
    replay,
)
from ids.kernels.slide import slide
from ids.model import DIGIT_BITS, Scale
from ids.state import cut_column, empty_emits

SCALES = [
    Scale(0, 0, 0),
    Scale(40, 2, 1, (0, 0)),
    Scale(40, 2, 2, (0, 0)),
    Scale(45, 3, 2, (0, 0, 0)),
    Scale(34, 2, 4, (3, -5)),
]
EVERYONE = np.zeros(0, np.bool_)
ATOMS = 4

values = st.one_of(st.floats(-1e9, 1e9), st.integers(-9, 9).map(float), st.just(1e9 + 1e-3))


def centre_of(scale: Scale) -> npt.NDArray[np.int64]:
    return np.array(scale.centre or (0,), np.int64)


def whole(digits: npt.NDArray[np.int64]) -> int:
    """Return a row's digits as one integer in grid units."""
    return sum(int(q) << (DIGIT_BITS * (len(digits) - 1 - j)) for j, q in enumerate(digits))


def recounted(rows: Sequence[npt.NDArray[np.int64]], scale: Scale) -> tuple[int, list[int]]:
    """Return m, Σ q, Σ q², Σ (q - centre)³ … of these rows."""
    if not scale.digits:
        return len(rows), []
    numbers = [whole(row) for row in rows]
    middle = whole(centre_of(scale))
    sums = [sum(numbers), sum(q * q for q in numbers)][: scale.degree]
    sums += [sum((q - middle) ** d for q in numbers) for d in range(3, scale.degree + 1)]
    return len(rows), sums


def of_atom(atom: npt.NDArray[np.uint32], digits: npt.NDArray[np.int64], a: int) -> list[object]:
    return [digits[i] for i in np.flatnonzero(atom == a)]


def drawn(
    data: st.DataObject, scale: Scale, most: int = 12
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    column = np.array(data.draw(st.lists(values, max_size=most)), np.float64)
    atoms = data.draw(
        st.lists(st.integers(0, ATOMS - 1), min_size=len(column), max_size=len(column))
    )
    return np.array(atoms, np.uint32), column, cut_column(column, scale)


@pytest.mark.parametrize("scale", SCALES)
@given(data=st.data())
@settings(max_examples=60)
def test_signed_rows_are_a_recount_and_their_own_inverse(scale: Scale, data: st.DataObject) -> None:
    atom, _, digits = drawn(data, scale)
    players = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(atom), max_size=len(atom))), np.bool_
    )
    taking = players if data.draw(st.booleans()) else EVERYONE
    summaries = np.zeros((ATOMS, scale.words), np.int64)
    apply_signed(summaries, atom, digits, taking, centre_of(scale), scale.layout, 1)
    for a in range(ATOMS):
        rows = [
            digits[i] for i in range(len(atom)) if atom[i] == a and (not len(taking) or taking[i])
        ]
        assert scale.decode(summaries[a]) == recounted(rows, scale)
    apply_signed(summaries, atom, digits, taking, centre_of(scale), scale.layout, -1)
    assert not summaries.any()


@pytest.mark.parametrize("scale", SCALES)
@given(data=st.data())
@settings(max_examples=60)
def test_merging_and_adding_carry_over_word_bounds(scale: Scale, data: st.DataObject) -> None:
    atom, _, digits = drawn(data, scale)
    summaries = np.zeros((ATOMS, scale.words), np.int64)
    apply_signed(summaries, atom, digits, EVERYONE, centre_of(scale), scale.layout, 1)
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, ATOMS - 1)))), np.int64)
    total = np.zeros(scale.words, np.int64)
    merge_summaries(summaries, chosen, scale.layout, total)
    rows = [digits[i] for i in np.flatnonzero(np.isin(atom, chosen))]
    assert scale.decode(total) == recounted(rows, scale)
    twice = summaries.copy()
    add_rows(twice, summaries, scale.layout)
    for a in range(ATOMS):
        count, sums = scale.decode(summaries[a])
        assert scale.decode(twice[a]) == (2 * count, [2 * s for s in sums])


@pytest.mark.parametrize("scale", SCALES[1:4])
@given(data=st.data())
@settings(max_examples=40)
def test_a_delta_reaches_its_atoms_its_marginals_and_the_window(
    scale: Scale, data: st.DataObject
) -> None:
    atom, _, digits = drawn(data, scale)
    holds = np.array(
        data.draw(
            st.lists(
                st.lists(st.booleans(), min_size=3, max_size=3), min_size=ATOMS, max_size=ATOMS
            )
        ),
        np.bool_,
    )
    delta = np.zeros((ATOMS, scale.words), np.int64)
    apply_signed(delta, atom, digits, EVERYONE, centre_of(scale), scale.layout, 1)
    touched = np.flatnonzero(delta.any(axis=1))
    state = [np.zeros((n, scale.words), np.int64) for n in (ATOMS, 3, 1)]
    add_delta(
        delta[touched], touched, holds[touched], scale.layout, state[0], state[1], state[2][0]
    )
    assert scale.decode(state[2][0]) == recounted(list(digits), scale)
    for k in range(3):
        rows = [digits[i] for i in range(len(atom)) if holds[atom[i], k]]
        assert scale.decode(state[1][k]) == recounted(rows, scale)
    assert (state[0] == delta).all()


@pytest.mark.parametrize("scale", SCALES)
@given(data=st.data(), window=st.integers(1, 8))
@settings(max_examples=40)
def test_sliding_leaves_the_last_window(scale: Scale, data: st.DataObject, window: int) -> None:
    atom, _, digits = drawn(data, scale, 30)
    summaries = np.zeros((ATOMS, scale.words), np.int64)
    slide(summaries, atom, digits, window, centre_of(scale), scale.layout)
    for a in range(ATOMS):
        rows = of_atom(atom[-window:], digits[-window:], a)
        assert scale.decode(summaries[a]) == recounted(rows, scale)  # type: ignore[arg-type]


def listed(groups: list[list[int]]) -> Lists:
    starts = np.concatenate([[0], np.cumsum([len(g) for g in groups])]).astype(np.uint32)
    return Lists(starts, np.array([m for g in groups for m in g], np.uint32))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("per_item", [True, False])
@given(data=st.data())
@settings(max_examples=40)
def test_every_emit_of_a_replay_is_a_recount_of_its_rows(
    scale: Scale, per_item: bool, data: st.DataObject
) -> None:
    atom, column, digits = drawn(data, scale, 30)
    bounds = sorted(data.draw(st.lists(st.integers(0, len(atom)), min_size=1, max_size=8)))
    widths = data.draw(st.lists(st.integers(0, 12), min_size=len(bounds), max_size=len(bounds)))
    arrived = np.array(bounds, np.uint64)
    expired = np.maximum.accumulate([max(0, b - w) for b, w in zip(bounds, widths, strict=True)])
    items = [list(range(ATOMS)), [0], [1, 3], []]
    if per_item:
        touched = listed([[k for k, item in enumerate(items) if a in item] for a in range(ATOMS)])
        merged, count = listed([[k] for k in range(len(items))]), len(items)
    else:
        touched, merged, count = listed([[a] for a in range(ATOMS)]), listed(items), ATOMS
    summaries = np.zeros((count, scale.words), np.int64)
    pointers = np.zeros(2, np.uint64)
    taken = np.zeros((len(items), scale.words, len(bounds)), np.int64)
    cut = Cut(2.0**-scale.exponent, centre_of(scale), scale.layout)
    middle = len(bounds) // 2
    for part in (slice(0, middle), slice(middle, len(bounds))):
        limits = Bounds(arrived[part], expired.astype(np.uint64)[part])
        replay(
            summaries, pointers, Rows(atom, column), cut, limits, touched, merged, taken[:, :, part]
        )
    for e in range(len(bounds)):
        inside = range(int(expired[e]), int(arrived[e]))
        for k, item in enumerate(items):
            rows = [digits[i] for i in inside if atom[i] in item]
            assert scale.decode(taken[k, :, e]) == recounted(rows, scale)
    check_centring(taken, scale)


def check_centring(taken: npt.NDArray[np.int64], scale: Scale) -> None:
    """Compare means, central moments and deviations of exact sums with rationals."""
    emits = empty_emits(scale, len(taken) - 1, taken.shape[2])
    centre_block(taken, centre_of(scale), scale.layout, emits)
    unit = Fraction(1, 2 ** (DIGIT_BITS * scale.digits))
    for e in range(taken.shape[2]):
        players, sums = scale.decode(taken[0, :, e])
        assert emits.players[e] == players
        if not scale.digits or not players:
            assert not emits.central[:, e].any()
            continue
        raw = moments(players, sums, scale, unit)
        mean = raw[1] / players
        assert near(emits.total[e], raw[1], abs(raw[1]))
        assert near(emits.mean[e], mean, abs(mean))
        window = about(raw, mean)
        for d in range(2, scale.degree + 1):
            assert near(emits.central[d, e], window[d], abs(window[d]) + lost(players, d, scale))
        for k in range(len(taken) - 1):
            members, own = scale.decode(taken[k + 1, :, e])
            assert emits.members[k, e] == members
            part = moments(members, own, scale, unit)
            assert near(emits.item_total[k, e], part[1], abs(part[1]))
            centred = about(part, mean)
            for d in range(1, scale.degree + 1):
                share = Fraction(members, players) * window[d]
                size = abs(centred[d]) + abs(share) + lost(players, d, scale)
                assert near(emits.deviation[d - 1, k, e], centred[d] - share, size)


def moments(count: int, sums: list[int], scale: Scale, unit: Fraction) -> list[Fraction]:
    """Return raw power sums in units of 2**exponent; powers from 3 are stored about the centre."""
    raw = [Fraction(count), *(s * unit ** (d + 1) for d, s in enumerate(sums[:2]))]
    if scale.degree > 2:
        middle = whole(centre_of(scale)) * unit
        lower = about(raw, middle)
        centred = [*lower, *(s * unit ** (d + 3) for d, s in enumerate(sums[2:]))]
        raw = about(centred, -middle)
    return raw


def about(raw: list[Fraction], point: Fraction) -> list[Fraction]:
    """Return power sums about another point."""
    return [
        sum((comb(d, i) * (-point) ** (d - i) * raw[i] for i in range(d + 1)), Fraction(0))
        for d in range(len(raw))
    ]


def lost(players: int, d: int, scale: Scale) -> Fraction:
    """Bound the rounding error of pairs for values below 1; squares are centred in integers."""
    exact = d == 2 and scale.degree == 2
    return Fraction(0) if exact else Fraction(players, 2**50)


def near(found: float, exact: Fraction, size: Fraction) -> bool:
    return abs(Fraction(float(found)) - exact) <= size / 2**48
