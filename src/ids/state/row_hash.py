"""A row's priority in a sample, from its contents: the same wherever and in whatever parts it runs.

    content   the seed and each column's hash, hashed on
    ordinal   the row's number among rows of equal contents, 0, 1, 2 …
    priority  the content and the ordinal, hashed

Spark computes the same numbers with its ``xxhash64`` (``ids.spark.spark_prepare``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ids.kernels import START, hash_texts, hash_words, ordinals
from ids.model import DOUBLE_INTEGERS, ColumnData, Kind, Table

Hashes = npt.NDArray[np.int64]


def contents(table: Table, columns: Sequence[str], seed: int) -> Hashes:
    """A hash of each row's columns, in the order they are given."""
    found = _hashed(np.full(table.rows, seed, np.int64))
    for name in columns:
        hash_words(_column(table.columns[name]), found)
    return found


def priorities(content: Hashes) -> Hashes:
    """The priority of each row; rows of equal contents are told apart by their order."""
    numbers = np.empty_like(content)
    ordinals(content, numbers)
    found = _hashed(content)
    hash_words(numbers, found)
    return found


def tie_breaks(priority: Hashes) -> Hashes:
    """What decides between equal values: independent of the priority, or the sample would lean."""
    return _hashed(priority)


def _hashed(words: Hashes) -> Hashes:
    found = np.full(len(words), START, np.int64)
    hash_words(words, found)
    return found


def _column(column: ColumnData) -> Hashes:
    """Each row's value of one column, hashed; numbers of any type as doubles."""
    if column.kind is Kind.TEXT:
        words = _texts(column.dictionary)
        found = words[column.values] if len(words) else np.full(len(column), START, np.int64)
    elif column.kind is Kind.NUMBER:
        values = column.values.astype(np.float64) + 0.0  # -0.0 is 0.0
        values[np.isnan(values)] = np.nan  # of one kind
        found = _hashed(values.view(np.int64))
        if column.values.dtype.kind == "i":
            _tell_apart(column.values.astype(np.int64, copy=False), found)
    else:
        found = _hashed(column.values.astype(np.int64))
    if column.valid is not None:
        found = np.where(column.valid, found, START)
    return found


def _tell_apart(values: Hashes, found: Hashes) -> None:
    """Whole numbers that one double stands for are hashed on."""
    far = np.flatnonzero((values > DOUBLE_INTEGERS) | (values < -DOUBLE_INTEGERS))
    if len(far):
        own = found[far]
        hash_words(values[far], own)
        found[far] = own


def _texts(dictionary: npt.NDArray[np.object_] | None) -> Hashes:
    """Each word of a dictionary, hashed."""
    encoded = [word.encode() for word in dictionary] if dictionary is not None else []
    starts = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(word) for word in encoded], out=starts[1:])
    found = np.full(len(encoded), START, np.int64)
    hash_texts(np.frombuffer(b"".join(encoded), np.uint8), starts, found)
    return found
