"""The index, which finds the rows that satisfy a condition by the values of indexed columns.

For each indexed column, *postings* list the rows sorted by value, in blocks that never change:

    rows     │   65,536   │   65,536   │ 8,192 │ 8,192 │1,024│1,024│ tail │
             block 0      block 1      …                               not indexed yet

A block ends at a multiple of its size. Eight smaller blocks are merged into it only after further
rows, an eighth of its size, have arrived. Slightly late rows therefore never invalidate a large
block. The newest rows (the tail) are not indexed yet.

A condition is prepared once as a tree, and its rows are looked up again after each slide. The
leaves of the tree are *slices*, that is, intervals of values. The inner nodes are only AND and OR,
because NOT and IS TRUE are pushed down as *demands*: the set of truth values that is accepted for
the operand. OR needs an index for all operands. AND needs an index for one operand and evaluates
the others on the rows found. The number of rows that must be read has an upper bound that is known
in advance. Small sets of rows are lists of positions; large ones are bitmaps over the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import islice, takewhile
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ids.errors import UnknownNameError
from ids.kernels import (
    COMMON,
    HIGHEST,
    LOWEST,
    build_block,
    emit_bits,
    emit_slices,
    find_slices,
    keep_within,
    mark_places,
    mark_slices,
)
from ids.model import (
    And,
    BoundedCache,
    Column,
    ColumnData,
    Comparison,
    Expression,
    In,
    IsTrue,
    Kind,
    Literal,
    Not,
    Or,
    Table,
    columns_of,
)
from ids.predicates import (
    VALUE,
    RangeFactor,
    cuts_of,
    null_of,
    objects,
    representatives,
    split,
    truth,
)
from ids.state.retained_rows import Array, Retained

SIZES = (1024, 8192, 65536)

_FIRST, _ROWS, _ENTRY, _LAST = 0, 1, 3, 4

Places = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]


class Slices(NamedTuple):
    """Ascending closed intervals of keys, and whether NULL is included."""

    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    nulls: bool


class _Live(NamedTuple):
    """A column of the window in the form used by kernels: doubles as bits, Booleans as bytes.

    first  the number of the oldest row in the window, counted from the first row ever
    """

    values: npt.NDArray[Any]
    valid: npt.NDArray[np.bool_]
    double: bool
    first: int

    @classmethod
    def of(cls, values: Array, valid: Array, first: int) -> _Live:
        """Return the column converted to one of the three types that kernels accept."""
        double = values.dtype == np.float64
        if double:
            values = values.view(np.int64)
        elif values.dtype == np.bool_:
            values = values.view(np.uint8)
        return cls(values, valid.view(np.bool_), double, first)


class Found(NamedTuple):
    """A ``RowSet`` of the rows in some slices of one column.

    bounds  where each slice begins and ends in each block
    rows    the number of rows in the slices (including expired rows of the first block)
    behind  the number of rows after the last block, which are not indexed yet
    """

    postings: Postings
    live: _Live
    slices: Slices
    bounds: npt.NDArray[np.int32]
    rows: int
    behind: int

    @property
    def candidates(self) -> int:
        """The number of rows that are read: those in the slices and those not indexed yet."""
        return min(self.rows + self.behind, len(self.live.values))

    def places(self) -> Places:
        """Return the positions of these rows, ascending. O(rows + unindexed rows)."""
        post, live, (low, high, nulls) = self.postings, self.live, self.slices
        out = np.empty(self.rows + self.behind, np.int64)
        count = emit_slices(
            post.blocks, post.order, self.bounds, live.values, live.valid, live.double,
            low, high, nulls, live.first, out,
        )  # fmt: skip
        return out[:count]

    def mark(self, bits: Bits) -> None:
        """Set the bits of these rows."""
        post, live, (low, high, nulls) = self.postings, self.live, self.slices
        mark_slices(
            post.blocks, post.order, self.bounds, live.values, live.valid, live.double,
            low, high, nulls, live.first, bits,
        )  # fmt: skip

    def within(self, places: Places) -> Places:
        """Return those of the positions that are in the set. O(places)."""
        live, (low, high, nulls) = self.live, self.slices
        kept = np.empty_like(places)
        count = keep_within(
            live.values, live.valid, live.double, low, high, nulls, places, kept
        )  # fmt: skip
        return kept[:count]


class Postings:
    """The blocks of one column, as flat arrays for the kernels.

    ``source`` defines the meaning of keys: it is the scalar type of the values, or the dict of word
    codes. If integers are converted to doubles in the retained rows, or words get new codes, the
    blocks are rebuilt.

    Cost: a row is sorted once per block size, which takes a few ns per byte in which keys differ.
    The postings take two bytes per row, plus a directory of at most 12 bytes per 16 rows.
    """

    def __init__(self, name: str, kind: Kind, sizes: tuple[int, ...] = SIZES) -> None:
        self.name = name
        self.sizes = sizes
        self.source: Any = None
        self._text = kind is Kind.TEXT
        self._begin()

    def _begin(self) -> None:
        """Reset to a state without blocks."""
        self.blocks: npt.NDArray[np.int64] = np.zeros((0, 6), np.int64)
        self.order: npt.NDArray[np.uint16] = np.zeros(0, np.uint16)
        self.keys: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self.starts: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._order = np.zeros(0, np.uint16)
        self._origin = 0
        self._ends: list[int] = []

    @property
    def nbytes(self) -> int:
        """Return the allocated bytes."""
        return sum(a.nbytes for a in (self.blocks, self._order, self.keys, self.starts))

    def _end(self, live: _Live) -> int:
        return self._ends[-1] if self._ends else live.first

    def idle(self, first: int, last: int) -> bool:
        """Return True if no block has to be added or dropped for rows first to last. O(1)."""
        size = self.sizes[0]
        if not self._ends:
            return last < (first // size + 1) * size
        return first < self._ends[0] and last < self._ends[-1] + size

    def truncate(self, row: int) -> None:
        """Drop every block that contains this row or a later one."""
        if self._ends and row < self._ends[-1]:
            self._take(0, sum(end <= row for end in self._ends))

    def follow(self, retained: Retained) -> _Live:
        """Bring the blocks up to date, and return the column. Amortised O(1) per row."""
        values, valid = retained.values(self.name)
        source = retained.codes(self.name) if self._text else values.dtype.type
        # compared by identity: the scalar type and the dict of codes are unique objects
        if source is not self.source:
            self.source = source
            self._begin()
        live = _Live.of(values, valid, retained.first)
        if not self.idle(live.first, live.first + len(values)):
            self._update(live)
        return live

    def _update(self, live: _Live) -> None:
        """Drop expired blocks, and build blocks for which enough rows have arrived."""
        last = live.first + len(live.values)
        gone = next((b for b, end in enumerate(self._ends) if end > live.first), len(self._ends))
        kept = self._ends[gone:]
        whole = next((b for b, end in enumerate(kept) if end % self.sizes[-1]), len(kept))
        wanted = list(self._layout(kept[whole - 1] if whole else live.first, last))
        both = zip(kept[whole:], wanted, strict=False)
        same = sum(1 for _ in takewhile(lambda ends: ends[0] == ends[1], both))
        self._take(gone, gone + whole + same)
        if same < len(wanted):
            self._build(live, wanted[same:])

    def find(self, live: _Live, slices: Slices) -> Found:
        """Return the rows in the slices. O(blocks · slices · log rows)."""
        low, high, nulls = slices
        bounds = np.empty((len(self.blocks), len(low) + 1, 2), np.int32)
        rows = find_slices(
            self.blocks, self.order, self.keys, self.starts, live.values, live.double,
            low, high, nulls, live.first, bounds,
        )  # fmt: skip
        behind = len(live.values) + live.first - self._end(live)
        return Found(self, live, slices, bounds, rows, behind)

    def _layout(self, first: int, last: int) -> Iterator[int]:
        """Yield the ends of the largest blocks that fit, each followed by an eighth of its size."""
        at, size, smaller = first, len(self.sizes) - 1, (0, *self.sizes)
        while size >= 0:
            end = (at // self.sizes[size] + 1) * self.sizes[size]
            if end + smaller[size] > last:
                size -= 1
            else:
                yield end
                at = end

    def _take(self, begin: int, end: int) -> None:
        """Keep only these blocks."""
        self.blocks, self._ends = self.blocks[begin:end], self._ends[begin:end]
        self._show()

    def _show(self) -> None:
        """Set ``order``, which the kernels read, to start at the first block."""
        if self._ends:
            self.order = self._order[int(self.blocks[0, _FIRST]) - self._origin :]

    def _build(self, live: _Live, ends: list[int]) -> None:
        begin = self._end(live)
        self._reserve_order(begin, ends[-1])
        fresh: list[tuple[int, ...]] = []
        entry = int(self.blocks[-1, _LAST]) if len(self.blocks) else 0
        for end in ends:
            self._reserve_entries(entry, (end - begin) // COMMON + 1)
            known, entries, own = build_block(
                live.values, live.valid, live.double, begin - live.first, end - begin,
                self._order, begin - self._origin, self.keys, self.starts, entry,
            )  # fmt: skip
            fresh.append((begin, end - begin, known, entry, entry + entries, own))
            begin, entry = end, entry + entries
        self.blocks = np.concatenate([self.blocks, np.array(fresh, np.int64)])
        self._ends += ends
        self._show()
        self._compact()

    def _reserve_order(self, begin: int, end: int) -> None:
        """Allocate space for the order of rows up to ``end``, keeping the rows before ``begin``."""
        origin = int(self.blocks[0, _FIRST]) if len(self.blocks) else begin
        if end - self._origin > len(self._order) or origin < self._origin:
            size = _roomy(end - origin, len(self._order))
            self._order = _moved(self._order, origin - self._origin, begin - origin, size)
            self._origin = origin

    def _reserve_entries(self, entry: int, count: int) -> None:
        """Allocate space for at most ``count`` directory entries from ``entry`` on."""
        if entry + count > len(self.keys):
            size = entry + count + entry // 4
            self.keys, self.starts = (_moved(a, 0, entry, size) for a in (self.keys, self.starts))

    def _compact(self) -> None:
        """Drop expired directory entries if they are more than half of all entries."""
        entry, last = int(self.blocks[0, _ENTRY]), int(self.blocks[-1, _LAST])
        if entry > last - entry:
            size = (last - entry) * 5 // 4
            self.keys = _moved(self.keys, entry, last - entry, size)
            self.starts = _moved(self.starts, entry, last - entry, size)
            self.blocks[:, _ENTRY : _LAST + 1] -= entry


def _roomy(needed: int, size: int) -> int:
    """Return a size with 25% spare space, or the current size if it is still suitable."""
    return needed + needed // 4 if needed * 5 // 4 > size or needed * 2 < size else size


def _moved(array: npt.NDArray[Any], start: int, count: int, size: int) -> npt.NDArray[Any]:
    """Return a new array of this size that begins with ``count`` elements from ``start``."""
    fresh = np.empty(size, array.dtype)
    fresh[:count] = array[start : start + count]
    return fresh


class Demand(Enum):
    """The accepted truth values (FALSE, TRUE, NULL), indexed by a truth value of 0, 1 or -1.

    A demand on NOT or IS TRUE becomes another of these four demands on the operand. A demand on AND
    or OR becomes the same demand on the operands, which all of them or any of them must meet.
    """

    TRUE = (False, True, False)
    FALSE = (True, False, False)
    NOT_TRUE = (True, False, True)
    NOT_FALSE = (False, True, True)

    def met(self, truths: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
        """Return a mask of the truth values that meet the demand."""
        met: npt.NDArray[np.bool_] = np.array(self.value, np.bool_)[truths]
        return met

    def under_not(self) -> Demand:
        """Return the demand on the operand of NOT."""
        false, true, null = self.value
        return Demand((true, false, null))

    def under_is(self, truth: bool) -> Demand:
        """Return the demand on the operand of IS TRUE (or IS FALSE)."""
        sought = Demand.TRUE if truth else Demand.FALSE
        if self in (Demand.TRUE, Demand.NOT_FALSE):
            return sought
        false, true, null = sought.value
        return Demand((not false, not true, not null))

    @property
    def of_all(self) -> bool:
        """Whether all operands of AND (and any operand of OR) must meet it, or vice versa."""
        return self in (Demand.TRUE, Demand.NOT_FALSE)


Keys = npt.NDArray[np.int64]


class _Slicing(Protocol):
    """A condition on one column that can be converted to slices."""

    def slices(self, source: Any) -> Slices:
        """Return the keys that meet the demand; ``source`` is the postings' source."""


