"""Splitting: predicates become units of factors, and skeletons that put the units together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from ids.model.expression import (
    MIRROR,
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTrue,
    Literal,
    Not,
    Or,
    columns_of,
)
from ids.model.table import Kind
from ids.predicates.factors import VALUE, Dictionary, Factor, Flag, Range, Truth
from ids.predicates.kinds import kind_of
from ids.predicates.vector import exact_number

__all__ = ["Split", "split"]


class Split(NamedTuple):
    """``skeletons[k]`` is predicate k over the units, each a column called by its name.

    ``names`` are the units' names, factor by factor, in the order of each factor's units.
    """

    factors: list[Factor]
    names: list[list[str]]
    skeletons: list[Expression]


class _Key(NamedTuple):
    """What a factor reads: how, and the expression it reads."""

    factor: type[Factor]
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
        part: _Part | Expression = _Part(_Key(Truth, predicate), VALUE)
        if whole is None or not (_has_several(predicate, schema) and whole(predicate)):
            part = splitter.parts(predicate)
        skeletons.append(splitter.enter(part))
    factors = [_factor(key, list(units)) for key, units in splitter.units.items()]
    return Split(factors, [list(units.values()) for units in splitter.units.values()], skeletons)


def _has_several(predicate: Expression, schema: Mapping[str, Kind]) -> bool:
    return not isinstance(_Splitter(schema).parts(predicate), _Part)


def _factor(key: _Key, units: list[Expression]) -> Factor:
    if key.factor is Range:
        return Range(key.subject, units)
    if key.factor is Truth:
        return Truth(key.subject, units)
    assert isinstance(key.subject, Column)
    return (Dictionary if key.factor is Dictionary else Flag)(key.subject.name, units)


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
                return _Part(_Key(Dictionary if kind is Kind.TEXT else Flag, subject), leaf)
        ranged = _ranged(leaf) if names else None
        if ranged and kind_of(ranged.key.subject, self.schema) in (Kind.NUMBER, Kind.TIME):
            return ranged
        return _Part(_Key(Truth, leaf), VALUE)


def _ranged(leaf: Expression) -> _Part | None:
    """The leaf as a condition on ``VALUE``, when it compares one value with constants."""
    match leaf:
        case Comparison(op, Literal() as literal, subject) if _finite(literal):
            return _Part(_Key(Range, subject), Comparison(MIRROR[op], VALUE, literal))
        case Comparison(op, subject, Literal() as literal) if _finite(literal):
            return _Part(_Key(Range, subject), Comparison(op, VALUE, literal))
        case In(subject, options) if all(map(_finite, options)):
            return _Part(_Key(Range, subject), In(VALUE, options))
        case IsNull(subject):
            return _Part(_Key(Range, subject), IsNull(VALUE))
    return None


def _finite(literal: Literal) -> bool:
    """NaN and infinities have no place among cuts; the rest does."""
    value = literal.value
    return not isinstance(value, int | float) or math.isfinite(exact_number(value))
