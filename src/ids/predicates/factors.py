"""Factors: what the conditions on one column (or one value) can tell apart.

A factor holds *units*, conditions that read one thing, and sorts rows into *classes*: rows of one
class agree on every unit. A class follows from one look-up a row, however many units there are.

Predicates are split into such units and into skeletons that put the units together by AND, OR and
NOT. Numbers are divided into intervals by cuts, the points between which no comparison changes.
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

from ids import kernels  # Numba is imported when one of them is called
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
    kind_of,
    kleene,
    objects,
    spread,
    truth,
    vector,
)

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


def cuts_of(conditions: Iterable[Expression], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Ascending cuts in the value's own type; interval k is [cut k-1, cut k).

    Each constant c gives the smallest value at or above c and the smallest above c, so that every
    comparison with c is constant between cuts, exactly, for int64 and float64 alike.
    """
    constants = [_number(value) for condition in conditions for value in _constants(condition)]
    if dtype == np.float64:
        return np.unique(np.array([x for c in constants for x in _doubles(c)], np.float64))
    whole = {x for c in constants for x in (math.ceil(c), math.floor(c) + 1)}
    return np.array(sorted(x for x in whole if _SMALLEST < x <= _LARGEST), np.int64)


def representatives(cuts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """One value of each interval: the cut it begins with, and the lowest of all."""
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
        return 0  # a comparison with NULL is NULL everywhere: any cut will do
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

# The name under which units read the value of an expression.
VALUE = Column("value")

_ALL_VALID = np.empty(0, np.bool_)
# Words remembered with their class before they are forgotten and classified anew.
_REMEMBERED = 2**20


@dataclass(frozen=True, slots=True)
class Reading:
    """One batch seen by one factor: what to look up, and where. ``cuts`` only for a range."""

    look: npt.NDArray[Any]
    valid: npt.NDArray[np.bool_]
    class_of: Classes
    null_class: int
    cuts: npt.NDArray[Any] | None = None

    def add(self, cell: Numbers, rows: slice, stride: int) -> None:
        """Add the classes of the rows, times the stride, to their cells. O(rows)."""
        valid = self.valid[rows] if len(self.valid) else self.valid
        class_of = self.class_of.view(np.uint32)
        missing, weight = np.uint64(self.null_class), np.uint64(stride)
        if self.cuts is None:
            kernels.add_coded(cell, self.look[rows], valid, class_of, missing, weight)
        else:
            kernels.add_ranged(cell, self.look[rows], valid, self.cuts, class_of, missing, weight)


class Factor(Protocol):
    """Units over one thing, and the classes they make; ``truths`` is int8[classes, units]."""

    units: list[Expression]

    @property
    def classes(self) -> int:
        """How many classes it has met so far."""

    @property
    def truths(self) -> npt.NDArray[np.int8]:
        """What each unit is on each class met so far."""

    def read(self, table: Table) -> Reading:
        """The classes of a batch; may meet new ones."""


class _Classes:
    """The classes of a factor, by the truths of its units: equal rows of truths are one class."""

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
        """The class of each value of the thing the units read. O(values * units)."""
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
    """Each row of a matrix as a key; a matrix without columns has empty ones."""
    rows, width = matrix.shape
    if width == 0:
        return [b""] * rows
    packed: Any = np.ascontiguousarray(matrix).view(np.dtype((np.void, width)))
    keys: list[bytes] = packed.ravel().tolist()
    return keys


def _valid(mask: npt.NDArray[np.bool_] | None, rows: int) -> npt.NDArray[np.bool_]:
    return _ALL_VALID if mask is None else np.ascontiguousarray(spread(mask, rows))


def null_of(kind: Kind) -> ColumnData:
    """One NULL of a kind."""
    return nulls(kind, 1)


class TextFactor(_Classes):
    """A TEXT column: each word is classified once, and remembered from batch to batch."""

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
        """O(rows), and O(words) of Python when the dictionary is not the last batch's own."""
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
        if len(self._class_of_word) > _REMEMBERED:
            self._class_of_word.clear()
        known = self._class_of_word
        fresh = list(dict.fromkeys(word for word in words if word not in known))
        if fresh:
            codes = np.arange(len(fresh), dtype=np.int32)
            column = ColumnData(Kind.TEXT, codes, None, objects(fresh))
            known.update(zip(fresh, self.classify(self.name, column).tolist(), strict=True))
        self._class_of[used] = [known[word] for word in words]


class BooleanFactor(_Classes):
    """A BOOLEAN column: at most three classes."""

    def __init__(self, subject: Expression, units: list[Expression]) -> None:
        super().__init__(units)
        assert isinstance(subject, Column)
        self.name = subject.name
        both = ColumnData(Kind.BOOLEAN, np.array([False, True]))
        self._class_of = self.classify(self.name, both)
        self._null_class = int(self.classify(self.name, null_of(Kind.BOOLEAN))[0])

    def read(self, table: Table) -> Reading:
        """O(1)."""
        column = table.columns[self.name]
        codes = np.ascontiguousarray(column.values).view(np.uint8)
        return Reading(codes, _valid(column.valid, table.rows), self._class_of, self._null_class)


class RangeFactor(_Classes):
    """A number or an instant compared with constants: which interval between them it is in.

    The units read ``VALUE``; ``subject`` is the expression they speak of.
    """

    def __init__(self, subject: Expression, units: list[Expression]) -> None:
        super().__init__(units)
        self.subject = subject
        self._intervals: dict[np.dtype[Any], tuple[npt.NDArray[Any], Classes, int]] = {}

    def read(self, table: Table) -> Reading:
        """The cost of the subject's value."""
        value = vector(self.subject, table)
        assert value.kind is not None
        dtype = value.values.dtype
        if dtype not in self._intervals:
            self._intervals[dtype] = self.divide(value.kind, dtype)
        cuts, class_of, null_class = self._intervals[dtype]
        look = np.ascontiguousarray(spread(value.values, table.rows))
        return Reading(look, _valid(value.valid, table.rows), class_of, null_class, cuts)

    def divide(self, kind: Kind, dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], Classes, int]:
        """The cuts, the class of each interval between them, and the class of NULL."""
        cuts = cuts_of(self.units, dtype)
        class_of = self.classify(VALUE.name, ColumnData(kind, representatives(cuts)))
        needed = class_of[1:] != class_of[:-1]
        kept = np.concatenate([class_of[:1], class_of[1:][needed]])
        null_class = int(self.classify(VALUE.name, null_of(kind))[0])
        return cuts[needed], kept, null_class


