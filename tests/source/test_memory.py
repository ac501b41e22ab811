"""What lies in memory: Arrow, pandas, Polars, dicts of arrays."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ids
from ids.errors import DataError, IdsError, SourceError, UnknownNameError
from ids.model import ColumnData, Kind, Table
from ids.source import open_table

ROWS: dict[str, list[Any]] = {
    "at": [datetime(2024, 1, 1, tzinfo=UTC), None],
    "latency": [1.5, None],
    "region": ["EU-West", None],
    "ok": [True, False],
}
KINDS = {"at": Kind.TIME, "latency": Kind.NUMBER, "region": Kind.TEXT, "ok": Kind.BOOLEAN}


def pandas_frame() -> object:
    return pytest.importorskip("pandas").DataFrame(ROWS)


def polars_frame() -> object:
    return pytest.importorskip("polars").DataFrame(ROWS)


class Stream:
    """Knows nothing but the Arrow C stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "make",
    [
        lambda: pa.table(ROWS),
        lambda: pa.table(ROWS).to_batches()[0],
        lambda: pa.table(ROWS).to_reader(),
        lambda: Stream(pa.table(ROWS)),
        lambda: ROWS,
        lambda: {name: np.array(values, object) for name, values in ROWS.items()},
        lambda: {name: pa.array(values) for name, values in ROWS.items()},
        pandas_frame,
        polars_frame,
    ],
)
def test_every_tabular_thing_reads_the_same(make: Callable[[], object]) -> None:
    source = open_table(make(), "events")
    assert dict(source.schema) == KINDS
    assert (source.rows, dict(source.unsupported)) == (2, {})
    table = source.read(KINDS)
    assert table.rows == 2
    assert table.columns["at"].values[0] == 1_704_067_200_000_000
    assert table.columns["latency"].values[0] == 1.5
    region = table.columns["region"]
    assert region.dictionary is not None
    assert region.dictionary[region.values[0]] == "EU-West"
    assert table.columns["ok"].values.tolist() == [True, False]
    for name in ("at", "latency", "region"):
        valid = table.columns[name].valid
        assert valid is not None and valid.tolist() == [True, False]
    assert table.columns["ok"].valid is None
    assert source.where(16) == "row 17"


def test_only_the_columns_asked_for_are_read() -> None:
    assert list(open_table(ROWS, "events").read(["ok", "ok"]).columns) == ["ok"]


def test_a_table_of_our_own_is_taken_as_it_is() -> None:
    column = ColumnData(Kind.NUMBER, np.arange(3))
    source = open_table(Table({"x": column}, 3), "events")
    assert (dict(source.schema), source.rows) == ({"x": Kind.NUMBER}, 3)
    assert source.read(["x"]).columns["x"] is column
    with pytest.raises(UnknownNameError, match="unknown column 'y'"):
        source.read(["y"])


def test_numbers_from_numpy_are_a_view() -> None:
    values = np.arange(5, dtype=np.float64)
    read = open_table({"x": values}, "events").read(["x"]).columns["x"].values
    assert np.shares_memory(values, read)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array(["2024-01-01T01", "NaT"], "M8[h]"), [1_704_070_800_000_000, None]),
        (np.array(["2024-01-01", "NaT"], "M8[D]"), [1_704_067_200_000_000, None]),
        (np.array([-1, -1001], "M8[ns]"), [-1, -2]),
        (np.array([1.5, 2.0]).astype(">f8"), [1.5, 2.0]),
        (np.arange(4)[::2], [0, 2]),
        (range(2), [0, 1]),
        ((i for i in range(2)), [0, 1]),
    ],
    ids=lambda each: str(each).partition(" at 0x")[0],
)
def test_arrays_of_every_make_are_read(values: object, expected: list[object]) -> None:
    column = open_table({"x": values}, "events").read(["x"]).columns["x"]
    valid = [True] * len(column) if column.valid is None else column.valid.tolist()
    assert [v if ok else None for v, ok in zip(column.values, valid, strict=True)] == expected


def test_nan_is_a_value_in_numpy_and_missing_in_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    values = np.array([1.0, np.nan])
    assert open_table({"x": values}, "t").read(["x"]).columns["x"].valid is None
    valid = open_table(pandas.DataFrame({"x": values}), "t").read(["x"]).columns["x"].valid
    assert valid is not None and valid.tolist() == [True, False]


def test_nan_among_texts_is_missing() -> None:
    column = open_table({"x": np.array(["a", np.nan], object)}, "t").read(["x"]).columns["x"]
    assert column.valid is not None and column.valid.tolist() == [True, False]


def test_a_table_without_rows_is_fine() -> None:
    source = open_table(pa.table(ROWS).slice(0, 0), "events")
    assert source.rows == 0
    assert all(len(column) == 0 for column in source.read(KINDS).columns.values())


def test_a_column_ids_cannot_read_matters_only_when_it_is_named() -> None:
    source = open_table({"x": [1], "tags": [["a"]], "odd": [object()]}, "events")
    assert dict(source.schema) == {"x": Kind.NUMBER}
    assert source.unsupported["tags"] == "a list<item: string>"
    assert source.read(["x"]).rows == 1
    with pytest.raises(DataError, match=r"^column 'tags' is a list<.*>; IDS reads numbers, text"):
        source.read(["tags"])
    with pytest.raises(DataError, match=r"^column 'odd' is not a column of one type"):
        source.read(["odd"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1], "b": [1, 2]}, "table 'events' has 1 rows in column 'a' but 2 in 'b'"),
        ({}, "table 'events' has no columns"),
        (5, "table 'events' is an int; give a pyarrow Table"),
        (pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]), "has two columns 'a'"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(data: object, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        open_table(data, "events")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("levels", [["t"], ["t", "k"]])
def test_a_pandas_index_named_as_a_column_is_told_of_reset_index(levels: list[str]) -> None:
    frame = (
        pytest.importorskip("pandas")
        .DataFrame({"t": [1, 2], "k": [3, 4], "x": [1.0, 2.0]})
        .set_index(levels)
    )
    script = "SELECT SUM(x) FROM e WINDOW w AS (ORDER BY T ROWS 1 PRECEDING) EMIT CHANGES"
    remedy = r"column 't' is the index of the DataFrame.*; pass df.reset_index\(\)"
    with pytest.raises(IdsError, match=remedy):
        ids.sql(script, e=frame)
    with pytest.raises(IdsError, match=remedy):
        ids.Engine(ids.TimeWindow(10), "x", order_by="t").ingest(frame)
    assert ids.sql(script, e=frame.reset_index())["expr_1"].to_pylist() == [1.0, 2.0]
