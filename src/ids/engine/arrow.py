"""Columns back to Arrow, without copies where the format allows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.model.table import ColumnData, Kind, Table

__all__ = ["EMIT_TIME", "aligned_rows", "doubles", "room", "to_array", "to_table"]

EMIT_TIME = pa.timestamp("us", tz="UTC")


def room(rows: int) -> npt.NDArray[np.float64]:
    """An uninitialised float64 column from Arrow's pool: aligned to 64 bytes, pages kept warm."""
    return np.frombuffer(pa.allocate_buffer(rows * 8), dtype=np.float64)


def aligned_rows(columns: int, rows: int) -> npt.NDArray[np.float64]:
    """Uninitialised float64[columns, rows or a few more], each column aligned to 64 bytes."""
    width = -(-rows // 8) * 8 + 8
    return room(columns * width).reshape(columns, width)


def doubles(values: npt.NDArray[np.float64], missing: npt.NDArray[np.bool_] | None) -> pa.Array:
    """A double column; ``missing`` marks the NULLs."""
    if missing is None or not missing.any():
        return pa.Array.from_buffers(pa.float64(), len(values), [None, pa.py_buffer(values)])
    return pa.array(values, mask=missing)


def to_array(column: ColumnData) -> pa.Array:
    """One column as an Arrow array of its natural type."""
    missing = None if column.valid is None else ~column.valid
    if column.kind is Kind.TEXT:
        codes = pa.array(column.values, mask=missing)
        texts = pa.array(list(column.dictionary if column.dictionary is not None else []), "string")
        return pa.DictionaryArray.from_arrays(codes, texts).cast("string")
    if column.kind is Kind.TIME:
        return pa.array(column.values, mask=missing).cast(EMIT_TIME)
    return pa.array(column.values, mask=missing)


def to_table(table: Table) -> pa.Table:
    """A whole table."""
    return pa.table({name: to_array(column) for name, column in table.columns.items()})