class ConditionFactor(_Classes):
    """Any other condition, tested on every row: FALSE, NULL or TRUE, and no more classes.

    The units read ``VALUE``; ``subject`` is the condition they speak of.
    """

    def __init__(self, subject: Expression, units: list[Expression]) -> None:
        super().__init__(units)
        self.subject = subject
        outcomes = from_kleene(np.array([-1, 0, 1], np.int8))
        data = ColumnData(Kind.BOOLEAN, outcomes.values, outcomes.valid)
        self.class_of = self.classify(VALUE.name, data)

    def read(self, table: Table) -> Reading:
        """The cost of the condition's truth."""
        codes = (kleene(self.subject, table) + np.int8(1)).view(np.uint8)
        return Reading(spread(codes, table.rows), _ALL_VALID, self.class_of, 0)


class Split(NamedTuple):
    """``skeletons[k]`` is predicate k over the units, each a column called by its name.

    ``names`` are the units' names, factor by factor, in the order of each factor's units.
    """

    factors: list[Factor]
    names: list[list[str]]
    skeletons: list[Expression]


class _Key(NamedTuple):
    """What a factor reads: how, and the expression it reads."""

    factor: Callable[[Expression, list[Expression]], Factor]
    subject: Expression


class _Part(NamedTuple):
    """A condition that one factor decides; its expression is as the factor's units are."""

    key: _Key
    unit: Expression


def split(
    predicates: Sequence[Expression],
    schema: Mapping[str, Kind],
    whole: Callable[[Expression], bool] | None = None,
) -> Split:
    """Maximal conditions on one column or value become units. O(nodes).

    Units are evaluated on every row. A predicate of several units for which ``whole`` is true
    becomes one unit instead, so that a guard in it goes on guarding.
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
    """``units`` gives each distinct unit of each factor a name."""

    schema: Mapping[str, Kind]
    units: dict[_Key, dict[Expression, str]] = field(default_factory=dict)
    names: Iterator[int] = field(default_factory=count)

    def enter(self, part: _Part | Expression) -> Expression:
        """The column that stands for a part in a skeleton; a skeleton is one already."""
        if not isinstance(part, _Part):
            return part
        units = self.units.setdefault(part.key, {})
        if part.unit not in units:
            units[part.unit] = str(next(self.names))
        return Column(units[part.unit])

    def parts(self, node: Expression) -> _Part | Expression:
        """One part when a single factor decides the node, else its skeleton."""
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
        """AND and OR do not mind the order, so operands meet by factor."""
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
    """The leaf as a condition on ``VALUE``, when it compares one value with constants."""
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
    """NaN and infinities have no place among cuts; the rest does."""
    value = literal.value
    return not isinstance(value, int | float) or math.isfinite(exact_number(value))
