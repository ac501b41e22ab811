"""Divides rows into atoms; an atom is the set of rows on which all predicates agree.

unit       a condition on one column, or on the value of one expression
skeleton   a predicate written as a combination of units with AND, OR and NOT
factor     all units on the same column or expression
class      a set of values for which every unit of a factor has the same truth value
cell       a combination of classes, one per factor, encoded as a single number
signature  the truth values of all predicates on an atom

To find a row's atom, its class is looked up in each factor, and its cell is looked up once. The
cost does not depend on the number of predicates, except for cells that were not seen before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ids import kernels  # importing this does not import Numba: calling a kernel does
from ids.errors import DataError, StateError
from ids.model import (
    MIRROR,
    And,
    Column,
    ColumnData,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Kind,
    Literal,
    Not,
    Or,
    Table,
    Value,
    children,
    columns_of,
    microseconds_of,
    nulls,
)
from ids.predicates.three_valued import (
    exact_number,
    from_kleene,
    has_arithmetic,
    kind_of,
    kleene,
    objects,
    spread,
    truth,
    vector,
)

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def cuts_of(conditions: Iterable[Expression], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return cuts in ascending order, of type ``dtype``; interval k is [cut k-1, cut k).

    Each constant c adds two cuts: the smallest value >= c and the smallest value > c. A comparison
    with c therefore has the same result for all values of an interval, for int64 and float64.
    """
    constants = [_number(value) for condition in conditions for value in _constants(condition)]
    if dtype == np.float64:
        return np.unique(np.array([x for c in constants for x in _doubles(c)], np.float64))
    whole = {x for c in constants for x in (math.ceil(c), math.floor(c) + 1)}
    return np.array(sorted(x for x in whole if _SMALLEST < x <= _LARGEST), np.int64)


