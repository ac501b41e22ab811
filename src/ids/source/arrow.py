"""Arrow columns as arrays: in place where the format allows, else in one vectorised pass."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ids.model.table import ColumnData, Kind

__all__ = ["canonical", "column_data", "join", "kind_of"]

_MICROS = pa.timestamp("us", "UTC")
_CODES = pa.dictionary(pa.int32(), pa.string())
_INT64_MAX = np.iinfo(np.int64).max


def kind_of(type_: pa.DataType) -> Kind | None:
    """What a column of this Arrow type holds; None when IDS does not read it.

    A column of Arrow's null type holds nothing at all, and counts as numbers.
    """
    if types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_):
        return Kind.NUMBER
    if types.is_null(type_):
        return Kind.NUMBER
    if _is_text(type_):
        return Kind.TEXT
    if types.is_boolean(type_):
        return Kind.BOOLEAN
    if types.is_timestamp(type_) or types.is_date(type_):
        return Kind.TIME
    return None


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)
    )


def canonical(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same values in one of the five Arrow types IDS computes with.

    These are int64, float64, bool, timestamp[us, UTC] and dictionary<int32, string>. A column that
    has one of them already shares its buffers with the result; so do other time zones and other
    kinds of string behind int32 codes. A timestamp without a zone is UTC; nanoseconds are floored
    to microseconds.
    """
    type_ = column.type
    match kind_of(type_):
        case Kind.TEXT:
            coded = column if types.is_dictionary(type_) else column.dictionary_encode()
            return _distinct(coded.cast(_CODES))
        case _ if types.is_dictionary(type_):
            decoded = [chunk.dictionary_decode() for chunk in column.chunks]
            return canonical(pa.chunked_array(decoded, type=type_.value_type))
        case Kind.NUMBER if types.is_decimal(type_):
            # Arrow's own cast multiplies by an inexact power of ten: its last bit is often wrong
            return column.cast(pa.string()).cast(pa.float64())
        case Kind.NUMBER:
            return column.cast(_number_type(column), safe=False)
        case Kind.TIME if types.is_timestamp(type_) and type_.unit == "ns":
            return pa.chunked_array([_floored(chunk) for chunk in column.chunks], type=_MICROS)
        case Kind.TIME:
            return column.cast(_MICROS)
        case _:
            return column


def _number_type(column: pa.ChunkedArray) -> pa.DataType:
    type_ = column.type
    if types.is_uint64(type_):
        largest = pc.max(column).as_py()
        return pa.float64() if largest is not None and largest > _INT64_MAX else pa.int64()
    return pa.int64() if types.is_integer(type_) else pa.float64()


def _floored(chunk: pa.Array) -> pa.Array:
    """Microseconds rounded down: Arrow's own cast rounds towards 1970."""
    micros = (_buffer(chunk, np.int64) // 1000).view("datetime64[us]")
    null = None if chunk.null_count == 0 else _mask(chunk.is_null())
    return pa.array(micros, mask=null).cast(_MICROS)


def _distinct(coded: pa.ChunkedArray) -> pa.ChunkedArray:
    """One dictionary for all chunks, in which one code is one value: it may repeat or hold NULL."""
    if coded.num_chunks == 0:
        return coded
    if not any(chunk.dictionary.null_count for chunk in coded.chunks):
        coded = coded.unify_dictionaries()  # which knows no NULL among the values
        dictionary = coded.chunk(0).dictionary
        if pc.count_distinct(dictionary).as_py() == len(dictionary):
            return coded
    return coded.cast(pa.string()).dictionary_encode()


def join(parts: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Canonical columns of one kind, one after the other."""
    held = {part.type for part in parts if part.null_count < len(part)}
    type_ = pa.float64() if len(held) > 1 else next(iter(held), parts[0].type)
    alike = [p if p.type == type_ else _recast(p, type_) for p in parts]
    whole = pa.chunked_array([chunk for part in alike for chunk in part.chunks], type=type_)
    return whole.unify_dictionaries() if types.is_dictionary(type_) else whole


def _recast(part: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """To ``type_``; a part without a single value may be of any kind."""
    if part.null_count == len(part):
        return pa.chunked_array([pa.nulls(len(part), type_)], type=type_)
    return part.cast(type_, safe=False)


def column_data(column: pa.ChunkedArray) -> ColumnData:
    """A canonical column as arrays: O(1) for a single chunk without NULLs that is no boolean."""
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    valid = None if array.null_count == 0 else _mask(array.is_valid())
    kind = kind_of(array.type)
    assert kind is not None, "the source keeps such columns out of its schema"
    if kind is Kind.TEXT:
        return _text(array, valid)
    if kind is Kind.BOOLEAN:
        return ColumnData(kind, _mask(array if valid is None else array.fill_null(False)), valid)
    dtype = np.float64 if types.is_float64(array.type) else np.int64
    return ColumnData(kind, _buffer(array, dtype), valid)


def _text(array: pa.DictionaryArray, valid: npt.NDArray[np.bool_] | None) -> ColumnData:
    codes = _buffer(array.indices, np.int32)
    if valid is not None:
        codes = np.where(valid, codes, np.int32(0))  # what lies under a NULL may be out of range
    dictionary = array.dictionary.to_numpy(zero_copy_only=False)
    if len(dictionary) == 0:
        dictionary = np.array([""], dtype=object)  # so that code 0 is in range
    return ColumnData(Kind.TEXT, codes, valid, dictionary)


def _buffer(array: pa.Array, dtype: type[np.generic]) -> npt.NDArray[np.generic]:
    """The values of a fixed-width array where they lie, NULL or not."""
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, count=len(array), offset=array.offset * dtype(0).itemsize)


def _mask(array: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = array.to_numpy(zero_copy_only=False)
    return mask