def _slicing(condition: Expression, name: str, kind: Kind, demand: Demand) -> _Slicing | None:
    """Convert a condition on only this column to slices; None if keys do not determine it."""
    if kind is Kind.TEXT:
        return _Words(condition, name, demand)
    if kind is Kind.BOOLEAN:
        return _Flag(condition, name, demand)
    factors = split([condition], {name: kind}).factors
    if len(factors) != 1 or not isinstance(factors[0], RangeFactor):
        return None
    if factors[0].subject != Column(name) or len(factors[0].units) != 1:
        return None
    return _Ranged(factors[0].units[0], kind, demand)


def _judged(condition: Expression, name: str, values: ColumnData, demand: Demand) -> Any:
    return demand.met(truth(condition, Table({name: values}, len(values))))


def _intervals(held: npt.NDArray[np.bool_], begins: Keys, nulls: bool) -> Slices:
    """Merge adjacent intervals that hold; interval k ends where k + 1 begins."""
    edge = np.diff(held.astype(np.int8), prepend=0, append=0)
    ends = np.append(begins[1:] - 1, HIGHEST)
    return Slices(begins[edge[:-1] == 1], ends[edge[1:] == -1], nulls)


class _Ranged:
    """A number or timestamp column, sliced at the constants (``cuts_of``)."""

    def __init__(self, unit: Expression, kind: Kind, demand: Demand) -> None:
        self._unit, self._kind, self._demand = unit, kind, demand
        self._nulls = bool(_judged(unit, VALUE.name, null_of(kind), demand)[0])
        self._known: dict[type[np.generic], Slices] = {}

    def slices(self, source: type[np.generic]) -> Slices:
        found = self._known.get(source)
        if found is None:
            cuts = cuts_of([self._unit], np.dtype(source))
            values = ColumnData(self._kind, representatives(cuts))
            held = _judged(self._unit, VALUE.name, values, self._demand)
            begins = np.concatenate([np.array([LOWEST], np.int64), _keys(cuts)])
            found = self._known[source] = _intervals(held, begins, self._nulls)
        return found


