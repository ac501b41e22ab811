"""Row priorities for sampling, which depend on a row's contents but not on partitions or batches.

    content   hash of the seed and then of each column in turn
    ordinal   0, 1, 2 … for rows with equal contents, in their order
    priority  hash of content and ordinal

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
    """Return a hash of each row, computed from these columns in this order."""
    found = _hashed(np.full(table.rows, seed, np.int64))
    for name in columns:
        hash_words(_column(table.columns[name]), found)
    return found


def priorities(content: Hashes) -> Hashes:
    """Return the priority of each row; identical rows get different priorities by position."""
    numbers = np.empty_like(content)
    ordinals(content, numbers)
    found = _hashed(content)
    hash_words(numbers, found)
    return found


def tie_breaks(priority: Hashes) -> Hashes:
    """Return numbers that break ties between equal values, independently of the priority."""
    return _hashed(priority)


def _hashed(words: Hashes) -> Hashes:
    found = np.full(len(words), START, np.int64)
    hash_words(words, found)
    return found


def _column(column: ColumnData) -> Hashes:
    """Return the hash of each value of a column; numbers of any type are hashed as doubles."""
    if column.kind is Kind.TEXT:
        words = _texts(column.dictionary)
        found = words[column.values] if len(words) else np.full(len(column), START, np.int64)
    elif column.kind is Kind.NUMBER:
        values = column.values.astype(np.float64) + 0.0  # -0.0 is 0.0
        values[np.isnan(values)] = np.nan  # every NaN gets the same bit pattern
        found = _hashed(values.view(np.int64))
        if column.values.dtype.kind == "i":
            _distinguish(column.values.astype(np.int64, copy=False), found)
    else:
        found = _hashed(column.values.astype(np.int64))
    if column.valid is not None:
        found = np.where(column.valid, found, START)
    return found


def _distinguish(values: Hashes, found: Hashes) -> None:
    """Hash integers beyond 2**53 again, because several of them convert to the same double."""
    far = np.flatnonzero((values > DOUBLE_INTEGERS) | (values < -DOUBLE_INTEGERS))
    if len(far):
        own = found[far]
        hash_words(values[far], own)
        found[far] = own


def _texts(dictionary: npt.NDArray[np.object_] | None) -> Hashes:
    """Return the hash of each word of a dictionary."""
    encoded = [word.encode() for word in dictionary] if dictionary is not None else []
    starts = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(word) for word in encoded], out=starts[1:])
    found = np.full(len(encoded), START, np.int64)
    hash_texts(np.frombuffer(b"".join(encoded), np.uint8), starts, found)
    return found
