"""Sliding columns beside a list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ids.state.retained_rows import Sliding

steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 9)),
        st.tuples(st.just("drop"), st.integers(0, 9)),
        st.tuples(st.just("keep"), st.integers(0, 9)),
        st.tuples(st.just("merge"), st.integers(0, 9)),
    ),
    max_size=30,
)


@given(steps=steps, seed=st.integers(0, 2**32), expected=st.integers(0, 40))
def test_rows_come_and_go_as_in_a_list(
    steps: list[tuple[str, int]], seed: int, expected: int
) -> None:
    rng = np.random.default_rng(seed)
    sliding = Sliding()
    sliding.expected = expected
    model: list[tuple[int, int]] = []
    for number, (what, count) in enumerate(steps):
        if what in ("append", "merge"):
            times = np.sort(rng.integers(0, 20, count)) + (100 * number if what == "append" else 0)
            block = {"time": times, "row": np.stack([times, np.full(count, number)], axis=1)}
            rows = [(int(t), number) for t in times]
            if what == "append" or not len(sliding):
                sliding.append(block)
                model += rows
            else:
                sliding.merge(block, "time")
                model = sorted(model + rows, key=lambda row: row[0])
        elif what == "drop":
            gone = min(count, len(model))
            sliding.drop_front(gone)
            del model[:gone]
        elif sliding.columns():
            mask = rng.random(len(model)) < 0.6
            sliding.keep(mask)
            model = [row for row, kept in zip(model, mask, strict=True) if kept]
        model.sort(key=lambda row: row[0])
        if sliding.columns():
            order = np.argsort(sliding["time"], kind="stable")
            assert [tuple(row) for row in sliding["row"][order].tolist()] == model
        assert len(sliding) == len(model)


def test_a_window_that_was_emptied_takes_columns_of_another_type() -> None:
    sliding = Sliding()
    sliding.append({"digits": np.zeros((3, 2), np.int64), "value": np.array([1, 2, 3])})
    sliding.drop_front(3)
    sliding.append({"digits": np.ones((2, 4), np.int64), "value": np.array([0.5, 1.5])})
    assert sliding["digits"].shape == (2, 4)
    assert sliding["value"].tolist() == [0.5, 1.5]


def test_room_to_spare_stays_a_fraction_of_the_rows() -> None:
    sliding = Sliding()
    for start in range(0, 100_000, 100):
        sliding.append({"row": np.arange(start, start + 100)})
        if len(sliding) > 1_000:
            sliding.drop_front(100)
    assert sliding["row"].tolist() == list(range(100_000 - 1_000, 100_000))
    assert sliding.nbytes <= 2.5 * 1_100 * 8


def test_a_window_of_known_size_slides_in_the_memory_it_was_given() -> None:
    sliding = Sliding()
    sliding.expected = 1_000
    for start in range(0, 5_000, 50):
        block = np.stack([np.arange(start, start + 50), -np.arange(start, start + 50)], axis=1)
        sliding.append({"row": block})
        sliding.drop_front(max(0, len(sliding) - 1_000))
        if start == 500:
            before = sliding["row"].base
    assert sliding["row"].base is before
    assert sliding.nbytes <= 1.25 * 1_050 * 16
    newest = np.arange(4_000, 5_000)
    assert np.array_equal(sliding["row"], np.stack([newest, -newest], axis=1))


def test_a_first_batch_as_large_as_the_window_is_given_a_quarter_of_room() -> None:
    sliding = Sliding()
    sliding.expected = 1_000
    sliding.append({"row": np.arange(1_000)})
    assert sliding.nbytes == 1_250 * 8


def test_equal_times_keep_their_order_of_arrival() -> None:
    sliding = Sliding()
    sliding.append({"time": np.array([1, 2, 2]), "row": np.array([0, 1, 2])})
    sliding.merge({"time": np.array([2, 1]), "row": np.array([3, 4])}, "time")
    assert sliding["row"].tolist() == [0, 4, 1, 2, 3]


@given(size=st.integers(0, 20), dropped=st.integers(0, 5), data=st.data())
def test_rows_that_are_removed_leave_the_others(
    size: int, dropped: int, data: st.DataObject
) -> None:
    sliding = Sliding()
    sliding.append({"row": np.arange(size + dropped)})
    sliding.drop_front(dropped)
    gone = data.draw(st.lists(st.integers(0, size - 1), unique=True) if size else st.just([]))
    sliding.remove(np.array(gone, np.int64))
    left = set(range(dropped, size + dropped)) - {dropped + place for place in gone}
    assert sorted(sliding["row"].tolist()) == sorted(left)
    sliding.append({"row": np.array([-1])})
    assert sliding["row"].tolist()[-1] == -1
