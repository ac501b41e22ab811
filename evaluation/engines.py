"""Engines with their predicates and rows, and the values of a column that predicates speak of.

What is worked out of columns is not the engine's: it may be held against the engine's answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import ids
from ids.model.expression import Literal
from ids.model.rendering import render


def registered(engine: ids.Engine, conditions: Mapping[str, str]) -> ids.Engine:
    """The same engine, with these predicates by name."""
    for name, condition in conditions.items():
        engine.register(name, condition)
    return engine


def registering(conditions: Mapping[str, str], stream: str) -> str:
    """The lines of a script that register the same predicates on a stream."""
    return "\n".join(
        f"REGISTER PREDICATE {name} AS ({condition}) ON {stream};"
        for name, condition in conditions.items()
    )


def filled(engine: ids.Engine, events: pa.Table, batch: int) -> ids.Engine:
    """The same engine, after it was given the rows, so many at a time."""
    for first in range(0, events.num_rows, batch):
        engine.ingest(events.slice(first, batch))
    return engine


def as_text(events: pa.Table) -> pa.Table:
    """The same rows; a slide of them brings its own text, not that of every row of the stream."""
    return pa.table({name: plain(events[name]) for name in events.column_names})


def plain(column: pa.ChunkedArray) -> pa.Array:
    """The same values in one piece, without a dictionary."""
    joined = column.combine_chunks()
    return joined.dictionary_decode() if pa.types.is_dictionary(joined.type) else joined


def literal(value: str | int | float) -> str:
    """A value as it is written in a condition."""
    return render(Literal(value))


def equality(name: str, value: str | int | float) -> str:
    """The condition that a column has this value."""
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
