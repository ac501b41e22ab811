"""The sampling kernels against slow references: count all newer rows, sort everything."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evaluation.rq4.samplers import slide_sample
from ids.kernels import (
    highest,
    highest_by_stratum,
    highest_of_copies,
    likely_highest,
    likely_survivors,
    mix,
    survivors,
    survivors_by_stratum,
    survivors_of_copies,
)
from tests.oracles.domination import undominated

WORD = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15

few_floats = st.lists(st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.5, 3.0, 1e300]), max_size=40)
few_wholes = st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), max_size=40)
priorities = st.one_of(
    few_floats.map(lambda v: np.array(v, np.float64)),
    few_wholes.map(lambda v: np.array(v, np.int64)),
)


def finalised(z: int) -> int:
    """Apply SplitMix64's finaliser, in Python integers."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & WORD
    return z ^ (z >> 31)


def drawn(seed: int, number: int) -> int:
    return finalised((finalised(seed + GOLDEN & WORD) + (number + 1) * GOLDEN) & WORD)


def mixed(seed: int, numbers: Any) -> np.ndarray:
    out = np.empty(len(numbers))
    mix(np.uint64(seed), np.array(numbers, np.int64), out)
    return out


def by_sorting(priority: np.ndarray, size: int) -> list[bool]:
    order = sorted(range(len(priority)), key=lambda i: (priority[i], i), reverse=True)
    return [i in order[:size] for i in range(len(priority))]