def _keys(cuts: npt.NDArray[Any]) -> Keys:
    """Convert cuts to keys in the same way as the kernel ``key_of``."""
    if cuts.dtype != np.float64:
        return cuts
    bits = (cuts + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(HIGHEST), bits)


class _Flag:
    """A Boolean column, which has two keys and NULL."""

    def __init__(self, condition: Expression, name: str, demand: Demand) -> None:
        both = ColumnData(Kind.BOOLEAN, np.array([False, True]))
        nulls = bool(_judged(condition, name, null_of(Kind.BOOLEAN), demand)[0])
        begins = np.array([LOWEST, 1], np.int64)
        self._slices = _intervals(_judged(condition, name, both, demand), begins, nulls)

    def slices(self, source: object) -> Slices:  # noqa: ARG002
        return self._slices


class _Words:
    """A text column; each distinct text, or only those in the condition, is evaluated once."""

    def __init__(self, condition: Expression, name: str, demand: Demand) -> None:
        self._condition, self._name, self._demand = condition, name, demand
        self._nulls = bool(_judged(condition, name, null_of(Kind.TEXT), demand)[0])
        self._named = _named(condition) if demand is Demand.TRUE else None
        self._codes: Mapping[str, int] | None = None
        self._judged = 0
        self._found: list[int] = []
        self._slices = self._cut()

    def slices(self, source: dict[str, int]) -> Slices:
        if source is not self._codes:
            self._codes, self._judged, self._found = source, 0, []
            self._slices = self._cut()
        if self._judged < len(source):
            self._learn(source)
        return self._slices

    def _learn(self, codes: dict[str, int]) -> None:
        """Evaluate new words. O(new words), or O(words in the condition) if no others match."""
        before = len(self._found)
        if self._named is None:
            fresh = list(islice(reversed(codes), len(codes) - self._judged))[::-1]
            column = ColumnData(
                Kind.TEXT, np.arange(len(fresh), dtype=np.int32), None, objects(fresh)
            )
            held = _judged(self._condition, self._name, column, self._demand)
            self._found.extend((np.flatnonzero(held) + self._judged).tolist())
        elif before < len(self._named):
            self._found = sorted(codes[word] for word in self._named if word in codes)
        self._judged = len(codes)
        if len(self._found) > before:
            self._slices = self._cut()

    def _cut(self) -> Slices:
        codes = np.array(self._found, np.int64)
        apart = np.diff(codes) > 1
        ends = np.ones(min(1, len(codes)), np.bool_)
        low = codes[np.concatenate([ends, apart])]
        return Slices(low, codes[np.concatenate([apart, ends])], self._nulls)


