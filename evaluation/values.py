"""The values of a column: as plain text, as a condition says them, how frequent, and on which rows.

None of it is the engine's: what is worked out here may be held against the engine's answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ids.model.expression import Literal
from ids.model.rendering import render

__all__ = ["as_text", "equality", "frequent", "literal", "plain", "where"]


def as_text(events: pa.Table) -> pa.Table:
    """The same rows; a slide of them brings its own text, not that of every row of the stream."""
    columns = [plain(events[name]) for name in events.column_names]
    return pa.table(columns, names=events.column_names)


def plain(column: pa.ChunkedArray) -> pa.Array:
    """The same values in one piece, without a dictionary."""
    joined = column.combine_chunks()
    return joined.dictionary_decode() if pa.types.is_dictionary(joined.type) else joined


def literal(value: str | int | float) -> str:
    """A value as it is written in a condition.

    >>> literal("Queens"), literal(2.5)
    ("'Queens'", '2.5')
    """
    return render(Literal(value))


def equality(name: str, value: str | int | float) -> str:
    """The condition that a column has this value.

    >>> equality("borough", "Queens")
    "borough = 'Queens'"
    """
    return f"{name} = {literal(value)}"


def frequent(events: pa.Table, name: str) -> list[tuple[Any, int]]:
    """The values of a column and their rows, the most frequent first; NULL is none."""
    counted = pc.value_counts(plain(events[name]).drop_null()).to_pylist()
    pairs = [(entry["values"], entry["counts"]) for entry in counted]
    return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


def where(column: pa.Array, value: object) -> npt.NDArray[np.bool_]:
    """On which rows a plain column has this value; NULL never does."""
    held = pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False)
    found: npt.NDArray[np.bool_] = held.to_numpy(zero_copy_only=False)
    return found
