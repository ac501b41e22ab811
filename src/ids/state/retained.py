"""The retained window: every row inside, columnar, in window order.

What expiry needs (tag, digits, players, time) stands beside the raw columns, so that a predicate
nobody registered can still be put to the rows, and the refinement can be rebuilt exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ids.errors import StateError
from ids.model.table import DOUBLE_INTEGERS, ColumnData, Kind, Table
from ids.state.sliding import Array, Sliding

__all__ = ["TAG", "TIME", "Retained"]

TAG = "tag"
TIME = "time"
_FEW_WORDS = 1024

Places = npt.NDArray[np.int64]


class Retained:
    """Rows in window order; text columns share one growing dictionary each."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self.kinds = dict(kinds)
        self.rows = Sliding()
        self._codes: dict[str, dict[str, int]] = {
            name: {} for name, kind in kinds.items() if kind is Kind.TEXT
        }
        self._spelled: dict[str, npt.NDArray[np.object_]] = {}

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
            if number == 0:
                continue  # the count of rows: no digits, and everyone plays
            block[f"digits {number}"] = own
            everyone = np.ones(table.rows, np.bool_)
            block[f"players {number}"] = taking if len(taking) else everyone
        for name, kind in self.kinds.items():
            column = table.columns[name]
            values = column.values
            if kind is Kind.TEXT:
                values = self._coded(name, column, learn=True)
            elif kind is Kind.NUMBER:
                values = self._alike(name, column)
            block[f"value {name}"] = values
            valid = column.valid
            block[f"valid {name}"] = np.ones(table.rows, np.bool_) if valid is None else valid
        return block

    def _coded(self, name: str, column: ColumnData, *, learn: bool) -> Array:
        """Text as codes of our own dictionary; a word not in it is added, or reads -1."""
        codes = self._codes[name]
        words = column.dictionary
        assert words is not None
        here = column.values if column.valid is None else column.values[column.valid]
        own = np.full(len(words), -1, np.int32)
        used = np.unique(here) if len(here) < len(words) else np.flatnonzero(np.bincount(here))
        for code in used:
            word = words[code]
            own[code] = codes.setdefault(word, len(codes)) if learn else codes.get(word, -1)
        found = own[column.values]
        return found if column.valid is None else np.where(column.valid, found, np.int32(0))

    def _alike(self, name: str, column: ColumnData) -> Array:
        """Whole numbers and doubles in one column: both as doubles, or refused."""
        values, valid = column.values, column.valid
        held = self.rows[f"value {name}"] if len(self) else values
        if held.dtype == values.dtype:
            return values
        if valid is not None and not valid.any():
            return np.zeros(len(values), held.dtype)
        if not (_doubles(held, self.rows[f"valid {name}"]) and _doubles(values, valid)):
            raise StateError(
                f"column {name!r} holds fractions as well as whole numbers beyond 2**53, which "
                "no double holds; give it one type. Nothing changed"
            )
        if held.dtype.kind == "i":
            self.rows.put(f"value {name}", held.astype(np.float64))
        return values.astype(np.float64)

    def agree(self, table: Table) -> None:
        """Bring number columns to the type of rows that will come; refuses what has none."""
        for name, kind in self.kinds.items():
            if kind is Kind.NUMBER:
                self._alike(name, table.columns[name])

    def forget(self) -> None:
        """Let go of words that no row inside holds, once they are most of a dictionary."""
        for name, codes in self._codes.items():
            if len(codes) <= _FEW_WORDS + 2 * len(self):
                continue
            held = self.rows[f"value {name}"]
            used, place = np.unique(held, return_inverse=True)
            words = [*codes]
            self._codes[name] = {words[code]: c for c, code in enumerate(used)}
            self._spelled.pop(name, None)
            self.rows.put(f"value {name}", place.ravel().astype(np.int32))

    def table(self, names: Collection[str] | None = None) -> Table:
        """The raw columns of the rows inside (or those named), as views."""
        columns = {}
        for name in self.kinds:
            if f"value {name}" in self.rows and (names is None or name in names):
                columns[name] = self._column(name)
        return Table(columns, len(self))

    def take(self, places: npt.NDArray[np.int64], names: Collection[str]) -> Table:
        """The raw columns named, of the rows at these places alone. O(places)."""
        return Table({name: self._column(name, places) for name in names}, len(places))

    def _column(self, name: str, rows: slice | npt.NDArray[np.int64] = slice(None)) -> ColumnData:
        kind = self.kinds[name]
        valid = self.rows[f"valid {name}"][rows].astype(np.bool_, copy=False)
        return ColumnData(
            kind, self.rows[f"value {name}"][rows], None if valid.all() else valid,
            self._words(name) if kind is Kind.TEXT else None,
        )  # fmt: skip

    def codes(self, name: str) -> dict[str, int]:
        """The codes of a text column's words; another dictionary once codes change their meaning.

        To be read: it grows as words come, and each keeps its code.
        """
        return self._codes[name]

    def _words(self, name: str) -> npt.NDArray[np.object_]:
        """The words by their codes, made anew only when there are more of them.

        Never empty, so that the code under a NULL is in range.
        """
        codes = self._codes[name]
        if not codes:
            return np.array([""], dtype=object)
        words = self._spelled.get(name)
        if words is None or len(words) < len(codes):
            words = self._spelled[name] = np.array([*codes], dtype=object)
        return words

    def typed(self, table: Table) -> tuple[Table, Places]:
        """Rows in the number types of those inside, and which of them these types can hold."""
        columns, held = dict(table.columns), np.ones(table.rows, np.bool_)
        for name, kind in self.kinds.items():
            column = table.columns[name]
            if kind is Kind.NUMBER and len(self):
                values, exact = _as_type(column.values, self.rows[f"value {name}"].dtype)
                held &= exact if column.valid is None else exact | ~column.valid
                columns[name] = ColumnData(kind, values, column.valid)
        return Table(columns, table.rows), np.flatnonzero(held)

    def find(self, table: Table, among: Places) -> Places:
        """Where rows equal to these stand, each place given once, oldest first; -1: nowhere.

        Only the places ``among`` are looked at. NULL equals NULL, NaN equals NaN, -0.0 equals 0.0.
        """
        if not len(among) or not table.rows:
            return np.full(table.rows, -1, np.int64)
        wanted, inside = [], []
        for name, kind in self.kinds.items():
            column = table.columns[name]
            values = column.values
            if kind is Kind.TEXT:
                values = self._coded(name, column, learn=False)
            valid = np.ones(table.rows, np.bool_) if column.valid is None else column.valid
            wanted.append((values, valid))
            there = self.rows[f"valid {name}"][among].astype(np.bool_, copy=False)
            inside.append((self.rows[f"value {name}"][among], there))
        places = _match(_keys(inside), _keys(wanted))
        return np.where(places < 0, -1, among[places])

    def dictionaries(self) -> dict[str, list[str]]:
        """The text columns' values, in code order."""
        return {name: [*codes] for name, codes in self._codes.items()}

    def adopt(self, dictionaries: Mapping[str, Sequence[str]], arrays: Mapping[str, Array]) -> None:
        """Take the place of a retained window that was written to a checkpoint."""
        self._codes = {n: {w: c for c, w in enumerate(words)} for n, words in dictionaries.items()}
        self._spelled.clear()
        self.rows.replace(arrays)


