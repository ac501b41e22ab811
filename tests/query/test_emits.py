"""Which rows are inside at which emit.

time    -3 -2 -1  0  1  2  3        rows at -3, 0, 0, 1 with d = 4, slide = 2:
rows     ●        ●●  ●             emits at -2 (1 row), 0 (3), 2 (3)
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ids.errors import StateError
from ids.model import CountWindow, TimeWindow
from ids.query import CountEmits, EmitPlan
from ids.query.emits import plan_time


def bounds(emits: EmitPlan) -> list[tuple[int, int]]:
    return list(zip(emits.expired.tolist(), emits.arrived.tolist(), strict=True))


def starts(sizes: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def test_the_picture_above() -> None:
    emits = plan_time(TimeWindow(4, 2), np.array([-3, 0, 0, 1]), starts([4]))
    assert emits.instant is not None
    assert emits.instant.tolist() == [-2, 0, 2]
    assert bounds(emits) == [(0, 1), (0, 3), (1, 4)]
    assert emits.continues.tolist() == [False, True, True]


@given(
    sizes=st.lists(st.integers(0, 20), min_size=1, max_size=4),
    size=st.integers(1, 25),
    slide=st.integers(1, 8),
)
def test_a_count_window_speaks_after_every_slide_of_its_key(
    sizes: list[int], size: int, slide: int
) -> None:
    emits = CountEmits(CountWindow(size, slide), starts(sizes))
    right = [
        (key, first + max(0, end - size), first + end, end > slide)
        for key, (first, rows) in enumerate(zip(starts(sizes), sizes, strict=False))
        for end in range(slide, rows + 1, slide)
    ]
    assert len(emits) == len(right)
    found = zip(emits.key, emits.expired, emits.arrived, emits.continues, strict=True)
    assert [tuple(each) for each in found] == right


@given(
    times=st.lists(st.lists(st.integers(-40, 40), max_size=12).map(sorted), min_size=1, max_size=3),
    slide=st.integers(1, 7),
    wide=st.integers(1, 5),
)
def test_a_time_window_speaks_at_every_instant_that_is_not_empty(
    times: list[list[int]], slide: int, wide: int
) -> None:
    every = [t for each in times for t in each]
    last = max(every, default=0)
    emits = plan_time(
        TimeWindow(wide * slide, slide),
        np.array(every, np.int64),
        starts([len(each) for each in times]),
    )
    right = []
    for key, (first, mine) in enumerate(zip(starts([len(e) for e in times]), times, strict=False)):
        for instant in range(-210, 210):
            in_time = instant % slide == 0 and instant - slide < last
            inside = [i for i, t in enumerate(mine) if instant - wide * slide < t <= instant]
            if in_time and inside:
                right.append((key, instant, first + inside[0], first + inside[-1] + 1))
    assert emits.instant is not None
    found = zip(emits.key, emits.instant, emits.expired, emits.arrived, strict=True)
    assert [tuple(each) for each in found] == right
    before = [(k, t) for k, t, _, _ in right]
    assert emits.continues.tolist() == [(k, t - slide) in before for k, t in before]


def test_more_emits_than_anyone_wants_are_refused() -> None:
    day = 86_400_000_000
    with pytest.raises(StateError, match="choose a longer slide or a shorter window"):
        plan_time(TimeWindow(day, 1), np.array([0, day]), starts([2]))


def test_rows_of_several_keys_may_lie_any_number_of_slides_apart() -> None:
    times = np.array([-(2**61), 2**61, 2**61 + 1, -(2**61), -(2**61) + 1, 2**61])
    emits = plan_time(TimeWindow(2, 1), times, starts([3, 1, 2]))
    assert emits.instant is not None
    first, last = -(2**61), 2**61
    assert emits.instant.tolist() == [
        *(first, first + 1, last, last + 1),
        *(first, first + 1),
        *(first + 1, first + 2, last, last + 1),
    ]
    assert bounds(emits) == [
        *((0, 1), (0, 1), (1, 2), (1, 3)),
        *((3, 4), (3, 4)),
        *((4, 5), (4, 5), (5, 6), (5, 6)),
    ]
