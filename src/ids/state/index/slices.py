"""Slices: a condition on one column as intervals of its keys.

A value is judged once for all rows that hold it: a word of a text column, the two Booleans, an
interval between the constants that numbers and instants are compared with.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ids.kernels.blocks import HIGHEST, LOWEST
from ids.model.expression import Column, Comparison, Expression, In, Literal
from ids.model.table import ColumnData, Kind, Table
from ids.predicates.cuts import cuts_of, representatives
from ids.predicates.factors import VALUE, Range, null_of
from ids.predicates.splitting import split
from ids.predicates.truth import truth
from ids.predicates.vector import objects
from ids.state.index.demand import Demand

__all__ = ["Slices", "Slicing", "slicing"]

Keys = npt.NDArray[np.int64]


class Slices(NamedTuple):
    """Ascending intervals of keys, both ends inside; and whether NULL belongs to them."""

    low: Keys
    high: Keys
    nulls: bool


class Slicing(Protocol):
    """A condition on one column, ready to be cut into slices."""

    def slices(self, source: Any) -> Slices:
        """The keys on which it is as demanded; ``source`` says what keys stand for.

        That is the scalar type of the values, or the codes of the words.
        """


def slicing(condition: Expression, name: str, kind: Kind, demand: Demand) -> Slicing | None:
    """The condition (which reads this column alone) by slices; None where keys cannot tell."""
    if kind is Kind.TEXT:
        return _Words(condition, name, demand)
    if kind is Kind.BOOLEAN:
        return _Flag(condition, name, demand)
    factors = split([condition], {name: kind}).factors
    if len(factors) != 1 or not isinstance(factors[0], Range):
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
