"""The index: finds the rows of a condition by the postings of the columns it reads.

A condition becomes a tree of slices once (``Index.prepare``), and its rows are found anew after
each slide. NOT and IS TRUE turn into demands on their operands, so that AND and OR are all there is
above the slices: OR needs all its operands found by the index; AND needs one, and keeps the rest.
Each set of rows knows how many rows it will look at before one is. Small sets are lists of places,
large ones bits: a word of 64 for so many rows of the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ids.errors import UnknownNameError
from ids.kernels import HIGHEST, LOWEST, emit_bits, mark_places
from ids.model import (
    And,
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
from ids.state.index_postings import SIZES, Bits, Places, Postings, Slices
from ids.state.retained_rows import Retained


class Demand(Enum):
    """Which truths do: (FALSE, TRUE, NULL), so that a truth of 0, 1 or -1 is its own place.

    NOT and IS TRUE turn one demand into another; these four are closed under both, and a demand
    on AND or OR is the same demand on the operands, all of them or any.
    """

    TRUE = (False, True, False)
    FALSE = (True, False, False)
    NOT_TRUE = (True, False, True)
    NOT_FALSE = (False, True, True)

    def met(self, truths: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
        """Where the demand is met."""
        met: npt.NDArray[np.bool_] = np.array(self.value, np.bool_)[truths]
        return met

    def under_not(self) -> Demand:
        """What the operand of NOT has to be."""
        false, true, null = self.value
        return Demand((true, false, null))

    def under_is(self, truth: bool) -> Demand:
        """What the operand of IS TRUE (or IS FALSE) has to be: that, or anything else."""
        sought = Demand.TRUE if truth else Demand.FALSE
        if self in (Demand.TRUE, Demand.NOT_FALSE):
            return sought
        false, true, null = sought.value
        return Demand((not false, not true, not null))

    @property
    def of_all(self) -> bool:
        """Whether AND asks it of every operand (and OR of any), not the other way round."""
        return self in (Demand.TRUE, Demand.NOT_FALSE)


Keys = npt.NDArray[np.int64]


class _Slicing(Protocol):
    """A condition on one column, ready to be cut into slices."""

    def slices(self, source: Any) -> Slices:
        """The keys on which it is as demanded; ``source`` says what keys stand for.

        That is the scalar type of the values, or the codes of the words.
        """


def _slicing(condition: Expression, name: str, kind: Kind, demand: Demand) -> _Slicing | None:
    """The condition (which reads this column alone) by slices; None where keys cannot tell."""
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
    """Runs of intervals that hold; interval k ends where k + 1 begins, the last one never."""
    edge = np.diff(held.astype(np.int8), prepend=0, append=0)
    ends = np.append(begins[1:] - 1, HIGHEST)
    return Slices(begins[edge[:-1] == 1], ends[edge[1:] == -1], nulls)


class _Ranged:
    """Numbers and instants: the intervals between constants (``predicates/cuts.py``)."""

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
    """Cuts as keys: what ``kernels.blocks.key_of`` makes of them."""
    if cuts.dtype != np.float64:
        return cuts
    bits = (cuts + 0.0).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(HIGHEST), bits)


class _Flag:
    """A Boolean: two keys and NULL."""

    def __init__(self, condition: Expression, name: str, demand: Demand) -> None:
        both = ColumnData(Kind.BOOLEAN, np.array([False, True]))
        nulls = bool(_judged(condition, name, null_of(Kind.BOOLEAN), demand)[0])
        begins = np.array([LOWEST, 1], np.int64)
        self._slices = _intervals(_judged(condition, name, both, demand), begins, nulls)

    def slices(self, source: object) -> Slices:  # noqa: ARG002
        return self._slices


class _Words:
    """Text: each word of the dictionary is judged once, and only those named where some are."""

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
        """Judge the words that are new. O(these); O(words named) where only those can hold."""
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
    """The only words that can make the condition TRUE, where it names them."""
    match condition:
        case Comparison("=", Column(), Literal(str(word))):
            return frozenset([word])
        case Comparison("=", Literal(str(word)), Column()):
            return frozenset([word])
        case In(Column(), options):
            return frozenset(o.value for o in options if isinstance(o.value, str))
    return None


# A set of more than one row in so many is cheaper united as bits than as sorted places; and two
# sets of about one size that are larger still meet sooner as bits.
_MANY = 64
_DENSE = 16


class RowSet(Protocol):
    """Rows on which a condition is as demanded; holds until the rows inside change.

    candidates  how many rows it looks at: an upper bound of how many it holds
    """

    @property
    def candidates(self) -> int: ...

    def places(self) -> Places:
        """Their places, ascending."""

    def mark(self, bits: Bits) -> None:
        """Set their bits."""

    def within(self, places: Places) -> Places:
        """Those of the places that belong to it."""


class _Union(NamedTuple):
    """OR: rows of any of the sets."""

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
    """A condition that no index decides: put to the rows that are left."""

    retained: Retained
    condition: Expression
    demand: Demand

    def within(self, places: Places) -> Places:
        if not len(places):
            return places
        names = set(columns_of(self.condition))
        return places[self.demand.met(truth(self.condition, self.retained.take(places, names)))]


class _Meet(NamedTuple):
    """AND: the most selective set drives, the others and the rest are put to what is left.

    sets  by ascending candidates
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
    """What an index has found for a condition; holds until the rows inside change.

    candidates  how many rows will be looked at, known before one is: those of the driving slices,
                and those that are not indexed yet
    """

    candidates: int
    found: RowSet | None = None

    def places(self, retained: Retained) -> Places:
        """Where the condition is TRUE: ascending places in ``retained``, 0 the oldest row."""
        if self.found is None or not len(retained):
            return np.zeros(0, np.int64)
        return self.found.places()