def representatives(cuts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the first value of each interval: the type's lowest value, then each cut."""
    lowest = -np.inf if cuts.dtype == np.float64 else _SMALLEST
    return np.concatenate([np.array([lowest], cuts.dtype), cuts])


def _constants(condition: Expression) -> Iterator[Value]:
    stack = [condition]
    while stack:
        node = stack.pop()
        match node:
            case Comparison(_, _, Literal(value)):
                yield value
            case In(_, options):
                yield from (option.value for option in options)
            case _:
                stack.extend(children(node))


def _number(value: Value) -> int | float:
    if value is None:
        return 0  # a comparison with NULL is always NULL, so any cut is correct
    if isinstance(value, datetime):
        return microseconds_of(value)
    assert isinstance(value, int | float)
    return exact_number(value)


def _doubles(constant: int | float) -> tuple[float, float]:
    near = float(constant)
    after = math.nextafter(near, math.inf)
    return (near if near >= constant else after, near if near > constant else after)


Numbers = npt.NDArray[np.uint64]
Classes = npt.NDArray[np.int32]

# In units, this column represents the value of an expression.
VALUE = Column("value")

_ALL_VALID = np.empty(0, np.bool_)
# The number of words whose class is cached; beyond that, the cache is cleared.
_REMEMBERED_WORDS = 2**20


@dataclass(frozen=True, slots=True)
class Reading:
    """The input and the tables with which a factor looks up the classes of one batch.

    look        codes, or the values of a range factor
    valid       which rows are not NULL; empty if no row is NULL
    class_of    the class of each code or interval
    null_class  the class of NULL
    cuts        the boundaries of the intervals; None for codes
    """

    look: npt.NDArray[Any]
    valid: npt.NDArray[np.bool_]
    class_of: Classes
    null_class: int
    cuts: npt.NDArray[Any] | None = None

    def add(self, cell: Numbers, rows: slice, stride: int) -> None:
        """Add each row's class, times the stride, to its cell number. O(rows)."""
        valid = self.valid[rows] if len(self.valid) else self.valid
        class_of = self.class_of.view(np.uint32)
        missing, weight = np.uint64(self.null_class), np.uint64(stride)
        if self.cuts is None:
            kernels.add_coded(cell, self.look[rows], valid, class_of, missing, weight)
        else:
            kernels.add_ranged(cell, self.look[rows], valid, self.cuts, class_of, missing, weight)


class Factor(Protocol):
    """All units on the same column or expression, and the classes that they distinguish."""

    units: list[Expression]

    @property
    def classes(self) -> int:
        """The number of classes seen so far."""

    @property
    def truths(self) -> npt.NDArray[np.int8]:
        """The truth value of each unit for each class seen so far, int8[classes, units]."""

    def read(self, table: Table) -> Reading:
        """Return the reading of a batch, adding classes for new values if needed."""


class _Classes:
    """Groups values into classes; within a class, every unit has the same truth value."""

    def __init__(self, units: list[Expression]) -> None:
        self.units = units
        self._known: dict[bytes, int] = {}
        self._rows: list[npt.NDArray[np.int8]] = []

    @property
    def classes(self) -> int:
        return len(self._rows)

    @property
    def truths(self) -> npt.NDArray[np.int8]:
        return np.array(self._rows, np.int8).reshape(len(self._rows), len(self.units))

    def classify(self, name: str, values: ColumnData) -> Classes:
        """Return the class of each value of the column ``name``. O(values · units)."""
        table = Table({name: values}, len(values))
        said = np.stack([truth(unit, table) for unit in self.units], axis=1)
        classes = np.empty(len(values), np.int32)
        for position, row in enumerate(rows_as_bytes(said)):
            number = self._known.setdefault(row, len(self._rows))
            if number == len(self._rows):
                self._rows.append(said[position].copy())
            classes[position] = number
        return classes


def rows_as_bytes(matrix: npt.NDArray[np.int8]) -> list[bytes]:
    """Return each row of a matrix as bytes, for use as a key."""
    rows, width = matrix.shape
    if width == 0:
        return [b""] * rows
    packed: Any = np.ascontiguousarray(matrix).view(np.dtype((np.void, width)))
    keys: list[bytes] = packed.ravel().tolist()
    return keys


def _valid(mask: npt.NDArray[np.bool_] | None, rows: int) -> npt.NDArray[np.bool_]:
    return _ALL_VALID if mask is None else np.ascontiguousarray(spread(mask, rows))


def null_of(kind: Kind) -> ColumnData:
    """Return a column with a single NULL."""
    return nulls(kind, 1)


class TextFactor(_Classes):
    """A factor for a TEXT column; the class of each distinct text is cached across batches."""

    def __init__(self, subject: Expression, units: list[Expression]) -> None:
        super().__init__(units)
        assert isinstance(subject, Column)
        self.name = subject.name
        self._null_class = int(self.classify(self.name, null_of(Kind.TEXT))[0])
        self._class_of_word: dict[str, int] = {}
        self._words: npt.NDArray[np.object_] | None = None
        self._class_of: Classes = np.empty(0, np.int32)
        self._complete = False

    def read(self, table: Table) -> Reading:
        """Read a batch. O(rows), plus O(words) in Python if the dictionary is new."""
        column = table.columns[self.name]
        assert column.dictionary is not None
        if column.dictionary is not self._words:
            self._words = column.dictionary
            self._class_of = np.full(len(column.dictionary), -1, np.int32)
            self._complete = False
        codes = np.ascontiguousarray(column.values)
        if not self._complete:
            self._look_up(column.dictionary, codes)
        return Reading(
            codes.view(np.uint32),
            _valid(column.valid, table.rows),
            self._class_of,
            self._null_class,
        )

    def _look_up(self, dictionary: npt.NDArray[np.object_], codes: npt.NDArray[Any]) -> None:
        self._complete = len(codes) >= len(dictionary)
        used = np.arange(len(dictionary)) if self._complete else np.unique(codes)
        used = used[self._class_of[used] < 0]
        words = dictionary[used].tolist()
        if len(self._class_of_word) > _REMEMBERED_WORDS:
            self._class_of_word.clear()
        known = self._class_of_word
        fresh = list(dict.fromkeys(word for word in words if word not in known))
        if fresh:
            codes = np.arange(len(fresh), dtype=np.int32)
            column = ColumnData(Kind.TEXT, codes, None, objects(fresh))
            known.update(zip(fresh, self.classify(self.name, column).tolist(), strict=True))
        self._class_of[used] = [known[word] for word in words]


class BooleanFactor(_Classes):
    """A factor for a BOOLEAN column, which has at most three classes."""

    def __init__(self, subject: Expression, units: list[Expression]) -> None:
        super().__init__(units)
        assert isinstance(subject, Column)
        self.name = subject.name
        both = ColumnData(Kind.BOOLEAN, np.array([False, True]))
        self._class_of = self.classify(self.name, both)
        self._null_class = int(self.classify(self.name, null_of(Kind.BOOLEAN))[0])

    def read(self, table: Table) -> Reading:
        """Read a batch. O(1)."""
        column = table.columns[self.name]
        codes = np.ascontiguousarray(column.values).view(np.uint8)
        return Reading(codes, _valid(column.valid, table.rows), self._class_of, self._null_class)


class RangeFactor(_Classes):
    """A factor for a number or timestamp compared with constants; a class is a set of intervals.

    In the units, ``VALUE`` represents ``subject``.
    """

    def __init__(self, subject: Expression, units: list[Expression]) -> None:
        super().__init__(units)
        self.subject = subject
        self._intervals: dict[np.dtype[Any], tuple[npt.NDArray[Any], Classes, int]] = {}

    def read(self, table: Table) -> Reading:
        """Evaluate the subject on a batch."""
        value = vector(self.subject, table)
        assert value.kind is not None
        dtype = value.values.dtype
        if dtype not in self._intervals:
            self._intervals[dtype] = self.divide(value.kind, dtype)
        cuts, class_of, null_class = self._intervals[dtype]
        look = np.ascontiguousarray(spread(value.values, table.rows))
        return Reading(look, _valid(value.valid, table.rows), class_of, null_class, cuts)

    def divide(self, kind: Kind, dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], Classes, int]:
        """Return the cuts, the class of each interval between them, and the class of NULL."""
        cuts = cuts_of(self.units, dtype)
        class_of = self.classify(VALUE.name, ColumnData(kind, representatives(cuts)))
        needed = class_of[1:] != class_of[:-1]
        kept = np.concatenate([class_of[:1], class_of[1:][needed]])
        null_class = int(self.classify(VALUE.name, null_of(kind))[0])
        return cuts[needed], kept, null_class


