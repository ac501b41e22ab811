"""JSON Lines: whatever is written, any JSON reader reads back."""

from __future__ import annotations

import io
import json
import math
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ids.errors import SinkError
from ids.sink import write_jsonl


def lines(table: pa.Table) -> list[dict[str, Any]]:
    stream = io.BytesIO()
    write_jsonl(table, stream)
    text = stream.getvalue().decode()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.split("\n")[:-1]]


texts = st.text(st.characters(exclude_categories=["Cs"]))
awkward = st.sampled_from(['"', "\\", "\n", "\r\n", "\x00", "\x1f", "\u2028", "\\n", "ü", "😀", ""])
when = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
rows = st.lists(
    st.tuples(
        st.none() | texts | awkward,
        st.none() | st.floats(),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.booleans(),
        st.none() | when,
    )
)


@given(rows, st.one_of(texts, awkward), st.integers(0, 3))
@example([("", each, 0, True, None) for each in (math.nan, math.inf, -math.inf, -0.0)], "x", 1)
@example([("", math.nan, 0, True, None)], "x", 0)
def test_what_is_written_reads_back(rows: list[tuple[Any, ...]], name: str, skipped: int) -> None:
    types = [pa.string(), pa.float64(), pa.int64(), pa.bool_(), pa.timestamp("us", "UTC")]
    names = [name, *(f"{name}{i}" for i in range(1, 5))]
    columns = [pa.array([row[i] for row in rows], types[i]) for i in range(5)]
    table = pa.Table.from_arrays(columns, names=names).slice(skipped)
    back = [tuple(line[each] for each in names) for line in lines(table)]
    expected = [
        (text, number if number is not None and math.isfinite(number) else None, whole, flag)
        for text, number, whole, flag, _ in rows[skipped:]
    ]
    assert [line[:4] for line in back] == expected
    instants = [line[4] and datetime.fromisoformat(line[4]) for line in back]
    assert instants == [row[4] for row in rows[skipped:]]


def test_timestamps_are_iso_8601_in_utc() -> None:
    at = pa.array([0], pa.timestamp("us", "Asia/Tokyo"))
    assert lines(pa.table({"at": at})) == [{"at": "1970-01-01T00:00:00.000000Z"}]
    assert lines(pa.table({"at": at.cast(pa.timestamp("us", "UTC"))})) == lines(
        pa.table({"at": pa.array([0], pa.timestamp("us"))})
    )


@pytest.mark.parametrize("type_", [pa.large_string(), pa.string_view()], ids=str)
def test_text_of_every_kind_is_written(type_: pa.DataType) -> None:
    array = pa.array(['a"', None, 'a"'], type_)
    expected = [{"s": 'a"'}, {"s": None}, {"s": 'a"'}]
    assert lines(pa.table({"s": array})) == expected
    assert lines(pa.table({"s": array.dictionary_encode()})) == expected


def test_many_rows_keep_their_order() -> None:
    table = pa.table({"i": range(200_000), "s": ["x"] * 200_000})
    assert [line["i"] for line in lines(table)] == list(range(200_000))


def test_a_type_that_json_lacks_is_refused() -> None:
    with pytest.raises(SinkError, match=r"cannot write column 'l' \(list<.*>\) as JSON"):
        lines(pa.table({"l": [[1]]}))
