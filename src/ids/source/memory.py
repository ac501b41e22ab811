"""Tables in memory (Arrow, pandas, Polars, a dict of arrays), and Arrow columns as NumPy arrays.

An Arrow column becomes an array without a copy if its format allows it, else in one vectorised
pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ids.errors import DataError, IdsError, SourceError, UnknownNameError
from ids.model import TYPES, ColumnData, Kind, Table

DISAGREEING = ", but "  # separates the kinds of a column that differs between files
INDEX = "the index of the DataFrame"
REPEATED = "there more than once"


class Source(ABC):
    """A table whose columns are read on demand.

    rows         the number of rows
    schema       the columns IDS can read, by exact name
    unsupported  the other columns, each with its type (``list<string>``)
    untyped      columns of the schema that have no type, because they contain no value
    """

    def __init__(
        self,
        rows: int,
        schema: Mapping[str, Kind],
        unsupported: Mapping[str, str] = {},
        untyped: Iterable[str] = (),
    ) -> None:
        self.rows, self.schema = rows, schema
        self.unsupported, self.untyped = unsupported, frozenset(untyped)

    def read(self, columns: Iterable[str]) -> Table:
        """Read and convert the given columns only."""
        names = list(dict.fromkeys(columns))
        for name in names:
            if name not in self.schema:
                raise refusal(name, self)
        return Table(self._columns(names), self.rows)

    @abstractmethod
    def _columns(self, names: list[str]) -> dict[str, ColumnData]: ...

    def where(self, row: int) -> str:
        """Describe ``row`` (an index from 0) for a user: counted from 1, with its file."""
        return f"row {row + 1}"


class TableSource(Source):
    """A model Table: its columns need no conversion."""

    def __init__(self, table: Table) -> None:
        super().__init__(table.rows, {name: data.kind for name, data in table.columns.items()})
        self._table = table

    def _columns(self, names: list[str]) -> dict[str, ColumnData]:
        return {name: self._table.columns[name] for name in names}


def refusal(name: str, source: Source) -> IdsError:
    """Return the error for a column that ``source`` cannot read."""
    if name in source.unsupported:
        what = source.unsupported[name]
        return DataError(f"column {name!r} is {what}; {remedy(what)}")
    return UnknownNameError("column", name, source.schema)


def remedy(what: str) -> str:
    """Return the hint for a column that IDS cannot read."""
    if what == INDEX:
        return "pass df.reset_index()"
    if what == REPEATED:
        return "rename all but one"
    if DISAGREEING in what:
        return "write it the same way in all files"
    return "IDS reads numbers, text, booleans and timestamps"


_SPECIAL = {Kind.TEXT: pa.string(), Kind.TIME: pa.timestamp("us", "UTC")}
# The Arrow type for each of TYPES.
ARROW_TYPES: dict[str, pa.DataType] = {
    name: _SPECIAL.get(type_.kind) or pa.from_numpy_dtype(type_.dtype)
    for name, type_ in TYPES.items()
}
_MICROS = ARROW_TYPES["TIMESTAMP"]
_CODES = pa.dictionary(pa.int32(), ARROW_TYPES["STRING"])
_INT64_MAX = np.iinfo(np.int64).max


def kind_of(type_: pa.DataType) -> Kind | None:
    """Return the kind of a column of this Arrow type; None if IDS cannot read it.

    A column of Arrow's null type contains no value and counts as a number column.
    """
    if types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_):
        return Kind.NUMBER
    if types.is_null(type_):
        return Kind.NUMBER
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        return Kind.TEXT
    if types.is_boolean(type_):
        return Kind.BOOLEAN
    if types.is_timestamp(type_) or types.is_date(type_):
        return Kind.TIME
    return None


def canonical(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Cast a column to one of the five Arrow types IDS computes with.

    These are int64, float64, bool, timestamp[us, UTC] and dictionary<int32, string>. A column that
    already has one of these types is not copied; nor are timestamps in another zone, or other
    string types with int32 codes. A timestamp without a zone is UTC; nanoseconds are rounded down
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
    """Round nanoseconds down to microseconds; Arrow's own cast rounds towards 1970."""
    micros = (_buffer(chunk, np.int64) // 1000).view("datetime64[us]")
    null = None if chunk.null_count == 0 else _mask(chunk.is_null())
    return pa.array(micros, mask=null).cast(_MICROS)


def _distinct(coded: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give all chunks one dictionary without repeated values or NULLs."""
    if coded.num_chunks == 0:
        return coded
    if not any(chunk.dictionary.null_count for chunk in coded.chunks):
        coded = coded.unify_dictionaries()  # does not support NULL among the values
        dictionary = coded.chunk(0).dictionary
        if pc.count_distinct(dictionary).as_py() == len(dictionary):
            return coded
    return coded.cast(pa.string()).dictionary_encode()


def join(parts: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """Concatenate canonical columns of one kind; a column without values may be of any kind."""
    held = {part.type for part in parts if part.null_count < len(part)}
    type_ = pa.float64() if len(held) > 1 else next(iter(held), parts[0].type)
    chunks = []
    for part in parts:
        if part.type == type_:
            chunks += part.chunks
        elif part.null_count == len(part):
            chunks.append(pa.nulls(len(part), type_))
        else:
            chunks += part.cast(type_, safe=False).chunks
    whole = pa.chunked_array(chunks, type=type_)
    return whole.unify_dictionaries() if types.is_dictionary(type_) else whole


def column_data(column: pa.ChunkedArray) -> ColumnData:
    """Convert a canonical column to arrays; O(1) for one chunk without NULLs or Booleans."""
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    valid = None if array.null_count == 0 else _mask(array.is_valid())
    kind = kind_of(array.type)
    assert kind is not None, "a schema contains no such column"
    if kind is Kind.TEXT:
        codes = _buffer(array.indices, np.int32)
        if valid is not None:  # the code of a NULL may be out of range
            codes = np.where(valid, codes, np.int32(0))
        words = array.dictionary.to_numpy(zero_copy_only=False)
        if len(words) == 0:
            words = np.array([""], dtype=object)  # so that code 0 is in range
        return ColumnData(kind, codes, valid, words)
    if kind is Kind.BOOLEAN:
        return ColumnData(kind, _mask(array if valid is None else array.fill_null(False)), valid)
    dtype = np.float64 if types.is_float64(array.type) else np.int64
    return ColumnData(kind, _buffer(array, dtype), valid)


def _buffer(array: pa.Array, dtype: type[np.generic]) -> npt.NDArray[np.generic]:
    """View the values of a fixed-width array, including those under NULLs."""
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, count=len(array), offset=array.offset * dtype(0).itemsize)


def _mask(array: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = array.to_numpy(zero_copy_only=False)
    return mask


def to_array(column: ColumnData) -> pa.Array:
    """Convert one column to the Arrow type for its kind."""
    missing = None if column.valid is None else ~column.valid
    array = pa.array(column.values, mask=missing)
    if column.dictionary is not None:
        texts = pa.array(column.dictionary.tolist(), "string")
        return pa.DictionaryArray.from_arrays(array, texts).cast("string")
    return array.cast(_MICROS) if column.kind is Kind.TIME else array


def to_table(table: Table) -> pa.Table:
    """Convert a table to Arrow."""
    return pa.table({name: to_array(column) for name, column in table.columns.items()})


_REMEDY = "give a pyarrow Table, a pandas or Polars DataFrame, a dict of arrays, or a path"
_UNCONVERTIBLE = (pa.ArrowException, TypeError, ValueError, OverflowError)


class ArrowSource(Source):
    """An Arrow table; each column is converted when it is read."""

    def __init__(self, table: pa.Table, name: str, mixed: Mapping[str, str] = {}) -> None:
        repeated = [column for column, times in Counter(table.column_names).items() if times > 1]
        if repeated:
            raise SourceError(f"table {name!r} has two columns {repeated[0]!r}; rename one")
        if table.num_columns == 0 and not mixed:
            raise SourceError(f"table {name!r} has no columns; {_REMEDY}")
        schema, unsupported = described(table.schema)
        untyped = [field.name for field in table.schema if types.is_null(field.type)]
        super().__init__(table.num_rows, schema, {**unsupported, **mixed}, untyped)
        self._table = table

    def _columns(self, names: list[str]) -> dict[str, ColumnData]:
        data = {}
        for name in names:
            try:
                data[name] = column_data(canonical(self._table.column(name)))
            except pa.ArrowException as error:
                raise SourceError(f"cannot read column {name!r}: {one_line(error)}") from error
        return data


def described(schema: pa.Schema) -> tuple[dict[str, Kind], dict[str, str]]:
    """Return the kinds of the columns IDS can read, and the types of the others."""
    kinds = {field.name: kind_of(field.type) for field in schema}
    others = {f.name: article(str(f.type)) for f in schema if kinds[f.name] is None}
    return {name: kind for name, kind in kinds.items() if kind is not None}, others


def from_memory(data: Any, name: str) -> ArrowSource:
    """Open a table in memory: pandas, a dict, or any object that exports Arrow data.

    NaN in a pandas column is NULL, as in pandas; everywhere else NaN is a value. Arrow columns and
    Polars numbers are not copied; other columns take one vectorised pass.
    """
    if _is_pandas(data) and hasattr(data, "columns"):
        labels = [str(label) for label in data.columns]
        index = {str(level) for level in data.index.names if level is not None} - {*labels}
        columns = [(labels[i], data.iloc[:, i]) for i in range(len(labels))]
        return _from_columns(columns, name, dict.fromkeys(index, INDEX))
    if isinstance(data, Mapping):
        return _from_columns([(str(key), values) for key, values in data.items()], name, {})
    try:
        if isinstance(data, pa.RecordBatch):
            data = pa.Table.from_batches([data])
        elif not isinstance(data, pa.Table | pa.RecordBatchReader):
            if not hasattr(data, "__arrow_c_stream__"):
                what = article(type(data).__name__)
                raise SourceError(f"table {name!r} is {what}; {_REMEDY}")
            data = pa.RecordBatchReader.from_stream(data)
        return ArrowSource(data if isinstance(data, pa.Table) else data.read_all(), name)
    except _UNCONVERTIBLE as error:
        raise SourceError(f"cannot read table {name!r}: {one_line(error)}; {_REMEDY}") from error


def _is_pandas(data: object) -> bool:
    return type(data).__module__.split(".")[0] == "pandas"


def _from_columns(columns: list[tuple[str, Any]], name: str, mixed: dict[str, str]) -> ArrowSource:
    """Convert column by column, so that an unreadable column fails only queries that use it.

    ``mixed`` are further columns that cannot be read, each with the reason.
    """
    arrays: list[tuple[str, pa.Array | pa.ChunkedArray]] = []
    for label, values in columns:
        try:
            arrays.append((label, _array(values)))
        except _UNCONVERTIBLE as error:
            mixed[label] = f"not a column of one type ({one_line(error)})"
    for label, array in arrays:
        first, rows = arrays[0][0], len(arrays[0][1])
        if len(array) != rows:
            raise SourceError(
                f"table {name!r} has {rows} rows in column {first!r} "
                f"but {len(array)} in {label!r}; give columns of equal length"
            )
    names = [label for label, _ in arrays]
    return ArrowSource(pa.Table.from_arrays([a for _, a in arrays], names=names), name, mixed)


def _array(values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if _is_pandas(values):
        return pa.Array.from_pandas(values)
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if isinstance(values, str | bytes):
        raise TypeError("a single value")
    if not isinstance(values, np.ndarray):
        values = values if hasattr(values, "__len__") else list(values)
    elif values.ndim != 1:
        raise ValueError(f"it has {values.ndim} dimensions")
    elif values.dtype != object:
        if values.dtype.kind == "M":
            values = values.astype("datetime64[us]", copy=False)
        return pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # NaN among texts can only mean NULL
        return pa.array(values, from_pandas=True)


def article(type_name: str) -> str:
    """Put "a" or "an" before a type name."""
    return ("an " if type_name[0].lower() in "aeiou" else "a ") + type_name


def one_line(error: BaseException) -> str:
    """Return the first line of an error message; Arrow puts the cause there."""
    return str(error).strip().split("\n", maxsplit=1)[0].rstrip(". ")
