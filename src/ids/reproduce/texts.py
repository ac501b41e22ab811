"""Text as text: columns without the dictionary of a whole stream, values as conditions say."""

from __future__ import annotations

import pyarrow as pa

from ids.model.expression import Literal
from ids.model.rendering import render

__all__ = ["as_text", "literal"]


def as_text(events: pa.Table) -> pa.Table:
    """The same rows; a slide of them brings its own text, not that of every row of the stream."""
    kinds = [pa.string() if pa.types.is_dictionary(f.type) else f.type for f in events.schema]
    schema = pa.schema(list(zip(events.column_names, kinds, strict=True)))
    return events.cast(schema).combine_chunks()


def literal(value: str | int | float) -> str:
    """A value as it is written in a condition.

    >>> literal("Queens"), literal(2.5)
    ("'Queens'", '2.5')
    """
    return render(Literal(value))
