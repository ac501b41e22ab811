"""Arrow columns become arrays: the right values, and in place where that is possible."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ids.model import ColumnData, Kind
from ids.source import kind_of
from ids.source.memory import canonical, column_data, join


def as_data(array: pa.Array | pa.ChunkedArray) -> ColumnData:
    chunked = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    return column_data(canonical(chunked))


def python(column: ColumnData) -> list[object]:
    """The column as a list with None for NULL: slow and obvious."""
    values: list[object] = list(column.values.tolist())
    if column.dictionary is not None:
        values = [column.dictionary[code] for code in column.values]
    if column.valid is None:
        return values
    return [v if ok else None for v, ok in zip(values, column.valid, strict=True)]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1.5, 2.5, 3.5]),
        pa.array([1, 2, 3]),
        pa.array([1, 2, 3], pa.timestamp("us")),
        pa.array([1, 2, 3], pa.timestamp("us", "Europe/Berlin")),
        pa.array([1.5, None, 3.5]),
        pa.array([1, None, 3]),
    ],
    ids=lambda a: f"{a.type}, {a.null_count} null",
)
@pytest.mark.parametrize("start", [0, 1])
def test_a_single_chunk_in_our_own_type_is_a_view(array: pa.Array, start: int) -> None:
    column = as_data(array.slice(start))
    raw = np.frombuffer(array.buffers()[1], np.uint8)
    assert np.shares_memory(column.values, raw)
    assert python(column) == array.slice(start).cast(_raw_type(array.type)).to_pylist()


def _raw_type(type_: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_timestamp(type_) else type_


@pytest.mark.parametrize("value_type", [pa.string(), pa.large_string(), pa.string_view()])
def test_the_codes_of_an_int32_dictionary_are_a_view(value_type: pa.DataType) -> None:
    array = pa.array(["a", "b", "a"], value_type).dictionary_encode()
    column = as_data(array)
    assert np.shares_memory(column.values, np.frombuffer(array.indices.buffers()[1], np.uint8))
    assert python(column) == ["a", "b", "a"]


@pytest.mark.parametrize(
    "type_",
    [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()],
    ids=str,
)
def test_every_width_of_integer_is_int64(type_: pa.DataType) -> None:
    column = as_data(pa.array([1, None, 3], type_))
    assert column.values.dtype == np.int64
    assert python(column) == [1, None, 3]


def test_integers_beyond_int64_are_float64() -> None:
    column = as_data(pa.array([2**63, None], pa.uint64()))
    assert column.values.dtype == np.float64
    assert python(column) == [2.0**63, None]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([0.5, None], pa.float32()),
        pa.array([np.float16(0.5), None], pa.float16()),
        pa.array([Decimal("0.50"), None], pa.decimal128(10, 2)),
        pa.array([Decimal("0.50"), None], pa.decimal256(40, 2)),
    ],
    ids=lambda a: str(a.type),
)
def test_other_fractions_are_float64(array: pa.Array) -> None:
    column = as_data(array)
    assert column.values.dtype == np.float64
    assert python(column) == [0.5, None]


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kolkata"])
@pytest.mark.parametrize(("unit", "factor"), [("s", 10**6), ("ms", 10**3), ("us", 1)])
def test_timestamps_of_every_unit_and_zone_are_microseconds_utc(
    unit: str, factor: int, zone: str | None
) -> None:
    column = as_data(pa.array([7, None, -7], pa.timestamp(unit, zone)))
    assert column.kind is Kind.TIME
    assert python(column) == [7 * factor, None, -7 * factor]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_nanoseconds_are_floored(nanos: list[int | None]) -> None:
    column = as_data(pa.array(nanos, pa.int64()).cast(pa.timestamp("ns", "UTC")))
    assert python(column) == [None if n is None else n // 1000 for n in nanos]


def test_dates_are_midnight_utc() -> None:
    day = 86_400_000_000
    assert python(as_data(pa.array([1, None, -1], pa.date32()))) == [day, None, -day]
    millis = pa.array([86_400_000, None], pa.int64()).cast(pa.date64())
    assert python(as_data(millis)) == [day, None]


def test_booleans_stay_booleans() -> None:
    column = as_data(pa.array([True, None, False]))
    assert column.values.dtype == np.bool_
    assert python(column) == [True, None, False]


@given(
    st.lists(st.lists(st.none() | st.sampled_from(["", "EU", "US", "ü"]))),
    st.sampled_from([pa.string(), pa.large_string(), pa.string_view()]),
    st.booleans(),
)
def test_text_in_any_chunks_keeps_its_values(
    chunks: list[list[str | None]], type_: pa.DataType, encoded: bool
) -> None:
    arrays = [pa.array(chunk, type_) for chunk in chunks]
    if encoded:
        arrays = [array.dictionary_encode() for array in arrays]
    type_ = pa.dictionary(pa.int32(), type_) if encoded else type_
    column = as_data(pa.chunked_array(arrays, type=type_))
    assert python(column) == [value for chunk in chunks for value in chunk]
    assert column.values.dtype == np.int32
    assert column.dictionary is not None
    assert len(set(column.dictionary)) == len(column.dictionary)
    if len(column):
        assert column.values.min() >= 0 and column.values.max() < len(column.dictionary)


def test_a_dictionary_with_repeats_and_nulls_becomes_one_code_a_value() -> None:
    indices = pa.array([0, 1, 2, None], pa.int8())
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "a", None]))
    column = as_data(array)
    assert python(column) == ["a", "a", None, None]
    assert column.values[0] == column.values[1]


VALUES: list[tuple[pa.DataType, list[object]]] = [
    (pa.string(), ["", "EU", "US"]),
    (pa.large_string(), ["", "EU", "US"]),
    (pa.string_view(), ["", "EU", "US"]),
    (pa.int16(), [-1, 0, 7]),
    (pa.float64(), [-0.5, 0.0]),
    (pa.decimal128(5, 2), [Decimal("0.50"), Decimal("1.00")]),
    (pa.bool_(), [True, False]),
    (pa.timestamp("ns"), [0, 1_000]),
]


@st.composite
def dictionaries(draw: st.DrawFn) -> tuple[pa.ChunkedArray, pa.Array]:
    """Chunks whose dictionaries repeat values and hold NULLs; and the same values without one."""
    type_, values = draw(st.sampled_from(VALUES))
    index = draw(st.sampled_from([pa.int8(), pa.int32(), pa.uint64()]))
    chunks, plain = [], []
    for _ in range(draw(st.integers(1, 3))):
        held = draw(st.lists(st.none() | st.sampled_from(values), max_size=4))
        code = st.integers(0, len(held) - 1) if held else st.nothing()
        codes = draw(st.lists(st.none() | code, max_size=5))
        indices = pa.array(codes, index)
        chunks.append(pa.DictionaryArray.from_arrays(indices, pa.array(held, type_)))
        plain += [None if code is None else held[code] for code in codes]
    return pa.chunked_array(chunks), pa.array(plain, type_)


@given(dictionaries())
def test_nulls_among_the_values_of_a_dictionary_are_nulls(
    columns: tuple[pa.ChunkedArray, pa.Array],
) -> None:
    coded, plain = columns
    found = as_data(coded)
    assert python(found) == python(as_data(plain))
    if found.dictionary is not None:
        assert len(set(found.dictionary)) == len(found.dictionary)


@pytest.mark.parametrize(
    ("type_", "kind"),
    [(pa.int64(), Kind.NUMBER), (pa.float32(), Kind.NUMBER), (pa.timestamp("ns"), Kind.TIME)],
    ids=str,
)
def test_a_dictionary_of_other_values_is_those_values(type_: pa.DataType, kind: Kind) -> None:
    array = pa.array([3000, 4000, None, 3000], type_)
    column = as_data(array.dictionary_encode())
    assert column.kind is kind
    assert python(column) == python(as_data(array))


def test_what_lies_under_a_null_is_in_range() -> None:
    indices = pa.Array.from_buffers(
        pa.int32(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([0, 99], np.int32).tobytes())]
    )
    array = pa.DictionaryArray.from_arrays(indices, pa.array(["a"]), safe=False)
    assert as_data(array).values.tolist() == [0, 0]


def test_a_column_of_nothing_is_numbers_all_null() -> None:
    column = as_data(pa.nulls(2))
    assert (column.kind, column.values.dtype) == (Kind.NUMBER, np.float64)
    assert python(column) == [None, None]


def test_nan_is_a_value_and_needs_no_mask() -> None:
    column = as_data(pa.array([1.0, float("nan")]))
    assert column.valid is None
    assert np.isnan(column.values[1])


@pytest.mark.parametrize(
    "type_",
    [
        pa.list_(pa.string()),
        pa.struct([("a", pa.int64())]),
        pa.binary(),
        pa.time64("us"),
        pa.dictionary(pa.int8(), pa.list_(pa.string())),
    ],
    ids=str,
)
def test_other_types_have_no_kind(type_: pa.DataType) -> None:
    assert kind_of(type_) is None


def test_columns_of_one_kind_join_in_order() -> None:
    def one(array: pa.Array) -> pa.ChunkedArray:
        return canonical(pa.chunked_array([array]))

    mixed = [one(pa.array([1, 2])), one(pa.nulls(1)), one(pa.array([0.5]))]
    assert python(column_data(join(mixed))) == [1.0, 2.0, None, 0.5]
    texts = [one(pa.nulls(1)), one(pa.array(["b"])), one(pa.array(["a", "b"]))]
    joined = column_data(join(texts))
    assert python(joined) == [None, "b", "a", "b"]
    assert joined.values[1] == joined.values[3]