def _named(condition: Expression) -> frozenset[str] | None:
    """Return the only words for which the condition can be TRUE, or None if unknown."""
    match condition:
        case Comparison("=", Column(), Literal(str(word))):
            return frozenset([word])
        case Comparison("=", Literal(str(word)), Column()):
            return frozenset([word])
        case In(Column(), options):
            return frozenset(o.value for o in options if isinstance(o.value, str))
    return None


# Sets with more than one row in _MANY are united as bits, not as sorted positions; sets of similar
# size with more than one row in _DENSE are intersected as bits.
_MANY = 64
_DENSE = 16


class RowSet(Protocol):
    """The rows on which a condition meets a demand; valid until the window changes.

    candidates  the number of rows that are read, an upper bound on the size of the set
    """

    @property
    def candidates(self) -> int: ...

    def places(self) -> Places:
        """Return the positions of these rows, ascending."""

    def mark(self, bits: Bits) -> None:
        """Set the bits of the rows in the set."""

    def within(self, places: Places) -> Places:
        """Return those of the positions that are in the set."""


class _Union(NamedTuple):
    """The union of several row sets (OR)."""

    sets: Sequence[RowSet]
    candidates: int
    rows: int

    def places(self) -> Places:
        if self.candidates * _MANY <= self.rows:
            return np.unique(np.concatenate([each.places() for each in self.sets]))
        return _places_of(_bits_of(self, self.rows))

    def mark(self, bits: Bits) -> None:
        for each in self.sets:
            each.mark(bits)

    def within(self, places: Places) -> Places:
        if len(places) * _MANY <= self.rows:
            return np.unique(np.concatenate([each.within(places) for each in self.sets]))
        bits = _no_bits(self.rows)
        for each in self.sets:
            mark_places(each.within(places), bits)
        return _places_of(bits)