@given(st.integers(0, WORD), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_priorities_are_splitmix64_to_53_bits(seed: int, numbers: list[int]) -> None:
    expected = [(drawn(seed, number) >> 11) / 2**53 for number in numbers]
    assert mixed(seed, numbers).tolist() == expected


def test_priorities_are_uniform_and_seeds_share_no_stretch() -> None:
    rows = 200_000
    first, second = mixed(0, np.arange(rows)), mixed(1, np.arange(rows))
    counts = np.bincount((first * 64).astype(int), minlength=64)
    assert ((counts - rows / 64) ** 2 / (rows / 64)).sum() < 63 + 5 * np.sqrt(2 * 63)
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / np.sqrt(rows)
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 5 / np.sqrt(rows)
    assert not set(first) & set(second)


@given(priorities, st.integers(0, 45))
def test_survivors_are_those_that_few_newer_rows_dominate(priority: np.ndarray, size: int) -> None:
    keep = np.zeros(len(priority), np.bool_)
    assert survivors(priority, size, keep) == keep.sum()
    assert keep.tolist() == undominated(priority, size)


@given(priorities, st.integers(1, 6), st.integers(0, 10), st.randoms(use_true_random=False))
def test_strata_are_swept_by_themselves(
    priority: np.ndarray, strata: int, size: int, random: Any
) -> None:
    stratum = np.array([random.randrange(strata) for _ in priority], np.int32)
    keep = np.zeros(len(priority), np.bool_)
    assert survivors_by_stratum(priority, stratum, strata, size, keep) == keep.sum()
    for s in range(strata):
        assert keep[stratum == s].tolist() == undominated(priority[stratum == s], size)


@given(st.integers(0, 1000), st.integers(1, 40), st.integers(0, 300))
def test_likely_survivors_leave_no_survivor_out(seed: int, size: int, rows: int) -> None:
    priority = mixed(seed, np.arange(rows))
    exact, keep = np.zeros((2, rows), np.bool_)
    survivors(priority, size, exact)
    assert likely_survivors(priority, size, keep) == keep.sum()
    assert not np.any(exact & ~keep)


@given(
    st.lists(st.sampled_from([0.0, 2.0**-53, 0.5, 1 - 2.0**-53, 1 - 2.0**-52]), max_size=30),
    st.integers(1, 5),
)
def test_likely_survivors_stand_the_ends_and_ties(drawn: list[float], size: int) -> None:
    priority = np.array(drawn, np.float64)
    exact, keep = np.zeros((2, len(drawn)), np.bool_)
    survivors(priority, size, exact)
    likely_survivors(priority, size, keep)
    assert not np.any(exact & ~keep)
    likely_highest(priority, size, keep)
    highest(priority, size, exact)
    assert not np.any(exact & ~keep)


def test_likely_survivors_keep_few_rows_more() -> None:
    priority = mixed(3, np.arange(100_000))
    exact, keep = np.zeros((2, len(priority)), np.bool_)
    for size in (16, 256, 2048):
        expected = size * (1 + np.log(len(priority) / size))
        assert abs(survivors(priority, size, exact) - expected) < 5 * np.sqrt(expected)
        assert likely_survivors(priority, size, keep) < 1.04 * exact.sum() + 16
        likely_highest(priority, size, keep)
        assert size <= keep.sum() < 1.04 * size + 16


@given(priorities, st.integers(0, 45))
def test_highest_is_the_head_of_the_sorted_rows(priority: np.ndarray, size: int) -> None:
    keep = np.ones(len(priority), np.bool_)
    highest(priority, size, keep)
    assert keep.tolist() == by_sorting(priority, size)


@given(st.integers(0, 50), st.integers(0, 60), st.integers(1, 5), st.integers(0, 20))
def test_highest_of_each_stratum(seed: int, rows: int, strata: int, size: int) -> None:
    priority = mixed(seed, np.arange(rows))
    stratum = (mixed(seed + 1, np.arange(rows)) * strata).astype(np.int32)
    keep = np.ones(rows, np.bool_)
    room = np.bincount(stratum, minlength=strata)
    highest_by_stratum(priority, stratum, size, room, keep)
    for s in range(strata):
        assert keep[stratum == s].tolist() == by_sorting(priority[stratum == s], size)


@given(st.integers(0, WORD), st.integers(1, 6), st.integers(1, 30))
def test_copies_rank_rows_by_priorities_of_their_own(seed: int, copies: int, rows: int) -> None:
    start = finalised(seed + GOLDEN & WORD)
    ranks = np.array(
        [
            [finalised(finalised(start + c & WORD) + (i + 1) * GOLDEN & WORD) for i in range(rows)]
            for c in range(copies)
        ],
        np.uint64,
    )
    keep = np.zeros(rows, np.bool_)
    survivors_of_copies(np.uint64(seed), copies, np.arange(rows), keep)
    assert keep.tolist() == np.any([undominated(rank, 1) for rank in ranks], axis=0).tolist()
    places = np.zeros(copies, np.int64)
    highest_of_copies(np.uint64(seed), copies, np.arange(rows), places)
    assert places.tolist() == ranks.argmax(axis=1).tolist()


@given(st.lists(st.integers(0, 25), min_size=1, max_size=5), st.integers(1, 8), st.integers(0, 99))
def test_the_sample_of_a_union_is_drawn_from_the_parts_samples(
    parts: list[int], size: int, seed: int
) -> None:
    priority = mixed(seed, np.arange(sum(parts)))
    whole = np.zeros(len(priority), np.bool_)
    highest(priority, size, whole)
    merged = np.zeros(0)
    for start, rows in zip(np.cumsum([0, *parts]), parts, strict=False):
        own = priority[start : start + rows]
        keep = np.zeros(rows, np.bool_)
        highest(own, size, keep)
        merged = np.append(merged, own[keep])
    keep = np.zeros(len(merged), np.bool_)
    highest(merged, size, keep)
    assert merged[keep].tolist() == priority[whole].tolist()


@given(st.integers(0, 99), st.integers(1, 150), st.integers(1, 40), st.integers(1, 12))
def test_sliding_keeps_the_undominated_rows_of_the_window(
    seed: int, rows: int, window: int, size: int
) -> None:
    priority = mixed(seed, np.arange(rows))
    keep = undominated(priority, size)
    wanted = {i for i in range(max(0, rows - window), rows) if keep[i]}
    room = 4 * size + 20
    sequence, drawn = np.empty(room, np.int64), np.empty(room)
    held = slide_sample(np.uint64(seed), rows, window, size, sequence, drawn)
    assert wanted <= set(sequence[:held].tolist())
    assert np.all(np.diff(sequence[:held]) > 0)
    assert drawn[:held].tolist() == priority[sequence[:held]].tolist()