class _Prepared(Protocol):
    """A condition taken apart once, to be found again after every slide."""

    def find(self, retained: Retained) -> RowSet:
        """Follow the rows inside, and find the condition in them. No row is looked at."""


class _Leaf(NamedTuple):
    """A condition on one indexed column. Finding it is O(blocks · slices · log rows)."""

    column: Postings
    slicing: _Slicing

    def find(self, retained: Retained) -> RowSet:
        live = self.column.follow(retained)
        return self.column.find(live, self.slicing.slices(self.column.source))


class _Any(NamedTuple):
    """OR of conditions that the index finds."""

    operands: Sequence[_Prepared]

    def find(self, retained: Retained) -> RowSet:
        sets = [operand.find(retained) for operand in self.operands]
        looked_at = sum(each.candidates for each in sets)
        return _Union(sets, min(looked_at, len(retained)), len(retained))


class _All(NamedTuple):
    """AND of conditions, some of which the index finds."""

    operands: Sequence[_Prepared]
    rest: Sequence[tuple[Expression, Demand]]

    def find(self, retained: Retained) -> RowSet:
        sets = [operand.find(retained) for operand in self.operands]
        rest = [_Rest(retained, condition, demand) for condition, demand in self.rest]
        return _Meet(sorted(sets, key=lambda each: each.candidates), rest, len(retained))


# Conditions remembered before they are forgotten and taken apart anew.
_MOST = 1024


class Index:
    """Finds the rows of a condition on the columns it was made for, in proportion to their number.

    Meaning: ``access(condition, retained).places(retained)`` are the rows on which the condition
    is TRUE, as a scan would find them. Cost: about 10 to 60 ns a row and column to keep, two to
    three bytes; a question reads a few entries of each of some 30 blocks, then its matches. An
    index of no columns finds nothing and costs nothing.

    A question brings the index up to date by itself; ``follow`` at every slide spreads that work.

    sizes  rows of a block of each size, each a multiple of the one before, at most 65,536
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
        self._prepared: dict[Expression, _Prepared | None] = {}
        self._first = 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(postings.nbytes for postings in self._postings.values())

    def follow(self, retained: Retained) -> None:
        """Rows were appended, or dropped at the front. Amortised O(1) a row, O(columns) a call."""
        self._first = retained.first
        last = retained.first + len(retained)
        for postings in self._postings.values():
            if not postings.idle(retained.first, last):
                postings.follow(retained)

    def forget_from(self, place: int) -> None:
        """Rows at this place and behind it moved, or will before the next ``follow``.

        Places count from the oldest row inside, as it was when the index last followed or later.
        """
        for postings in self._postings.values():
            postings.truncate(self._first + place)

    def access(self, condition: Expression, retained: Retained) -> Access | None:
        """Find a bound condition in the rows inside; None where the index is of no use."""
        prepared = self.prepare(condition)
        if prepared is None:
            return None
        if not len(retained):
            return Access(0)
        found = prepared.find(retained)
        return Access(found.candidates, found)

    def prepare(self, condition: Expression) -> _Prepared | None:
        """A bound condition, ready to be found after every slide; None: the index is of no use."""
        if not self._postings:
            return None
        try:
            return self._prepared[condition]  # one hash of the whole condition, not two
        except KeyError:
            if len(self._prepared) >= _MOST:
                self._prepared.clear()
            found = self._prepared[condition] = self._take_apart(condition, Demand.TRUE)
            return found

    def _take_apart(self, condition: Expression, demand: Demand) -> _Prepared | None:
        """The rows on which a condition is as demanded; None: the index cannot find them. O(nodes²)

        AND and OR are the same demand on the operands, all of them or any.
        """
        leaf = self._leaf(condition, demand)
        if leaf is not None:
            return leaf
        match condition:
            case Not(operand):
                return self._take_apart(operand, demand.under_not())
            case IsTrue(operand, sought):
                return self._take_apart(operand, demand.under_is(sought))
            case And(operands) | Or(operands):
                grouped = self._grouped(type(condition), operands)
                tried = [self._take_apart(operand, demand) for operand in grouped]
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
        """Operands on one column meet: together they are one set of slices."""
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