class ConditionFactor(_Classes):
    """A factor for any other condition, evaluated on every row; its classes are FALSE, NULL, TRUE.

    In the units, ``VALUE`` represents ``subject``.
    """

    def __init__(self, subject: Expression, units: list[Expression]) -> None:
        super().__init__(units)
        self.subject = subject
        outcomes = from_kleene(np.array([-1, 0, 1], np.int8))
        data = ColumnData(Kind.BOOLEAN, outcomes.values, outcomes.valid)
        self.class_of = self.classify(VALUE.name, data)

    def read(self, table: Table) -> Reading:
        """Evaluate the condition on a batch."""
        codes = (kleene(self.subject, table) + np.int8(1)).view(np.uint8)
        return Reading(spread(codes, table.rows), _ALL_VALID, self.class_of, 0)


class Split(NamedTuple):
    """The result of splitting predicates into factors and skeletons.

    factors    the factors
    names      for each factor, the names of its units
    skeletons  each predicate as a condition whose columns are the names of the units
    """

    factors: list[Factor]
    names: list[list[str]]
    skeletons: list[Expression]


class _Key(NamedTuple):
    """Identifies a factor by its type and the expression that it evaluates."""

    factor: Callable[[Expression, list[Expression]], Factor]
    subject: Expression


class _Part(NamedTuple):
    """A condition that depends on only one factor, written as a unit of that factor."""

    key: _Key
    unit: Expression