def _doubles(values: Array, valid: Array | None) -> bool:
    """Whether every value is a double, or a whole number that a double holds."""
    if values.dtype.kind == "f":
        return True
    here = values if valid is None else values[valid.astype(np.bool_)]
    return not len(here) or bool(here.min() >= -DOUBLE_INTEGERS and here.max() <= DOUBLE_INTEGERS)


def _as_type(values: Array, dtype: np.dtype[np.generic]) -> tuple[Array, npt.NDArray[np.bool_]]:
    """The values in another type, and which of them it holds exactly."""
    if values.dtype == dtype:
        return values, np.ones(len(values), np.bool_)
    with np.errstate(invalid="ignore"):
        same = values.astype(dtype)
        return same, same.astype(values.dtype) == values


def _keys(columns: Sequence[tuple[Array, npt.NDArray[np.bool_]]]) -> npt.NDArray[np.void]:
    """Each row as one opaque key: equal rows are equal bytes (a NULL's value reads 0)."""
    parts = []
    for values, valid in columns:
        # adding 0 makes one zero of -0.0 and 0.0
        clean = np.where(valid, values, values.dtype.type(0)) + values.dtype.type(0)
        if clean.dtype.kind == "f":
            clean[np.isnan(clean)] = np.nan  # of one kind
        parts.append(np.ascontiguousarray(clean).view(np.uint8).reshape(len(values), -1))
        parts.append(valid.view(np.uint8).reshape(len(values), 1))
    rows = np.ascontiguousarray(np.concatenate(parts, axis=1))
    return rows.view(np.dtype((np.void, rows.shape[1]))).ravel()


def _match(inside: npt.NDArray[np.void], wanted: npt.NDArray[np.void]) -> Places:
    """The k-th copy of a wanted key takes the k-th place inside that holds it, or -1."""
    order = np.argsort(inside, kind="stable")
    ordered = inside[order]
    rank = np.argsort(wanted, kind="stable")
    asked = wanted[rank]
    first = np.searchsorted(asked, asked, side="left")
    place = np.searchsorted(ordered, asked, side="left") + (np.arange(len(asked)) - first)
    there = place < len(ordered)
    place = np.minimum(place, len(ordered) - 1)
    equal = there & (ordered[place] == asked)
    found = np.full(len(wanted), -1, np.int64)
    found[rank[equal]] = order[place[equal]]
    return found
