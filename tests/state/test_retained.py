"""The retained window: texts, kinds, and finding a row again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from ids.errors import StateError
from ids.model import Kind, Table
from ids.source import open_table
from ids.state import Retained

KINDS = {"x": Kind.NUMBER, "region": Kind.TEXT}


def table(x: Sequence[Any], region: Sequence[str | None]) -> Table:
    import pyarrow as pa

    whole = all(v is None or isinstance(v, int) for v in x)
    columns = {
        "x": pa.array(x, pa.int64() if whole else pa.float64()),
        "region": pa.array(region, pa.string()),
    }
    return open_table(columns, "rows").read(KINDS)


def put(retained: Retained, rows: Table) -> None:
    tags = np.zeros(rows.rows, np.uint32)
    retained.insert(retained.block(rows, tags))


def found(retained: Retained, rows: Table) -> list[int]:
    """Where rows stand; -1 where they do not."""
    return [int(place) for place in retained.locate(rows)]


def texts(retained: Retained) -> list[str | None]:
    column = retained.table().columns["region"]
    assert column.dictionary is not None
    valid = np.ones(len(column), np.bool_) if column.valid is None else column.valid
    words = column.dictionary[column.values]
    return [w if v else None for w, v in zip(words, valid, strict=True)]


def test_texts_of_different_batches_share_a_dictionary() -> None:
    retained = Retained(KINDS)
    put(retained, table([1.0, 2.0], ["EU", "US"]))
    put(retained, table([3.0, 4.0, 5.0], ["AP", None, "EU"]))
    assert texts(retained) == ["EU", "US", "AP", None, "EU"]
    assert retained.dictionaries() == {"region": ["EU", "US", "AP"]}


def test_a_column_of_nothing_but_null_can_be_read_back() -> None:
    retained = Retained(KINDS)
    put(retained, table([1.0, 2.0], [None, None]))
    assert texts(retained) == [None, None]


def test_rows_are_found_once_each_oldest_first() -> None:
    retained = Retained(KINDS)
    put(retained, table([1.0, 2.0, 1.0, None, 1.0], ["EU", "US", "EU", "EU", None]))

    def find(x: list[float | None], region: list[str | None]) -> list[int]:
        return found(retained, table(x, region))

    assert find([1.0], ["EU"]) == [0]
    assert find([1.0, 1.0], ["EU", "EU"]) == [0, 2]
    assert find([1.0, 2.0, 1.0, 1.0], ["EU", "US", "EU", "EU"]) == [0, 1, 2, -1]
    assert find([None], ["EU"]) == [3]
    assert find([1.0], [None]) == [4]
    assert find([2.0, 2.0], ["nowhere", "US"]) == [-1, 1]
    assert find([], []) == []
    assert find([0.0], ["EU"]) == [-1]


def test_looking_for_a_row_leaves_nothing_behind() -> None:
    retained = Retained(KINDS)
    put(retained, table([1.0], ["EU"]))
    before = retained.nbytes
    assert found(retained, table([1.0], ["a word never seen"])) == [-1]
    assert retained.nbytes == before
    assert retained.dictionaries() == {"region": ["EU"]}


def test_minus_zero_is_zero() -> None:
    retained = Retained(KINDS)
    put(retained, table([0.0], ["EU"]))
    assert found(retained, table([-0.0], ["EU"])) == [0]


def test_whole_numbers_and_fractions_share_a_column() -> None:
    retained = Retained(KINDS)
    put(retained, table([1, 2], ["EU", "EU"]))
    put(retained, table([1.5], ["EU"]))
    put(retained, table([7], ["EU"]))
    assert retained.table().columns["x"].values.tolist() == [1.0, 2.0, 1.5, 7.0]
    assert found(retained, table([2], ["EU"])) == [1]


def test_whole_numbers_a_double_cannot_hold_are_not_mixed_with_fractions() -> None:
    retained = Retained(KINDS)
    put(retained, table([2**53 + 1], ["EU"]))
    with pytest.raises(StateError, match=r"'x' has both fractions and whole numbers beyond"):
        put(retained, table([1.5], ["EU"]))
    assert retained.table().columns["x"].values.tolist() == [2**53 + 1]
    assert found(retained, table([float(2**53 + 2)], ["EU"])) == [-1]


def test_a_batch_without_a_value_fits_any_column() -> None:
    retained = Retained(KINDS)
    put(retained, table([2**53 + 1], ["EU"]))
    rows = table([None], ["EU"])
    empty = Table(
        {**rows.columns, "x": table([1.5, None], ["", ""]).columns["x"].take(slice(1, 2))}, 1
    )
    put(retained, empty)
    assert retained.table().columns["x"].values[0] == 2**53 + 1


def test_words_that_left_are_forgotten() -> None:
    retained = Retained(KINDS)
    for start in range(0, 20_000, 100):
        words: list[str | None] = [f"request {start + i}" for i in range(100)]
        put(retained, table([1.0] * 100, words))
        if len(retained) > 300:
            retained.expire(100)
            retained.forget()
    assert texts(retained) == [f"request {i}" for i in range(20_000 - 300, 20_000)]
    assert len(retained.dictionaries()["region"]) <= 1024 + 2 * 400 + 100
