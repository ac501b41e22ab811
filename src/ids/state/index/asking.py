"""Asking an index: a condition becomes a tree of slices, found anew in the rows of each slide.

NOT and IS TRUE turn into demands on their operands, so that AND and OR are all there is above the
slices. OR needs all its operands found by the index; AND needs one, and keeps the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ids.model.expression import And, Expression, IsTrue, Not, Or, columns_of
from ids.model.table import Kind
from ids.state.index.column import Indexed
from ids.state.index.demand import Demand
from ids.state.index.postings import Places
from ids.state.index.sets import Meet, Rest, RowSet, Slice, Union
from ids.state.index.slices import Slicing, slicing
from ids.state.retained import Retained

__all__ = ["Access", "Prepared", "prepare"]


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


class Prepared(NamedTuple):
    """A condition taken apart once, to be found again after every slide."""

    root: _Node

    def find(self, retained: Retained) -> Access:
        """Follow the rows inside, and find the condition in them. No row is looked at."""
        if not len(retained):
            return Access(0)
        found = self.root.find(retained)
        return Access(found.candidates, found)


class _Node(Protocol):
    """A condition that the index finds."""

    def find(self, retained: Retained) -> RowSet: ...


class _Leaf(NamedTuple):
    """A condition on one indexed column."""

    column: Indexed
    slicing: Slicing

    def find(self, retained: Retained) -> RowSet:
        found = self.column.find(retained, self.slicing)
        return Slice(found, min(found.rows + found.behind, len(retained)))


class _Any(NamedTuple):
    """OR of conditions that the index finds."""

    operands: Sequence[_Node]

    def find(self, retained: Retained) -> RowSet:
        sets = [operand.find(retained) for operand in self.operands]
        looked_at = sum(each.candidates for each in sets)
        return Union(sets, min(looked_at, len(retained)), len(retained))


class _All(NamedTuple):
    """AND of conditions, some of which the index finds."""

    operands: Sequence[_Node]
    rest: Sequence[tuple[Expression, Demand]]

    def find(self, retained: Retained) -> RowSet:
        sets = [operand.find(retained) for operand in self.operands]
        rest = [Rest(retained, condition, demand) for condition, demand in self.rest]
        return Meet(sorted(sets, key=lambda each: each.candidates), rest, len(retained))


def prepare(
    condition: Expression, columns: Mapping[str, Indexed], kinds: Mapping[str, Kind]
) -> Prepared | None:
    """Take a bound condition apart; None where the index is of no use to it. O(nodes²)."""
    root = _Taking(columns, kinds).apart(condition, Demand.TRUE)
    return None if root is None else Prepared(root)


class _Taking(NamedTuple):
    columns: Mapping[str, Indexed]
    kinds: Mapping[str, Kind]

    def apart(self, condition: Expression, demand: Demand) -> _Node | None:
        """The rows on which the condition is as demanded, or None if the index cannot find them."""
        leaf = self._leaf(condition, demand)
        if leaf is not None:
            return leaf
        match condition:
            case Not(operand):
                return self.apart(operand, demand.under_not())
            case IsTrue(operand, sought):
                return self.apart(operand, demand.under_is(sought))
            case And(operands) | Or(operands):
                every = demand.of_all == isinstance(condition, And)
                grouped = self._grouped(type(condition), operands)
                return self._every(grouped, demand) if every else self._any(grouped, demand)
        return None

    def _leaf(self, condition: Expression, demand: Demand) -> _Leaf | None:
        names = set(columns_of(condition))
        if len(names) != 1 or not names <= self.columns.keys():
            return None
        (name,) = names
        sliced = slicing(condition, name, self.kinds[name], demand)
        return None if sliced is None else _Leaf(self.columns[name], sliced)

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

    def _every(self, operands: Sequence[Expression], demand: Demand) -> _Node | None:
        nodes: list[_Node] = []
        rest: list[tuple[Expression, Demand]] = []
        for operand in operands:
            node = self.apart(operand, demand)
            if node is None:
                rest.append((operand, demand))
            else:
                nodes.append(node)
        if len(nodes) == 1 and not rest:
            return nodes[0]
        return _All(nodes, rest) if nodes else None

    def _any(self, operands: Sequence[Expression], demand: Demand) -> _Node | None:
        nodes: list[_Node] = []
        for operand in operands:
            node = self.apart(operand, demand)
            if node is None:
                return None
            nodes.append(node)
        return nodes[0] if len(nodes) == 1 else _Any(nodes)