class _Rest(NamedTuple):
    """A condition without an index, evaluated on the rows that the other operands found."""

    retained: Retained
    condition: Expression
    demand: Demand

    def within(self, places: Places) -> Places:
        if not len(places):
            return places
        names = set(columns_of(self.condition))
        return places[self.demand.met(truth(self.condition, self.retained.take(places, names)))]


class _Meet(NamedTuple):
    """The intersection of several row sets (AND), computed from the most selective set.

    sets  sorted by their number of candidates, ascending
    """

    sets: Sequence[RowSet]
    rest: Sequence[_Rest]
    rows: int

    @property
    def candidates(self) -> int:
        return self.sets[0].candidates

    def places(self) -> Places:
        most = 2 * self.candidates if self.candidates * _DENSE > self.rows else 0
        alike = [each for each in self.sets[1:] if each.candidates <= most]
        if not alike:
            return self._narrowed(self.sets[0].places(), self.sets[1:])
        bits = _bits_of(self.sets[0], self.rows)
        for each in alike:
            bits &= _bits_of(each, self.rows)
        return self._narrowed(_places_of(bits), self.sets[1 + len(alike) :])

    def mark(self, bits: Bits) -> None:
        mark_places(self.places(), bits)

    def within(self, places: Places) -> Places:
        return self._narrowed(places, self.sets)

    def _narrowed(self, places: Places, sets: Sequence[RowSet]) -> Places:
        for each in sets:
            places = each.within(places)
        for rest in self.rest:
            places = rest.within(places)
        return places