def split(
    predicates: Sequence[Expression],
    schema: Mapping[str, Kind],
    whole: Callable[[Expression], bool] | None = None,
) -> Split:
    """Split predicates into the largest possible units. O(nodes).

    Units are evaluated on every row. A predicate with several units is kept as a single unit if
    ``whole`` returns True for it, so that one operand can still prevent errors in another.
    """
    splitter = _Splitter(schema)
    skeletons = []
    for predicate in predicates:
        part: _Part | Expression = _Part(_Key(ConditionFactor, predicate), VALUE)
        if whole is None or not (_has_several(predicate, schema) and whole(predicate)):
            part = splitter.parts(predicate)
        skeletons.append(splitter.enter(part))
    factors = [key.factor(key.subject, list(units)) for key, units in splitter.units.items()]
    return Split(factors, [list(units.values()) for units in splitter.units.values()], skeletons)


def _has_several(predicate: Expression, schema: Mapping[str, Kind]) -> bool:
    return not isinstance(_Splitter(schema).parts(predicate), _Part)


@dataclass(slots=True)
class _Splitter:
    """Collects the distinct units of each factor and assigns names to them."""

    schema: Mapping[str, Kind]
    units: dict[_Key, dict[Expression, str]] = field(default_factory=dict)
    names: Iterator[int] = field(default_factory=count)

    def enter(self, part: _Part | Expression) -> Expression:
        """Return the column that replaces a part in skeletons; return a skeleton unchanged."""
        if not isinstance(part, _Part):
            return part
        units = self.units.setdefault(part.key, {})
        if part.unit not in units:
            units[part.unit] = str(next(self.names))
        return Column(units[part.unit])

    def parts(self, node: Expression) -> _Part | Expression:
        """Return a part if the node depends on only one factor, otherwise its skeleton."""
        match node:
            case And(operands) | Or(operands):
                return self._joined(type(node), [self.parts(operand) for operand in operands])
            case Not(operand):
                below = self.parts(operand)
                if isinstance(below, _Part):
                    return _Part(below.key, Not(below.unit))
                return Not(below)
            case IsTrue(operand, truth):
                below = self.parts(operand)
                if isinstance(below, _Part):
                    return _Part(below.key, IsTrue(below.unit, truth))
                return IsTrue(below, truth)
        return self._leaf(node)

    def _joined(
        self, join: type[And] | type[Or], parts: list[_Part | Expression]
    ) -> _Part | Expression:
        """Combine the operands of each factor, which is valid as AND and OR are commutative."""
        by_key: dict[_Key, list[Expression]] = {}
        skeletons: list[Expression] = []
        for part in parts:
            if isinstance(part, _Part):
                by_key.setdefault(part.key, []).append(part.unit)
            else:
                skeletons.append(part)
        joined = [
            _Part(key, join(tuple(units)) if len(units) > 1 else units[0])
            for key, units in by_key.items()
        ]
        if len(joined) == 1 and not skeletons:
            return joined[0]
        return join((*skeletons, *[self.enter(part) for part in joined]))

    def _leaf(self, leaf: Expression) -> _Part:
        names = set(columns_of(leaf))
        if len(names) == 1:
            subject = Column(next(iter(names)))
            kind = self.schema[subject.name]
            if kind in (Kind.TEXT, Kind.BOOLEAN):
                factor = TextFactor if kind is Kind.TEXT else BooleanFactor
                return _Part(_Key(factor, subject), leaf)
        ranged = _ranged(leaf) if names else None
        if ranged and kind_of(ranged.key.subject, self.schema) in (Kind.NUMBER, Kind.TIME):
            return ranged
        return _Part(_Key(ConditionFactor, leaf), VALUE)


