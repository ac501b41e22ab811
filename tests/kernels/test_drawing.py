"""Samples drawn from a sliding window are those found by sorting each window."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from ids.kernels import Keys, Taken, draw

Integers = npt.NDArray[np.int64]


def sorted_anew(
    keys: Keys, first: int, stop: int, size: int, k: int
) -> tuple[list[int], list[int], int, int]:
    """Return (sample, extremes, row of the low end, row of the high end)."""
    rows = np.arange(first, stop)
    players = rows[keys.rank[rows] >= 0] if len(keys.rank) else rows[:0]
    ranked = players[np.argsort(keys.rank[players])]
    whole = [*ranked[::-1][:k], *(row for row in ranked[:k] if row not in ranked[::-1][:k])]
    others = np.setdiff1d(rows, whole)
    sample = others[np.argsort(keys.priority[others])[::-1]][:size]
    if not len(ranked):
        return sample.tolist(), [], -1, -1
    edge = min(max(k, 1), len(ranked))
    return sample.tolist(), whole, ranked[edge - 1], ranked[-edge]


def slid(keys: Keys, bounds: list[tuple[int, int]], size: int, k: int, block: int) -> None:
    lists = tuple(np.empty(8, np.int64) for _ in range(3))
    states = np.zeros((3, 3), np.int64)
    for at in range(0, len(bounds), block):
        here = bounds[at : at + block]
        expired, arrived = (np.array(ends, np.int64) for ends in zip(*here, strict=True))
        taken = Taken(
            np.full((len(here), size), -9, np.int64),
            np.full((len(here), 2 * k), -9, np.int64),
            *(np.full(len(here), -9, np.int64) for _ in range(3)),
        )
        lists = draw(keys, arrived, expired, k, lists, states, taken)
        for e, (first, stop) in enumerate(here):
            sample, whole, low, high = sorted_anew(keys, first, stop, size, k)
            assert taken.sample[e].tolist() == sample
            assert taken.whole[e][: taken.held[e]].tolist() == whole
            assert (taken.low[e], taken.high[e]) == (low, high)


def keys_of(rows: int, values: str, seed: int = 0) -> Keys:
    rng = np.random.default_rng(seed)
    priority = rng.integers(-(2**63), 2**63 - 1, rows)
    rank = rng.permutation(rows)
    if values in ("rising", "falling"):
        rank = np.arange(rows) if values == "rising" else np.arange(rows)[::-1].copy()
    if values == "mostly NULL":
        rank[rng.random(rows) < 0.999] = -1
    if values == "no values":
        rank = rank[:0]
    return Keys(priority, rank)


@pytest.mark.parametrize("values", ["random", "rising", "falling", "mostly NULL", "no values"])
@pytest.mark.parametrize("slide", [60, 400, 6_000])
def test_a_sliding_window_is_drawn_as_if_sorted(values: str, slide: int) -> None:
    rows, window, size, k = 30_000, 12_000, 256, 0 if values == "no values" else 32
    bounds = [(max(0, stop - window), stop) for stop in range(window // 4, rows, slide)]
    slid(keys_of(rows, values), bounds, size, k, block=5)


@pytest.mark.parametrize("values", ["random", "rising", "falling"])
def test_rows_that_come_one_by_one_are_swept_too(values: str) -> None:
    window, size, k = 2_500, 40, 5
    keys = keys_of(9_000, values, seed=1)
    lists = tuple(np.empty(8, np.int64) for _ in range(3))
    states = np.zeros((3, 3), np.int64)
    arrived = np.arange(window, 9_000)
    taken = Taken(
        np.empty((len(arrived), size), np.int64),
        np.empty((len(arrived), 2 * k), np.int64),
        *(np.empty(len(arrived), np.int64) for _ in range(3)),
    )
    draw(keys, arrived, arrived - window, k, lists, states, taken)
    for e in range(0, len(arrived), 97):
        sample, whole, low, high = sorted_anew(keys, e, e + window, size, k)
        assert taken.sample[e].tolist() == sample
        assert taken.whole[e][: taken.held[e]].tolist() == whole
        assert (taken.low[e], taken.high[e]) == (low, high)


def test_windows_of_keys_that_share_no_row_share_no_sample() -> None:
    keys = keys_of(6_000, "random", seed=2)
    bounds = [(0, 900), (0, 1_000), (1_000, 1_700), (1_100, 2_000), (4_000, 4_500), (4_450, 6_000)]
    slid(keys, bounds, 20, 2, block=4)
