"""Sorts a query's rows by key, and within each key by the ORDER BY columns.

Rows with equal ORDER BY values keep their input order. NULL sorts first. On Spark,
``ids.spark.rank`` does the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ids.kernels import ascending
from ids.model import ColumnData

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ordering:
    """The window order of the input's rows.

    rows    int64[n] the input row at each position, or None if the input is already in order
    starts  int64[k + 1] where each key's rows start (one key without PARTITION BY)
    stream  int64[n] the position of each row when the rows of all keys are sorted together, or None
            if there is only one key and the positions are the same
    """

    rows: Rows | None
    starts: Rows
    stream: Rows | None


def arrange(order: list[ColumnData], keys: list[ColumnData], rows: int) -> Ordering:
    """Sort stably by the order columns, then by key; O(n) if already in order."""
    by_time = _sort_order(order, rows)
    if not keys:
        return Ordering(by_time, np.array([0, rows], dtype=np.int64), None)
    codes, distinct = key_codes(keys)
    if by_time is not None:
        codes = codes[by_time]
    by_key = np.argsort(codes, kind="stable").astype(np.int64)
    starts = np.searchsorted(codes[by_key], np.arange(distinct + 1)).astype(np.int64)
    chosen = by_key if by_time is None else by_time[by_key]
    return Ordering(chosen, starts, by_key)


def key_codes(keys: list[ColumnData]) -> tuple[Rows, int]:
    """Number the keys from 0 in sort order, NULL first; return each row's key and their count."""
    codes = np.zeros(len(keys[0]), dtype=np.int64)
    for column in keys:
        _, rank = np.unique(_comparable(column), return_inverse=True)
        own = rank.astype(np.int64) + 1
        if column.valid is not None:
            own = np.where(column.valid, own, 0)
        _, joint = np.unique(codes * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
        codes = joint.astype(np.int64)
    return codes, int(codes.max(initial=-1)) + 1


def _comparable(column: ColumnData) -> npt.NDArray[np.generic]:
    """Return numbers that sort like the column (for text, ranks in its dictionary)."""
    if column.dictionary is None:
        return column.values
    # as objects, since fixed-width text would drop trailing NULs and pad all words
    _, rank = np.unique(column.dictionary, return_inverse=True)
    ranks: Rows = rank.astype(np.int64)
    return ranks[column.values] if len(ranks) else np.zeros(len(column), np.int64)


def _sort_order(columns: list[ColumnData], rows: int) -> Rows | None:
    """Return the stable sort order, NULL first, or None if the rows are already in order."""
    if rows < 2 or not columns:
        return None
    keys: list[npt.NDArray[np.generic]] = []
    for column in columns:
        if column.valid is not None:
            keys.append(column.valid)
        values = _comparable(column)
        keys.append(values if column.valid is None else np.where(column.valid, values, 0))
    if len(keys) == 1:
        if ascending(keys[0]):
            return None
        return np.argsort(keys[0], kind="stable").astype(np.int64)
    order = np.lexsort(tuple(reversed(keys))).astype(np.int64)
    return None if bool(np.all(order == np.arange(rows))) else order
