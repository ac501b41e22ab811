"""JSON Lines, written a column at a time: Arrow has no writer of its own."""

from __future__ import annotations

import json
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ids.errors import SourceError

__all__ = ["write_jsonl"]

_BATCH = 1 << 16


def write_jsonl(table: pa.Table, file: BinaryIO) -> None:
    """One object a line; NULL is null, and so are NaN and the infinities, which JSON lacks.

    Timestamps are ISO 8601 in UTC. Every column is formatted as a whole and the lines are joined
    by Arrow; Python sees each distinct text once a batch.
    """
    for batch in table.to_batches(max_chunksize=_BATCH):
        file.write(_lines(batch))


def _lines(batch: pa.RecordBatch) -> memoryview:
    pieces: list[pa.Array | pa.Scalar] = []
    for i, field in enumerate(batch.schema):
        opening = "{" if i == 0 else ","
        pieces.append(_scalar(f"{opening}{json.dumps(field.name, ensure_ascii=False)}:"))
        texts = _texts(batch.column(i), field.name).cast(pa.large_string())
        pieces.append(texts.fill_null("null"))
    lines = pc.binary_join_element_wise(*pieces, _scalar("}\n"), _scalar(""))
    # the texts of an Arrow array lie one after the other: that is the file
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int64)[[lines.offset, lines.offset + len(lines)]]
    return memoryview(data)[ends[0] : ends[1]]


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _texts(column: pa.Array, name: str) -> pa.Array:
    """Each value as JSON spells it, NULL as NULL."""
    type_ = column.type
    if _is_text(type_):
        return _quoted(column.dictionary_encode())
    if types.is_dictionary(type_):
        if _is_text(type_.value_type):
            return _quoted(column)
        return _texts(column.dictionary_decode(), name)
    if types.is_timestamp(type_):
        return _instants(column)
    if types.is_floating(type_):
        finite = pc.is_finite(column)
        return pc.if_else(finite, column, pa.scalar(None, type_)).cast(pa.string())
    if types.is_integer(type_) or types.is_boolean(type_) or types.is_null(type_):
        return column.cast(pa.string())
    raise SourceError(f"cannot write column {name!r} ({type_}) as JSON; write .parquet instead")


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_)
    )


def _quoted(coded: pa.DictionaryArray) -> pa.Array:
    spelt = [json.dumps(text, ensure_ascii=False) for text in coded.dictionary.to_pylist()]
    return pa.array(spelt, pa.large_string()).take(coded.indices)


def _instants(column: pa.Array) -> pa.Array:
    """``"2024-01-01T00:00:00.000000Z"``; a timestamp without a zone is UTC."""
    written = column.cast(pa.timestamp(column.type.unit, "UTC")).cast(pa.string())
    spaced = pc.replace_substring(written, " ", "T", max_replacements=1)
    return pc.binary_join_element_wise('"', spaced, '"', "")
