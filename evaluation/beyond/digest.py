"""The digest of a table: two are alike only if every bit of every cell is."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["digest"]


def digest(table: pa.Table) -> str:
    """SHA-256 over names, types, NULLs and the exact bits of each value, column by column.

    Only numbers and times: what a query emits without PARTITION BY.

    >>> digest(pa.table({"x": [0.1]})) == digest(pa.table({"x": [0.1]}))
    True
    >>> digest(pa.table({"x": [0.0]})) == digest(pa.table({"x": [-0.0]}))
    False
    """
    hashed = sha256(f"{table.num_rows}".encode())
    for field in table.schema:
        column = table[field.name].combine_chunks()
        hashed.update(f"|{field.name}:{field.type}|".encode())
        hashed.update(np.packbits(pc.is_valid(column).to_numpy(zero_copy_only=False)).tobytes())
        bits = column.view(pa.int64()) if column.type.bit_width == 64 else column
        hashed.update(bits.fill_null(0).to_numpy(zero_copy_only=False).tobytes())
    return hashed.hexdigest()
