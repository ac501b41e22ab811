from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ids.model import ColumnData, Kind
from ids.query.row_order import arrange, key_codes
from tests.predicates.strategies import column

# Beyond 2**53 a double no longer tells neighbours apart; NumPy's own text forgets trailing NULs.
CELLS: dict[str, st.SearchStrategy[Any]] = {
    "int": st.sampled_from([-5, 0, 2, 10, 2**53, 2**53 + 1, 2**63 - 1]),
    "float": st.sampled_from([-1.5, -0.0, 0.0, 2.0, 1e300]),
    "text": st.sampled_from(["", "a", "a\0", "B", "é", "￿", "\U0001f600"]),
    "bool": st.booleans(),
}


@st.composite
def columns(draw: st.DrawFn, size: int) -> tuple[list[Any], ColumnData]:
    kind = draw(st.sampled_from(list(CELLS)))
    cell = draw(st.sampled_from([CELLS[kind], st.none() | CELLS[kind]]))
    cells = draw(st.lists(cell, min_size=size, max_size=size))
    return cells, column(cells, kind, extra=["unused", "a"])


def rank(cell: Any) -> tuple[bool, Any]:
    return cell is not None, cell


@given(st.data())
def test_rows_stand_by_key_then_by_order_then_as_they_came(data: st.DataObject) -> None:
    size = data.draw(st.integers(0, 12))
    order = data.draw(st.lists(columns(size), min_size=1, max_size=3))
    keys = data.draw(st.lists(columns(size), max_size=2))
    found = arrange([c for _, c in order], [c for _, c in keys], size)

    def sorted_by(row: int, *parts: list[tuple[list[Any], ColumnData]]) -> list[Any]:
        return [rank(cells[row]) for part in parts for cells, _ in part]

    right = sorted(range(size), key=lambda row: sorted_by(row, keys, order))
    stream = sorted(range(size), key=lambda row: sorted_by(row, order))
    rows = list(range(size)) if found.rows is None else found.rows.tolist()
    assert rows == right
    if found.stream is not None:
        assert [stream[place] for place in found.stream] == rows
    starts = [
        i
        for i in range(size)
        if i == 0 or sorted_by(right[i], keys) != sorted_by(right[i - 1], keys)
    ]
    assert found.starts.tolist() == ([*starts, size] if keys else [0, size])


def test_rows_in_order_are_not_moved() -> None:
    time = ColumnData(Kind.TIME, np.array([1, 1, 2, 3]))
    assert arrange([time], [], 4).rows is None


@given(st.data())
def test_a_key_is_the_rank_of_its_values_with_null_first(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12))
    keys = data.draw(st.lists(columns(size), min_size=1, max_size=3))
    codes, distinct = key_codes([c for _, c in keys])
    ranks = [tuple(rank(cells[row]) for cells, _ in keys) for row in range(size)]
    assert codes.tolist() == [sorted(set(ranks)).index(each) for each in ranks]
    assert distinct == len(set(ranks))


def test_every_nan_is_one_key_after_all_others() -> None:
    keys = ColumnData(Kind.NUMBER, np.array([np.nan, 1.0, np.nan, np.inf]))
    assert key_codes([keys])[0].tolist() == [2, 0, 2, 1]