def _no_bits(rows: int) -> Bits:
    return np.zeros(-(-rows // 64), np.uint64)


def _bits_of(rows_of: RowSet, rows: int) -> Bits:
    bits = _no_bits(rows)
    rows_of.mark(bits)
    return bits


def _places_of(bits: Bits) -> Places:
    out: npt.NDArray[np.int64] = np.empty(int(np.bitwise_count(bits).sum()), np.int64)
    emit_bits(bits, out)
    return out


class Access(NamedTuple):
    """The result of an index look-up for a condition; valid until the window changes.

    candidates  the number of rows that will be read: those in the most selective slices, and those
                not indexed yet
    """

    candidates: int
    found: RowSet | None = None

    def places(self, retained: Retained) -> Places:
        """Return the positions where the condition is TRUE, ascending; the oldest row is 0."""
        if self.found is None or not len(retained):
            return np.zeros(0, np.int64)
        return self.found.places()


class _Prepared(Protocol):
    """A prepared condition, whose rows can be looked up again after every slide."""

    def find(self, retained: Retained) -> RowSet:
        """Bring the postings up to date and look up the condition, without reading rows."""


class _Leaf(NamedTuple):
    """A condition on one indexed column; a look-up is O(blocks · slices · log rows)."""

    column: Postings
    slicing: _Slicing

    def find(self, retained: Retained) -> RowSet:
        live = self.column.follow(retained)
        return self.column.find(live, self.slicing.slices(self.column.source))


class _Any(NamedTuple):
    """OR of conditions that all have an index."""

    operands: Sequence[_Prepared]

    def find(self, retained: Retained) -> RowSet:
        sets = [operand.find(retained) for operand in self.operands]
        looked_at = sum(each.candidates for each in sets)
        return _Union(sets, min(looked_at, len(retained)), len(retained))


class _All(NamedTuple):
    """AND of conditions, some of which have an index."""

    operands: Sequence[_Prepared]
    rest: Sequence[tuple[Expression, Demand]]

    def find(self, retained: Retained) -> RowSet:
        sets = [operand.find(retained) for operand in self.operands]
        rest = [_Rest(retained, condition, demand) for condition, demand in self.rest]
        return _Meet(sorted(sets, key=lambda each: each.candidates), rest, len(retained))


# The largest number of prepared conditions in the cache, which is cleared when full.
_MOST = 1024


class Index:
    """Finds the rows of a condition on the indexed columns, in time proportional to their number.

    ``access(condition, retained).places(retained)`` returns the rows on which the condition is
    TRUE, exactly as a scan would. The cost per row and column is about 10 to 60 ns and two to three
    bytes. A look-up reads a few entries of each of some 30 blocks, then the matching rows.

    Every look-up first updates the index. Call ``follow`` after every slide to spread this work.

    sizes  the block sizes in rows, each a multiple of the previous one, at most 65,536
    """

    def __init__(
        self, columns: Sequence[str], kinds: Mapping[str, Kind], sizes: tuple[int, ...] = SIZES
    ) -> None:
        for name in columns:
            if name not in kinds:
                raise UnknownNameError("column", name, kinds)
        self.columns = tuple(dict.fromkeys(columns))
        self._kinds = dict(kinds)
        self._postings = {name: Postings(name, kinds[name], sizes) for name in self.columns}
        self._prepared = BoundedCache[Expression, _Prepared | None](_MOST)
        self._first = 0

    @property
    def nbytes(self) -> int:
        """Return the allocated bytes."""
        return sum(postings.nbytes for postings in self._postings.values())

    def follow(self, retained: Retained) -> None:
        """Index new rows and drop expired ones. Amortised O(1) per row, O(columns) per call."""
        self._first = retained.first
        last = retained.first + len(retained)
        for postings in self._postings.values():
            if not postings.idle(retained.first, last):
                postings.follow(retained)

    def forget_from(self, place: int) -> None:
        """Remove all rows at or after this position from the index, because they have moved.

        Positions are counted from the oldest row, as of the last ``follow`` or later.
        """
        for postings in self._postings.values():
            postings.truncate(self._first + place)

    def access(self, condition: Expression, retained: Retained) -> Access | None:
        """Look up a bound condition in the retained rows; None if no index can be used."""
        prepared = self.prepare(condition)
        if prepared is None:
            return None
        if not len(retained):
            return Access(0)
        found = prepared.find(retained)
        return Access(found.candidates, found)

    def prepare(self, condition: Expression) -> _Prepared | None:
        """Prepare a bound condition, or take it from the cache; None if no index can be used."""
        if not self._postings:
            return None
        try:
            return self._prepared[condition]  # hashes the whole condition once, not twice
        except KeyError:
            found = self._prepared[condition] = self._prepare(condition, Demand.TRUE)
            return found

    def _prepare(self, condition: Expression, demand: Demand) -> _Prepared | None:
        """Prepare a condition under a demand; None if no index can be used. O(nodes²)."""
        leaf = self._leaf(condition, demand)
        if leaf is not None:
            return leaf
        match condition:
            case Not(operand):
                return self._prepare(operand, demand.under_not())
            case IsTrue(operand, sought):
                return self._prepare(operand, demand.under_is(sought))
            case And(operands) | Or(operands):
                grouped = self._grouped(type(condition), operands)
                tried = [self._prepare(operand, demand) for operand in grouped]
                found = [each for each in tried if each is not None]
                rest = [(g, demand) for g, each in zip(grouped, tried, strict=True) if each is None]
                every = demand.of_all == isinstance(condition, And)
                if not found or (rest and not every):
                    return None
                if len(found) == 1 and not rest:
                    return found[0]
                return _All(found, rest) if every else _Any(found)
        return None

    def _leaf(self, condition: Expression, demand: Demand) -> _Leaf | None:
        names = set(columns_of(condition))
        if len(names) != 1 or not names <= self._postings.keys():
            return None
        (name,) = names
        slicing = _slicing(condition, name, self._kinds[name], demand)
        return None if slicing is None else _Leaf(self._postings[name], slicing)

    def _grouped(
        self, join: type[And] | type[Or], operands: Sequence[Expression]
    ) -> list[Expression]:
        """Combine the operands on the same column, so that they become one set of slices."""
        by_column: dict[str, list[Expression]] = {}
        others: list[Expression] = []
        for operand in operands:
            names = set(columns_of(operand))
            if self._leaf(operand, Demand.TRUE) is None:
                others.append(operand)
            else:
                by_column.setdefault(names.pop(), []).append(operand)
        own = [each[0] if len(each) == 1 else join(tuple(each)) for each in by_column.values()]
        return own + others