def _ranged(leaf: Expression) -> _Part | None:
    """Rewrite the leaf as a condition on ``VALUE`` if it compares one value with constants."""
    match leaf:
        case Comparison(op, Literal() as literal, subject) if _finite(literal):
            return _Part(_Key(RangeFactor, subject), Comparison(MIRROR[op], VALUE, literal))
        case Comparison(op, subject, Literal() as literal) if _finite(literal):
            return _Part(_Key(RangeFactor, subject), Comparison(op, VALUE, literal))
        case In(subject, options) if all(map(_finite, options)):
            return _Part(_Key(RangeFactor, subject), In(VALUE, options))
        case IsNull(subject):
            return _Part(_Key(RangeFactor, subject), IsNull(VALUE))
    return None


def _finite(literal: Literal) -> bool:
    """Return whether a literal can be a cut, that is, it is not NaN or infinite."""
    value = literal.value
    return not isinstance(value, int | float) or math.isfinite(exact_number(value))


# Up to this many possible cells, a table has an entry for each of them.
_DENSE = 2**20
# The largest product of radixes in one 64-bit word.
_WORD = 2**63
# The number of cells that are cached; clearing the cache costs time but is always safe.
_REMEMBERED_CELLS = 2**22


# Initial capacity of an interner.
_PAIRS = 1024


class _Interner:
    """Assigns numbers 0, 1, 2, … to distinct pairs as they appear, and maps them back.

    The expected cost is O(1) per row; a distinct pair takes 24 bytes.
    """

    def __init__(self) -> None:
        self.count = 0
        self._previous: Numbers = np.empty(_PAIRS, np.uint64)
        self._word: Numbers = np.empty(_PAIRS, np.uint64)
        self._slots = np.full(2 * _PAIRS, -1, np.int32)

    def number(self, previous: Numbers, word: Numbers) -> Numbers:
        """Return the number of each pair, assigning numbers to new pairs."""
        numbers: Numbers = np.empty(len(word), np.uint64)
        done = 0
        while True:
            done, self.count = kernels.intern(
                previous, word, done, self._slots, self._previous, self._word, self.count, numbers
            )
            if done == len(word):
                return numbers
            self._grow()

    def pairs(self, numbers: npt.NDArray[Any]) -> tuple[Numbers, Numbers]:
        """Return the pairs with these numbers."""
        return self._previous[numbers], self._word[numbers]

    @property
    def nbytes(self) -> int:
        """The size of the tables in bytes."""
        return self._previous.nbytes + self._word.nbytes + self._slots.nbytes

    def _grow(self) -> None:
        empty: Numbers = np.empty(len(self._word), np.uint64)
        self._previous = np.concatenate([self._previous, empty])
        self._word = np.concatenate([self._word, empty])
        self._slots = np.full(2 * len(self._slots), -1, np.int32)
        kernels.reseat(self._previous, self._word, self.count, self._slots)


