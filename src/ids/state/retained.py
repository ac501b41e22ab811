"""The retained window: every row inside, columnar, in window order.

What expiry needs (tag, digits, players, time) stands beside the raw columns, so that a predicate
nobody registered can still be put to the rows, and the refinement can be rebuilt exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ids.model.table import ColumnData, Kind, Table
from ids.state.sliding import Array, Sliding

__all__ = ["Retained"]

TAG = "tag"
TIME = "time"


class Retained:
    """Rows in window order; text columns share one growing dictionary each."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self.kinds = dict(kinds)
        self.rows = Sliding()
        self._codes: dict[str, dict[str, int]] = {
            name: {} for name, kind in kinds.items() if kind is Kind.TEXT
        }

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes held: arrays, and the text of the dictionaries."""
        words = sum(len(word.encode()) for words in self._codes.values() for word in words)
        return self.rows.nbytes + words

    def block(
        self,
        table: Table,
        tags: Array,
        digits: Sequence[Array],
        players: Sequence[Array],
        times: Array | None,
    ) -> dict[str, Array]:
        """Rows as they will be kept; nothing is kept yet."""
        block: dict[str, Array] = {TAG: tags}
        if times is not None:
            block[TIME] = times
        for number, (own, taking) in enumerate(zip(digits, players, strict=True)):
            block[f"digits {number}"] = own
            everyone = np.ones(table.rows, np.bool_)
            block[f"players {number}"] = taking if len(taking) else everyone
        for name in self.kinds:
            column = table.columns[name]
            block[f"value {name}"] = self._own_codes(name, column)
            valid = column.valid
            block[f"valid {name}"] = np.ones(table.rows, np.bool_) if valid is None else valid
        return block

    def _own_codes(self, name: str, column: ColumnData) -> Array:
        """Text as codes of our own dictionary; other kinds as they are."""
        if column.kind is not Kind.TEXT:
            wide = np.int64 if column.values.dtype.kind in "iu" else column.values.dtype
            return column.values.astype(wide, copy=False)
        codes = self._codes[name]
        dictionary = column.dictionary if column.dictionary is not None else []
        used = np.unique(column.values) if table_is_small(column) else np.arange(len(dictionary))
        own = np.zeros(max(1, len(dictionary)), np.int32)
        for code in used:
            if code < len(dictionary):
                own[code] = codes.setdefault(dictionary[code], len(codes))
        return own[column.values] if len(column.values) else column.values.astype(np.int32)

    def table(self) -> Table:
        """The raw columns of the rows inside, as views."""
        columns = {}
        for name, kind in self.kinds.items():
            if f"value {name}" not in self.rows:
                continue
            dictionary = None
            if kind is Kind.TEXT:
                dictionary = np.array([*self._codes[name]], dtype=object)
            valid = self.rows[f"valid {name}"].astype(np.bool_, copy=False)
            columns[name] = ColumnData(
                kind, self.rows[f"value {name}"], None if valid.all() else valid, dictionary
            )
        return Table(columns, len(self))

    def find(self, block: Mapping[str, Array]) -> npt.NDArray[np.int64] | None:
        """Places of rows equal to these, each taken once, oldest first; None if one is missing."""
        names = [n for n in self.rows.names if n.split(" ")[0] in ("value", "valid")]
        wanted = _keys({n: block[n] for n in names})
        head = _keys({n: self.rows[n][: len(wanted)] for n in names})
        if np.array_equal(head, wanted):
            return np.arange(len(wanted))
        inside = _keys({n: self.rows[n] for n in names})
        return _match(inside, wanted)

    def dictionaries(self) -> dict[str, list[str]]:
        """The text columns' values, in code order."""
        return {name: [*codes] for name, codes in self._codes.items()}

    def adopt(self, dictionaries: Mapping[str, Sequence[str]], arrays: Mapping[str, Array]) -> None:
        """Take the place of a retained window that was written to a checkpoint."""
        self._codes = {n: {w: c for c, w in enumerate(words)} for n, words in dictionaries.items()}
        self.rows.replace(arrays)


def table_is_small(column: ColumnData) -> bool:
    """Whether looking up the codes in use beats looking up the whole dictionary."""
    return column.dictionary is not None and len(column.values) < len(column.dictionary)


def _keys(columns: Mapping[str, Array]) -> npt.NDArray[np.void]:
    """Each row as one opaque key: equal rows are equal bytes (a NULL's value reads 0)."""
    parts = []
    for name, values in columns.items():
        if name.startswith("value "):
            valid = columns["valid " + name.removeprefix("value ")]
            clean = np.where(valid, values, values.dtype.type(0)) + values.dtype.type(0)
            parts.append(np.ascontiguousarray(clean).view(np.uint8).reshape(len(values), -1))
        else:
            parts.append(values.astype(np.uint8).reshape(len(values), 1))
    rows = np.ascontiguousarray(np.concatenate(parts, axis=1))
    return rows.view(np.dtype((np.void, rows.shape[1]))).ravel()


def _match(
    inside: npt.NDArray[np.void], wanted: npt.NDArray[np.void]
) -> npt.NDArray[np.int64] | None:
    """The k-th copy of a wanted key takes the k-th place inside that holds it."""
    order = np.argsort(inside, kind="stable")
    ordered = inside[order]
    rank = np.argsort(wanted, kind="stable")
    asked = wanted[rank]
    first = np.searchsorted(asked, asked, side="left")
    place = np.searchsorted(ordered, asked, side="left") + (np.arange(len(asked)) - first)
    inside_range = place < len(ordered)
    if not inside_range.all() or not np.array_equal(ordered[place], asked):
        return None
    return order[place].astype(np.int64)
