"""The rows in window order: key by key, and within a key by the ORDER BY columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ids.model.table import ColumnData, Kind

__all__ = ["Ordering", "arrange", "key_codes"]

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ordering:
    """How the input's rows stand in window order.

    rows    int64[n] input row of each place, or None when the input is in order already
    starts  int64[k + 1] where each key's rows begin (one key without PARTITION BY)
    stream  int64[n] place of each row in the order of the whole stream, or None when it is
            the place itself (one key)
    """

    rows: Rows | None
    starts: Rows
    stream: Rows | None


def arrange(order: list[ColumnData], keys: list[ColumnData], rows: int) -> Ordering:
    """Sort stably by the order columns, then by key; cost O(n) when already in order."""
    by_time = _sort_order([_comparable(column) for column in order], rows)
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
    """A dense number for each row's key, ascending by the key's values, NULL first."""
    codes = np.zeros(len(keys[0]), dtype=np.int64)
    for column in keys:
        own = _comparable(column).astype(np.float64 if column.kind is Kind.NUMBER else np.int64)
        _, own = np.unique(own, return_inverse=True)
        own = own.astype(np.int64) + 1
        if column.valid is not None:
            own = np.where(column.valid, own, 0)
        codes = codes * (int(own.max(initial=0)) + 1) + own
        _, codes = np.unique(codes, return_inverse=True)
    return codes.astype(np.int64), int(codes.max(initial=-1)) + 1


def _comparable(column: ColumnData) -> npt.NDArray[np.generic]:
    """Numbers that order as the column does (text: the rank of its dictionary value)."""
    if column.dictionary is None:
        return column.values
    values = column.dictionary.astype(str) if len(column.dictionary) else np.array([""])
    _, rank = np.unique(values, return_inverse=True)
    return rank.astype(np.int64)[column.values]


def _sort_order(columns: list[npt.NDArray[np.generic]], rows: int) -> Rows | None:
    """The stable sort order, or None where the rows are in order."""
    if rows < 2 or not columns:
        return None
    if len(columns) == 1:
        if bool(np.all(columns[0][1:] >= columns[0][:-1])):  # type: ignore[operator]
            return None
        return np.argsort(columns[0], kind="stable").astype(np.int64)
    order = np.lexsort(tuple(reversed(columns))).astype(np.int64)
    return None if bool(np.all(order == np.arange(rows))) else order