class _Cells:
    """Cell numbers, which are mixed-radix numbers with the factors' classes as digits.

    If more than 2**20 cells are possible, cells are numbered in order of appearance instead. When a
    factor has too many classes for its radix, the radix is at least doubled. All numbers then
    become invalid, and ``fit`` returns True.
    """

    def __init__(self, factors: int) -> None:
        self._radix = [0] * factors
        self._words: list[list[int]] = []
        self._interners: list[_Interner] = []

    def fit(self, classes: Sequence[int], live: int) -> bool:
        """Adapt to each factor's number of classes; return whether earlier numbers became invalid.

        ``live`` is the number of cells the caller needs; with far more, old cells are dropped.
        """
        room = all(have >= need for have, need in zip(self._radix, classes, strict=True))
        if room and self._words and self.size <= max(_DENSE, _REMEMBERED_CELLS, 8 * live):
            return False
        self._radix = [
            have if have >= need else max(need, 2 * have)
            for have, need in zip(self._radix, classes, strict=True)
        ]
        self._words = _packed(self._radix)
        dense = math.prod(self._radix) <= _DENSE
        self._interners = [] if dense else [_Interner() for _ in self._words]
        return True

    @property
    def fixed(self) -> bool:
        """Whether a row's number depends only on its classes, not on earlier rows."""
        return not self._interners

    @property
    def nbytes(self) -> int:
        """The size of the tables in bytes; 0 if numbers are computed without tables."""
        return sum(interner.nbytes for interner in self._interners)

    @property
    def size(self) -> int:
        """An upper bound; every number so far is below it."""
        return self._interners[-1].count if self._interners else math.prod(self._radix)

    def number(self, readings: Sequence[Reading], rows: slice) -> Numbers:
        """Return the cell number of each row."""
        words = [self._word(word, readings, rows) for word in self._words]
        if not self._interners:
            return words[0]
        numbers: Numbers = np.zeros(len(words[0]), np.uint64)
        for interner, word in zip(self._interners, words, strict=True):
            numbers = interner.number(numbers, word)
        return numbers

    def _word(self, factors: list[int], readings: Sequence[Reading], rows: slice) -> Numbers:
        cell: Numbers = np.zeros(rows.stop - rows.start, np.uint64)
        stride = 1
        for factor in factors:
            readings[factor].add(cell, rows, stride)
            stride *= self._radix[factor]
        return cell

    def classes(self, cells: Numbers) -> list[npt.NDArray[np.intp]]:
        """Return each factor's class in these cells, which is the inverse of ``number``."""
        found = [np.zeros(len(cells), np.intp) for _ in self._radix]
        words = [cells]
        if self._interners:
            words = []
            for interner in reversed(self._interners):
                cells, word = interner.pairs(cells)
                words.insert(0, word)
        for factors, word in zip(self._words, words, strict=True):
            for factor in factors:
                word, digit = np.divmod(word, np.uint64(self._radix[factor]))
                found[factor] = digit.astype(np.intp)
        return found


def _packed(radix: Sequence[int]) -> list[list[int]]:
    """Pack the digits into 64-bit words; return the factors of each word."""
    words: list[list[int]] = [[]]
    room = _WORD
    for factor, size in enumerate(radix):
        if size > room:
            words.append([])
            room = _WORD
        words[-1].append(factor)
        room //= size
    return words


Ids = npt.NDArray[np.uint32]

_CAPACITY = 16
# Rows per block: their cells fit in the CPU cache, and most cells occur in the first block.
_ROWS = 2**16
# With more blocks than this, using threads is worth the overhead.
_FEW = 4


