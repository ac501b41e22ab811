"""The index: postings of chosen columns, which follow the retained window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ids.errors import UnknownNameError
from ids.model.expression import Expression
from ids.model.table import Kind
from ids.state.index.asking import Access, Prepared, prepare
from ids.state.index.column import Indexed
from ids.state.index.postings import SIZES
from ids.state.retained import Retained

__all__ = ["Index"]

# Conditions remembered before they are forgotten and taken apart anew.
_MOST = 1024


class Index:
    """Finds the rows of a condition on the columns it was made for, in proportion to their number.

    Meaning: ``access(condition, retained).places(retained)`` are the rows on which the condition
    is TRUE, as a scan would find them. Cost: about 10 to 60 ns a row and column to keep, two to
    three bytes; a question reads a few entries of each of some 30 blocks, then its matches.

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
        self._indexed = {name: Indexed(name, kinds[name], sizes) for name in self.columns}
        self._prepared: dict[Expression, Prepared | None] = {}
        self._first = 0

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(column.postings.nbytes for column in self._indexed.values())

    def follow(self, retained: Retained) -> None:
        """Rows were appended, or dropped at the front. Amortised O(1) a row, O(columns) a call."""
        rows = retained.rows
        self._first = rows.first
        last = rows.first + len(rows)
        for column in self._indexed.values():
            if not column.postings.idle(rows.first, last):
                column.follow(retained)

    def unsettle(self, place: int) -> None:
        """Rows at this place and behind it moved, or will before the next ``follow``.

        Places count from the oldest row inside, as it was when the index last followed or later.
        """
        for column in self._indexed.values():
            column.postings.truncate(self._first + place)

    def prepare(self, condition: Expression) -> Prepared | None:
        """A bound condition, ready to be found after every slide; None: the index is of no use."""
        try:
            return self._prepared[condition]  # one hash of the whole condition, not two
        except KeyError:
            if len(self._prepared) >= _MOST:
                self._prepared.clear()
            found = self._prepared[condition] = prepare(condition, self._indexed, self._kinds)
            return found

    def access(self, condition: Expression, retained: Retained) -> Access | None:
        """Find a bound condition in the rows inside; None where the index is of no use."""
        prepared = self.prepare(condition)
        return None if prepared is None else prepared.find(retained)
