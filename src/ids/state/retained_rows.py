"""The retained rows: all rows in the window, stored as columns in window order.

Each row is stored with what is needed to subtract it from the sums when it expires:

tag      the row's atom, or the targets that hold on it (``ids.state.summaries``)
digits   for each measure, the value as integer digits
players  for each measure, whether the value is not NULL
time     the event time

The raw columns are stored too, so that any condition can be evaluated on the rows, and the atoms
can be rebuilt exactly.

Rows are appended at the tail and dropped at the head, in O(1) amortised time.

    head            tail
░░░░░│██ live rows ██│······ free space
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ids.errors import StateError
from ids.kernels import places_among
from ids.model import DOUBLE_INTEGERS, ColumnData, Kind, Table
from ids.state.row_hash import contents

Array = npt.NDArray[np.generic]


class Sliding:
    """Columns of equal length over the live rows; the first axis of each array is the row.

    When the tail reaches the end of the allocated space, the live rows are moved to the front. A
    quarter of the space is spare, so a row is moved at most four times.

    first     the number of the oldest live row, counted from the first row ever; only
              ``drop_front`` changes it
    expected  the expected number of live rows, if known; once half of them have arrived, space for
              all is allocated in one step

    A view is valid until rows are appended, which may move the rows within the same memory.
    """

    def __init__(self, expected: int = 0) -> None:
        self.first = 0
        self.expected = expected
        self._arrays: dict[str, Array] = {}
        self._head = 0
        self._tail = 0

    def __len__(self) -> int:
        return self._tail - self._head

    def __getitem__(self, name: str) -> Array:
        """Return a view of one column's live rows."""
        return self._arrays[name][self._head : self._tail]

    def get(self, name: str) -> Array | None:
        """Return a view of one column's live rows; None if there is no such column."""
        return self[name] if name in self._arrays else None

    def columns(self) -> dict[str, Array]:
        """Return views of the live rows of every column."""
        return {name: self[name] for name in self._arrays}

    @property
    def nbytes(self) -> int:
        """Return the allocated bytes."""
        return sum(array.nbytes for array in self._arrays.values())

    def append(self, block: Mapping[str, Array]) -> None:
        """Append rows; rows appended to an empty window determine the column types."""
        count = len(next(iter(block.values())))
        if not len(self):
            # types and widths may have changed while the window was empty
            self.replace({name: values[:0] for name, values in block.items()})
        self._reserve(count)
        for name, values in block.items():
            self._arrays[name][self._tail : self._tail + count] = values
        self._tail += count

    def merge(self, block: Mapping[str, Array], order: str) -> None:
        """Insert rows sorted by column ``order``, after existing rows with equal values."""
        if len(self) and len(block[order]):
            first = np.searchsorted(self[order], block[order].min(), side="right")
            tail = {name: self[name][first:].copy() for name in self._arrays}
            self._tail = self._head + int(first)
            block = {name: np.concatenate([tail[name], block[name]]) for name in block}
        rank = np.argsort(block[order], kind="stable")
        self.append({name: values[rank] for name, values in block.items()})

    def drop_front(self, count: int) -> None:
        """Drop the oldest rows."""
        self._head += count
        self.first += count

    def keep(self, mask: npt.NDArray[np.bool_]) -> None:
        """Keep only the marked rows."""
        self.replace({name: self[name][mask] for name in self._arrays})

    def remove(self, places: npt.NDArray[np.int64]) -> None:
        """Drop the rows at these positions and fill the gaps with rows from the tail. O(places).

        The order of the rows is lost.
        """
        last = len(self) - len(places)
        stays = np.ones(len(places), np.bool_)
        stays[places[places >= last] - last] = False
        holes, moved = places[places < last], last + np.flatnonzero(stays)
        for name in self._arrays:
            self[name][holes] = self[name][moved]
        self._tail -= len(places)

    def put(self, name: str, values: Array) -> None:
        """Replace the live rows of one column; its type and width may change."""
        held = self._arrays.get(name)
        if held is not None and (held.dtype, held.shape[1:]) == (values.dtype, values.shape[1:]):
            held[self._head : self._tail] = values
            return
        self.replace({**self.columns(), name: values})

    def replace(self, block: Mapping[str, Array]) -> None:
        """Replace the live rows; columns may be added or removed, and their types may change."""
        self._arrays = {name: np.array(values) for name, values in block.items()}
        self._head = 0
        self._tail = len(next(iter(block.values()))) if block else 0

    def _reserve(self, count: int) -> None:
        capacity = len(next(iter(self._arrays.values())))
        if self._tail + count <= capacity:
            return
        live = len(self)
        needed = live + count
        if needed * 5 // 4 > capacity or needed * 2 < capacity:
            # only small batches suggest that the window will fill up to ``expected``
            near = 2 * needed >= self.expected >= 8 * count
            self._reallocate(max(needed, self.expected + count if near else 0))
        else:
            for array in self._arrays.values():
                _move_to_front(array, self._head, live)
        self._head, self._tail = 0, live

    def _reallocate(self, rows: int) -> None:
        """Allocate space for this many rows plus 25%."""
        live = len(self)
        for name, array in self._arrays.items():
            fresh = np.empty((rows + rows // 4, *array.shape[1:]), array.dtype)
            fresh[:live] = array[self._head : self._tail]
            self._arrays[name] = fresh


def _move_to_front(array: Array, head: int, live: int) -> None:
    """Move the rows in chunks that do not overlap, so that no temporary copy is made."""
    for start in range(0, live, head):
        stop = min(start + head, live)
        array[start:stop] = array[head + start : head + stop]


# Column names, used here and in checkpoints.
_TAG, _TIME, _CONTENT, _SEQUENCE, _STRATUM = "tag", "time", "content", "sequence", "stratum"

_FEW_WORDS = 1024

Places = npt.NDArray[np.int64]
Words = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RowBlock:
    """Rows in the form in which they are stored, created by ``Retained.block``.

    raw       the raw columns, keyed by their internal names; text is stored as codes
    tags      uint32[n] atoms, or uint8[n, t] packed targets
    digits    int64[n, d] for each measure except measure 0
    players   bool[n]     for each measure except measure 0
    times     int64[n]  event times, if any
    content   int64[n]  a hash of each row, used to find the rows that a changelog deletes
    sequence  int64[n]  arrival numbers, if there is a sample
    stratum   int32[n]  strata, if there is a sample
    """

    raw: Mapping[str, Array]
    tags: Array
    digits: Sequence[Words] = ()
    players: Sequence[Bools] = ()
    times: Words | None = None
    content: Words | None = None
    sequence: Words | None = None
    stratum: npt.NDArray[np.int32] | None = None

    def columns(self) -> dict[str, Array]:
        """Return all columns, keyed by name."""
        alone: dict[str, Array | None] = {
            _TAG: self.tags,
            _TIME: self.times,
            _CONTENT: self.content,
            _SEQUENCE: self.sequence,
            _STRATUM: self.stratum,
        }
        found = {name: array for name, array in alone.items() if array is not None}
        for m, (digits, players) in enumerate(zip(self.digits, self.players, strict=True), start=1):
            found[f"digits {m}"] = digits
            found[f"players {m}"] = players if len(players) else np.ones(len(digits), np.bool_)
        return {**found, **self.raw}


class Retained:
    """The rows in window order; each text column has one dictionary.

    Measures are numbered from 1: measure 0 counts rows and has no digits.
    """

    def __init__(self, kinds: Mapping[str, Kind], expected: int = 0) -> None:
        self.kinds = dict(kinds)
        self._rows = Sliding(expected)
        self._codes: dict[str, dict[str, int]] = {
            name: {} for name, kind in kinds.items() if kind is Kind.TEXT
        }
        self._spelled: dict[str, npt.NDArray[np.object_]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def nbytes(self) -> int:
        """The size of the arrays and of the text in the dictionaries, in bytes."""
        words = sum(len(word.encode()) for words in self._codes.values() for word in words)
        return self._rows.nbytes + words

    @property
    def first(self) -> int:
        """The number of the oldest row, counted from the first row ever."""
        return self._rows.first

    @property
    def tags(self) -> Array:
        """The tag of each row: uint32[n] atoms, or uint8[n, t] packed targets."""
        return self._rows[_TAG]

    @property
    def times(self) -> Words | None:
        """The event times, ascending, or None if rows have none."""
        times = self._rows.get(_TIME)
        return None if times is None else times.view(np.int64)

    @property
    def sequence(self) -> Words | None:
        """The arrival numbers, or None if there is no sample."""
        numbers = self._rows.get(_SEQUENCE)
        return None if numbers is None else numbers.view(np.int64)

    @property
    def stratum(self) -> npt.NDArray[np.int32]:
        """The stratum of each row; there must be a sample."""
        return self._rows[_STRATUM].view(np.int32)

    def digits(self, measure: int) -> Words:
        """Return the digits of a measure, int64[n, d]."""
        return self._rows[f"digits {measure}"].view(np.int64)

    def players(self, measure: int) -> Bools:
        """Return which rows are players of a measure, bool[n]."""
        return self._rows[f"players {measure}"].view(np.bool_)

    def values(self, name: str) -> tuple[Array, Bools]:
        """Return a raw column as stored, and which of its rows are not NULL."""
        return self._rows[f"value {name}"], self._rows[f"valid {name}"].view(np.bool_)

    def block(
        self,
        table: Table,
        tags: Array,
        digits: Sequence[Words] = (),
        players: Sequence[Bools] = (),
        times: Words | None = None,
        *,
        hashed: bool = False,
    ) -> RowBlock:
        """Convert rows to the form that ``insert`` expects; raise if they cannot be stored."""
        content = contents(table, list(self.kinds), 0) if hashed else None
        return RowBlock(self._encode(table), tags, digits, players, times, content)

    def _encode(self, table: Table) -> dict[str, Array]:
        """Return the raw columns, keyed by internal name, assigning codes to new words."""
        raw: dict[str, Array] = {}
        for name, kind in self.kinds.items():
            column = table.columns[name]
            values = column.values
            if kind is Kind.TEXT:
                values = self._coded(name, column, learn=True)
            elif kind is Kind.NUMBER:
                values = self._alike(name, column)
            raw[f"value {name}"] = values
            valid = column.valid
            raw[f"valid {name}"] = np.ones(table.rows, np.bool_) if valid is None else valid
        return raw

    def insert(self, block: RowBlock) -> int:
        """Insert rows, sorted by time if they have times; return the first changed position."""
        columns, times, inside = block.columns(), block.times, self.times
        if times is None or inside is None or not len(inside) or not len(times):
            self._rows.append(columns)
            return len(self) - len(block.tags)
        place = int(np.searchsorted(inside, times.min(), side="right"))
        self._rows.merge(columns, _TIME)
        return place

    def expire(self, count: int) -> None:
        """Drop the oldest rows."""
        self._rows.drop_front(count)

    def delete(self, places: Places, *, ordered: bool) -> None:
        """Drop the rows at these positions, in O(places) unless the order must be kept."""
        if ordered:
            keep = np.ones(len(self), np.bool_)
            keep[places] = False
            self._rows.keep(keep)
        else:
            self._rows.remove(places)

    def retag(self, tags: Array) -> None:
        """Replace the tag of every row."""
        self._rows.put(_TAG, tags)

    def recut(self, measure: int, digits: Words) -> None:
        """Replace the digits of a measure on every row."""
        self._rows.put(f"digits {measure}", digits)

    def _coded(self, name: str, column: ColumnData, *, learn: bool) -> Array:
        """Convert text to this dictionary's codes; a new word is added to it, or becomes -1."""
        codes = self._codes[name]
        words = column.dictionary if column.dictionary is not None else np.zeros(0, object)
        here = column.values if column.valid is None else column.values[column.valid]
        own = np.full(len(words), -1, np.int32)
        used = np.unique(here) if len(here) < len(words) else np.flatnonzero(np.bincount(here))
        for code in used:
            word = words[code]
            own[code] = codes.setdefault(word, len(codes)) if learn else codes.get(word, -1)
        found = own[column.values]
        return found if column.valid is None else np.where(column.valid, found, np.int32(0))

    def _alike(self, name: str, column: ColumnData) -> Array:
        """Convert numbers to the column's type; raise if integers and doubles cannot be mixed."""
        values, valid = column.values, column.valid
        if not len(self):
            return values
        held, held_valid = self.values(name)
        if held.dtype == values.dtype:
            return values
        if valid is not None and not valid.any():
            return np.zeros(len(values), held.dtype)
        if not (_doubles(held, held_valid) and _doubles(values, valid)):
            raise StateError(
                f"column {name!r} has both fractions and whole numbers beyond 2**53, which no "
                "double represents; give it one type. Nothing changed"
            )
        if held.dtype.kind == "i":
            self._rows.put(f"value {name}", held.astype(np.float64))
        return values.astype(np.float64)

    def agree(self, table: Table) -> None:
        """Convert number columns to a type that also fits these rows; raise if none exists."""
        for name, kind in self.kinds.items():
            if kind is Kind.NUMBER:
                self._alike(name, table.columns[name])

    def forget(self) -> None:
        """Drop unused words once they make up most of a dictionary."""
        for name, codes in self._codes.items():
            if len(codes) <= _FEW_WORDS + 2 * len(self):
                continue
            used, place = np.unique(self.values(name)[0], return_inverse=True)
            words = [*codes]
            self._codes[name] = {words[code]: c for c, code in enumerate(used)}
            self._spelled.pop(name, None)
            self._rows.put(f"value {name}", place.ravel().astype(np.int32))

    def table(self, names: Collection[str] | None = None) -> Table:
        """Return views of the raw columns, or of those in ``names``."""
        known = self._rows.columns()
        chosen = [n for n in self.kinds if f"value {n}" in known and (names is None or n in names)]
        return Table({name: self._column(name) for name in chosen}, len(self))

    def take(self, places: Places, names: Collection[str]) -> Table:
        """Return the named raw columns of the rows at these positions. O(places)."""
        return Table({name: self._column(name, places) for name in names}, len(places))

    def _column(self, name: str, rows: slice | Places = slice(None)) -> ColumnData:
        kind = self.kinds[name]
        values, valid = (each[rows] for each in self.values(name))
        return ColumnData(
            kind, values, None if valid.all() else valid.astype(np.bool_, copy=False),
            self._words(name) if kind is Kind.TEXT else None,
        )  # fmt: skip

    def codes(self, name: str) -> dict[str, int]:
        """Return the codes of a text column's words as a dict, which callers must not change.

        The dict grows as new words arrive. When codes change, it is replaced by a new one.
        """
        return self._codes[name]

    def _words(self, name: str) -> npt.NDArray[np.object_]:
        """Return the words in code order, cached until a word is added.

        The array is never empty, so that the code of a NULL is a valid index.
        """
        codes = self._codes[name]
        if not codes:
            return np.array([""], dtype=object)
        words = self._spelled.get(name)
        if words is None or len(words) < len(codes):
            words = self._spelled[name] = np.array([*codes], dtype=object)
        return words

    def locate(self, table: Table) -> Places:
        """Find an equal row for each of these rows; return its position, or -1 if there is none.

        Each position is used at most once, the oldest first. NULL equals NULL, NaN equals NaN, and
        -0.0 equals 0.0.
        """
        found = np.full(table.rows, -1, np.int64)
        if len(self):
            wanted, held = self._typed(table)
            wanted, names = wanted.take(held), list(self.kinds)
            content = self._rows.get(_CONTENT)
            hashes = contents(self.table(), names, 0) if content is None else content.view(np.int64)
            among = places_among(hashes, contents(wanted, names, 0))
            found[held] = self._find(wanted, among)
        return found

    def _typed(self, table: Table) -> tuple[Table, Places]:
        """Convert rows to the columns' number types; return them and which are representable."""
        columns, held = dict(table.columns), np.ones(table.rows, np.bool_)
        for name, kind in self.kinds.items():
            column = table.columns[name]
            if kind is Kind.NUMBER:
                values, exact = _as_type(column.values, self.values(name)[0].dtype)
                held &= exact if column.valid is None else exact | ~column.valid
                columns[name] = ColumnData(kind, values, column.valid)
        return Table(columns, table.rows), np.flatnonzero(held)

    def _find(self, table: Table, among: Places) -> Places:
        """Like ``locate``, but search only some positions, for rows in the columns' types."""
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
            held, there = self.values(name)
            inside.append((held[among], there[among]))
        places = _match(_keys(inside), _keys(wanted))
        return np.where(places < 0, -1, among[places])

    def dictionaries(self) -> dict[str, list[str]]:
        """Return the words of the text columns, in code order."""
        return {name: [*codes] for name, codes in self._codes.items()}

    def arrays(self) -> dict[str, Array]:
        """Return the columns for a checkpoint, without the hashes, which can be recomputed."""
        return {n: array for n, array in self._rows.columns().items() if n != _CONTENT}

    def restore(
        self,
        dictionaries: Mapping[str, Sequence[str]],
        arrays: Mapping[str, Array],
        *,
        hashed: bool = False,
    ) -> None:
        """Restore the rows from a checkpoint."""
        self._codes = {n: {w: c for c, w in enumerate(words)} for n, words in dictionaries.items()}
        self._spelled.clear()
        self._rows.replace(arrays)
        if hashed and len(self):
            self._rows.put(_CONTENT, contents(self.table(), list(self.kinds), 0))


def _doubles(values: Array, valid: Array | None) -> bool:
    """Return whether every value is a double, or an integer that a double can represent."""
    if values.dtype.kind == "f":
        return True
    here = values if valid is None else values[valid.astype(np.bool_)]
    return not len(here) or bool(here.min() >= -DOUBLE_INTEGERS and here.max() <= DOUBLE_INTEGERS)


def _as_type(values: Array, dtype: np.dtype[np.generic]) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Convert the values to another type; return them and which were converted exactly."""
    if values.dtype == dtype:
        return values, np.ones(len(values), np.bool_)
    with np.errstate(invalid="ignore"):
        same = values.astype(dtype)
        return same, same.astype(values.dtype) == values


def _keys(columns: Sequence[tuple[Array, npt.NDArray[np.bool_]]]) -> npt.NDArray[np.void]:
    """Return an opaque key for each row; equal rows have equal bytes (a NULL becomes 0)."""
    parts = []
    for values, valid in columns:
        # adding 0 turns -0.0 into 0.0
        clean = np.where(valid, values, values.dtype.type(0)) + values.dtype.type(0)
        if clean.dtype.kind == "f":
            clean[np.isnan(clean)] = np.nan  # every NaN gets the same bit pattern
        parts.append(np.ascontiguousarray(clean).view(np.uint8).reshape(len(values), -1))
        parts.append(valid.view(np.uint8).reshape(len(values), 1))
    rows = np.ascontiguousarray(np.concatenate(parts, axis=1))
    return rows.view(np.dtype((np.void, rows.shape[1]))).ravel()


def _match(inside: npt.NDArray[np.void], wanted: npt.NDArray[np.void]) -> Places:
    """For the k-th occurrence of a wanted key, return the k-th position that has it, or -1."""
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
