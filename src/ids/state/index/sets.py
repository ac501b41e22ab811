"""Sets of rows that an index has found, before a row is looked at: slices, unions, meets.

Each knows how many rows it will look at. Small sets are lists of places, large ones bits: a word
of 64 for so many rows of the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ids.kernels.postings import emit_bits, mark_places
from ids.model.expression import Expression, columns_of
from ids.predicates.truth import truth
from ids.state.index.demand import Demand
from ids.state.index.postings import Bits, Found, Places
from ids.state.retained import Retained

__all__ = ["Meet", "Rest", "RowSet", "Slice", "Union"]

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


class Slice(NamedTuple):
    """What one column's postings hold. O(matches), and the rows not indexed yet."""

    found: Found
    candidates: int

    def places(self) -> Places:
        return self.found.places()

    def mark(self, bits: Bits) -> None:
        self.found.mark(bits)

    def within(self, places: Places) -> Places:
        return self.found.within(places)


class Union(NamedTuple):
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


class Rest(NamedTuple):
    """A condition that no index decides: put to the rows that are left."""

    retained: Retained
    condition: Expression
    demand: Demand

    def within(self, places: Places) -> Places:
        if not len(places):
            return places
        names = set(columns_of(self.condition))
        return places[self.demand.met(truth(self.condition, self.retained.take(places, names)))]


class Meet(NamedTuple):
    """AND: the most selective set drives, the others and the rest are put to what is left.

    sets  by ascending candidates
    """

    sets: Sequence[RowSet]
    rest: Sequence[Rest]
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