class Refinement:
    """Assigns rows to atoms; an atom is the set of rows on which all K predicates agree.

    Each row needs one look-up per factor and one for its cell, not K tests. A new cell costs O(K).

    >>> from ids.model.expression import Column, Comparison, Literal
    >>> slow = Comparison(">", Column("ms"), Literal(100))
    >>> rows = Table({"ms": ColumnData(Kind.NUMBER, np.array([250, 20, 170]))}, 3)
    >>> refinement = Refinement([slow])
    >>> refinement.assign(rows), refinement.truths[:refinement.atoms]
    (array([1, 0, 1], dtype=uint32), array([[0], [1]], dtype=int8))
    """

    def __init__(self, predicates: Sequence[Expression]) -> None:
        self.predicates = tuple(predicates)
        self.atoms = 0
        self.truths: npt.NDArray[np.int8] = np.zeros((_CAPACITY, len(predicates)), np.int8)
        self._atom_of_signature: dict[bytes, int] = {}
        self._free: list[int] = []
        self._split: Split | None = None
        self._whole = False
        self._cells = _Cells(0)
        self._atom_of_cell = np.full(0, -1, np.int32)
        self._following = np.full(0, -1, np.int32)
        self._first = np.full(_CAPACITY, -1, np.int32)

    def assign(self, table: Table) -> Ids:
        """Return the atom of each row as uint32[rows], adding new atoms if needed."""
        factors, readings = self._read(table)
        live = len(self._atom_of_signature)
        if self._cells.fit([factor.classes for factor in factors], live):
            self._forget_cells()
        atoms = np.empty(table.rows, np.int32)
        blocks = [slice(at, min(at + _ROWS, table.rows)) for at in range(0, table.rows, _ROWS)]
        for rows in blocks[:1]:
            self._assign_block(readings, rows, atoms[rows])
        if len(blocks) > _FEW and self._cells.fixed:
            # the first block has found most cells; the others are looked up in parallel
            missed = kernels.side_by_side(
                lambda rows: self._find(readings, rows, atoms[rows]), blocks[1:]
            )
            again = [rows for rows, some in zip(blocks[1:], missed, strict=True) if some]
            blocks = [*blocks[:1], *again]
        for rows in blocks[1:]:
            self._assign_block(readings, rows, atoms[rows])
        return atoms.view(np.uint32)

    def signature(self, atom: int) -> bytes:
        """Return an atom's truth values as a key with one byte per predicate."""
        return rows_as_bytes(self.truths[atom : atom + 1])[0]

    def holds(self, atoms: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Return which predicates are TRUE on the atoms, as bool[..., K]."""
        held: npt.NDArray[np.bool_] = self.truths[atoms] == 1
        return held

    def _find(self, readings: list[Reading], rows: slice, atoms: npt.NDArray[np.int32]) -> int:
        """Look up the atoms of the rows; return the number of rows in new cells."""
        cells = self._cells.number(readings, rows)
        self._reserve_cells(self._cells.size)
        unseen: int = kernels.look_up(cells, self._atom_of_cell, atoms)
        return unseen

    def _assign_block(
        self, readings: list[Reading], rows: slice, atoms: npt.NDArray[np.int32]
    ) -> None:
        """Look up the atoms of the rows, adding new cells if needed."""
        if self._find(readings, rows, atoms):
            self._add_cells(np.unique(self._cells.number(readings, rows)[atoms < 0]))
            self._find(readings, rows, atoms)

    @property
    def nbytes(self) -> int:
        """The size of the signatures and look-up tables in bytes."""
        tables = (self.truths, self._atom_of_cell, self._following, self._first)
        return sum(table.nbytes for table in tables) + self._cells.nbytes

    @property
    def met(self) -> int:
        """The number of atom numbers in use."""
        return len(self._atom_of_signature)

    def live(self) -> npt.NDArray[np.int64]:
        """Return the atom numbers in use, in ascending order."""
        return np.array(sorted(self._atom_of_signature.values()), dtype=np.int64)

    def release(self, atoms: npt.NDArray[np.integer] | Sequence[int]) -> None:
        """Free these atom numbers for reuse; raise StateError if one is not in use. O(ids)."""
        ids = np.unique(np.asarray(atoms, np.int64))
        if len(ids) and not (ids[0] >= 0 and ids[-1] < self.atoms):
            raise StateError(f"no atoms have the ids {ids}; release only what was assigned")
        signatures = rows_as_bytes(self.truths[ids])
        for atom, signature in zip(ids.tolist(), signatures, strict=True):
            if self._atom_of_signature.get(signature) != atom:
                raise StateError(f"atom {atom} is not in use; release only what was assigned")
        for signature in signatures:
            del self._atom_of_signature[signature]
        self._free.extend(ids.tolist()[::-1])
        kernels.unlink(ids, self._atom_of_cell, self._following, self._first)

    def preload(
        self, truths: npt.NDArray[np.int8], ids: npt.NDArray[np.integer] | Sequence[int]
    ) -> None:
        """Restore signatures and their atom numbers; allowed only before any row is assigned."""
        numbers = np.asarray(ids, np.int64)
        if self.atoms:
            raise StateError("atoms are already assigned; preload a new refinement")
        if truths.shape != (len(numbers), len(self.predicates)):
            raise StateError(f"truths of shape {truths.shape} do not fit the ids and predicates")
        signatures = rows_as_bytes(truths)
        if len(set(signatures)) < len(numbers) or len(np.unique(numbers)) < len(numbers):
            raise StateError("a signature or an id occurs twice among the atoms to preload")
        self.atoms = int(numbers.max()) + 1 if len(numbers) else 0
        self._reserve_atoms()
        self.truths[numbers] = truths
        self._atom_of_signature = dict(zip(signatures, numbers.tolist(), strict=True))
        unused = np.setdiff1d(np.arange(self.atoms), numbers)
        self._free = unused[::-1].tolist()

    def _read(self, table: Table) -> tuple[list[Factor], list[Reading]]:
        """Return the factors, and the value of each factor for every row of a batch."""
        factors = self._factors(table).factors
        try:
            return factors, [factor.read(table) for factor in factors]
        except DataError:
            # an integer overflowed, perhaps on a row that the rest of the predicate excludes
            if self._whole or not any(map(has_arithmetic, self.predicates)):
                raise
        self._whole, self._split = True, None
        self._forget_cells()
        return self._read(table)

    def _factors(self, table: Table) -> Split:
        """Split the predicates into factors, once, using the column types of the first batch."""
        if self._split is None:
            schema = {name: column.kind for name, column in table.columns.items()}
            self._split = split(self.predicates, schema, has_arithmetic if self._whole else None)
            self._cells = _Cells(len(self._split.factors))
        return self._split

    def _add_cells(self, cells: Numbers) -> None:
        """Find or create the atoms of new cells. O(cells · K)."""
        truths = self._truths_of(cells)
        signatures = rows_as_bytes(truths)
        known = self._atom_of_signature
        fresh: list[int] = []
        for position, signature in enumerate(signatures):
            if signature not in known:
                known[signature] = self._allocate()
                fresh.append(position)
        self._reserve_atoms()
        atoms = np.array([known[signature] for signature in signatures], np.int32)
        self.truths[atoms[fresh]] = truths[fresh]
        kernels.link(cells, atoms, self._atom_of_cell, self._following, self._first)

    def _truths_of(self, cells: Numbers) -> npt.NDArray[np.int8]:
        """Return each predicate's truth value in these cells, computed from its units."""
        assert self._split is not None
        columns: dict[str, ColumnData] = {}
        classes = self._cells.classes(cells)
        for factor, names, met in zip(self._split.factors, self._split.names, classes, strict=True):
            truths_there = factor.truths[met]
            for position, name in enumerate(names):
                unit = truths_there[:, position]
                columns[name] = ColumnData(Kind.BOOLEAN, unit == 1, unit >= 0)
        table = Table(columns, len(cells))
        truths = np.empty((len(cells), len(self.predicates)), np.int8)
        for position, skeleton in enumerate(self._split.skeletons):
            truths[:, position] = truth(skeleton, table)
        return truths

    def _allocate(self) -> int:
        if self._free:
            return self._free.pop()
        self.atoms += 1
        return self.atoms - 1

    def _reserve_atoms(self) -> None:
        capacity = len(self._first)
        while capacity < self.atoms:
            capacity *= 2
        self._first = _extended(self._first, capacity, -1)
        if capacity > len(self.truths):
            truths = np.zeros((capacity, len(self.predicates)), np.int8)
            truths[: len(self.truths)] = self.truths
            self.truths = truths

    def _reserve_cells(self, cells: int) -> None:
        if cells > len(self._atom_of_cell):
            capacity = max(cells, 2 * len(self._atom_of_cell))
            self._atom_of_cell = _extended(self._atom_of_cell, capacity, -1)
            self._following = _extended(self._following, capacity, -1)

    def _forget_cells(self) -> None:
        """Drop all cells; atoms are kept and are found again by their signatures."""
        self._atom_of_cell = np.full(0, -1, np.int32)
        self._following = np.full(0, -1, np.int32)
        self._first.fill(-1)


def _extended(array: npt.NDArray[np.int32], length: int, filler: int) -> npt.NDArray[np.int32]:
    if length <= len(array):
        return array
    longer = np.full(length, filler, np.int32)
    longer[: len(array)] = array
    return longer
