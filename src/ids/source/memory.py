"""Tables in memory: Arrow, pandas, Polars, a dict of arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ids.errors import SourceError
from ids.model.table import Kind, Table
from ids.source.arrow import canonical, column_data, kind_of
from ids.source.table import INDEX, refusal

__all__ = ["ArrowSource", "article", "described", "from_memory", "one_line"]

_WAY_OUT = "give a pyarrow Table, a pandas or Polars DataFrame, a dict of arrays, or a path"
_UNCONVERTIBLE = (pa.ArrowException, TypeError, ValueError, OverflowError)


class ArrowSource:
    """An Arrow table; a column is converted when it is read."""

    def __init__(self, table: pa.Table, name: str, mixed: Mapping[str, str] | None = None) -> None:
        repeated = [column for column, times in Counter(table.column_names).items() if times > 1]
        if repeated:
            raise SourceError(f"table {name!r} has two columns {repeated[0]!r}; rename one")
        if table.num_columns == 0 and not mixed:
            raise SourceError(f"table {name!r} has no columns; {_WAY_OUT}")
        self._table = table
        self.schema, self.unsupported = described(table.schema)
        self.unsupported |= mixed or {}
        self.untyped = frozenset(f.name for f in table.schema if pa.types.is_null(f.type))
        self.rows: int = table.num_rows

    def read(self, columns: Iterable[str]) -> Table:
        data = {}
        for name in dict.fromkeys(columns):
            if name not in self.schema:
                raise refusal(name, self)
            try:
                data[name] = column_data(canonical(self._table.column(name)))
            except pa.ArrowException as error:
                raise SourceError(f"cannot read column {name!r}: {one_line(error)}") from error
        return Table(data, self.rows)

    def where(self, row: int) -> str:
        return f"row {row + 1}"


def described(schema: pa.Schema) -> tuple[dict[str, Kind], dict[str, str]]:
    """The columns IDS can read, and what the others are."""
    kinds = {field.name: kind_of(field.type) for field in schema}
    others = {f.name: article(str(f.type)) for f in schema if kinds[f.name] is None}
    return {name: kind for name, kind in kinds.items() if kind is not None}, others


def from_memory(data: Any, name: str) -> ArrowSource:
    """Whatever tabular thing a person has at hand.

    A NaN in a pandas column is NULL (pandas means "missing" by it); everywhere else NaN is a value.
    Costs nothing for Arrow and for Polars numbers, one vectorised pass for the rest.
    """
    if _is_pandas(data) and hasattr(data, "columns"):
        labels = [str(label) for label in data.columns]
        index = {str(level) for level in data.index.names if level is not None} - {*labels}
        columns = [(labels[i], data.iloc[:, i]) for i in range(len(labels))]
        return _from_columns(columns, name, dict.fromkeys(index, INDEX))
    if isinstance(data, Mapping):
        return _from_columns([(str(key), values) for key, values in data.items()], name)
    try:
        return ArrowSource(_as_arrow(data, name), name)
    except _UNCONVERTIBLE as error:
        raise SourceError(f"cannot read table {name!r}: {one_line(error)}; {_WAY_OUT}") from error


def _as_arrow(data: Any, name: str) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data).read_all()
    raise SourceError(f"table {name!r} is {article(type(data).__name__)}; {_WAY_OUT}")


def _is_pandas(data: object) -> bool:
    return type(data).__module__.split(".")[0] == "pandas"


def _from_columns(
    columns: list[tuple[str, Any]], name: str, mixed: dict[str, str] | None = None
) -> ArrowSource:
    """Column by column: one that Arrow cannot take matters only to a query that names it.

    ``mixed`` are others that cannot be read, with what they are instead.
    """
    arrays: list[pa.Array | pa.ChunkedArray] = []
    names: list[str] = []
    mixed = mixed or {}
    for label, values in columns:
        try:
            arrays.append(_array(values))
            names.append(label)
        except _UNCONVERTIBLE as error:
            mixed[label] = f"no column of one type ({one_line(error)})"
    for label, array in zip(names, arrays, strict=True):
        if len(array) != len(arrays[0]):
            raise SourceError(
                f"table {name!r} has {len(arrays[0])} rows in column {names[0]!r} "
                f"but {len(array)} in {label!r}; give columns of one length"
            )
    return ArrowSource(pa.Table.from_arrays(arrays, names=names), name, mixed)


def _array(values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if _is_pandas(values):
        return pa.Array.from_pandas(values)
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if isinstance(values, np.ndarray):
        return _from_numpy(values)
    if isinstance(values, str | bytes):
        raise TypeError("a single value")
    return _from_objects(values if hasattr(values, "__len__") else list(values))


def _from_numpy(values: np.ndarray[Any, Any]) -> pa.Array:
    if values.ndim != 1:
        raise ValueError(f"it has {values.ndim} dimensions")
    if values.dtype.kind == "M":
        values = values.astype("datetime64[us]", copy=False)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    return _from_objects(values) if values.dtype == object else pa.array(values)


def _from_objects(values: Any) -> pa.Array:
    """Python objects; a NaN among texts can only mean "missing"."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array(values, from_pandas=True)


def article(type_name: str) -> str:
    """A type's name with its article."""
    return ("an " if type_name[0].lower() in "aeiou" else "a ") + type_name


def one_line(error: BaseException) -> str:
    """The first line of a message, which is where Arrow says what is wrong."""
    return str(error).strip().split("\n", maxsplit=1)[0].rstrip(". ")
