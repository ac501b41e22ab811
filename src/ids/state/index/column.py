"""One indexed column: postings that notice when keys change their meaning."""

from __future__ import annotations

from typing import Any

from ids.model.table import Kind
from ids.state.index.postings import Found, Live, Postings
from ids.state.index.slices import Slicing
from ids.state.retained import Retained

__all__ = ["Indexed"]


class Indexed:
    """A column's postings, and its *source*: what the keys of its blocks stand for.

    The source is the scalar type of the values, or the codes of the words. Where the retained
    window has turned whole numbers into doubles, or given words new codes, the blocks begin anew.
    """

    def __init__(self, name: str, kind: Kind, sizes: tuple[int, ...]) -> None:
        self.name = name
        self.postings = Postings(sizes)
        self._sizes = sizes
        self._text = kind is Kind.TEXT
        self._value, self._valid = f"value {name}", f"valid {name}"
        self._source: Any = None

    def follow(self, retained: Retained) -> Live:
        """Bring the blocks up to date with the rows inside, and see these."""
        rows = retained.rows
        values = rows[self._value]
        source = retained.codes(self.name) if self._text else values.dtype.type
        # by its identity: a type that NumPy knows by one object, or the very dictionary
        if source is not self._source:
            self._source = source
            self.postings = Postings(self._sizes)
        live = Live.of(values, rows[self._valid], rows.first)
        if not self.postings.idle(rows.first, rows.first + len(values)):
            self.postings.follow(live)
        return live

    def find(self, retained: Retained, slicing: Slicing) -> Found:
        """Where the rows stand that a condition asks for. O(blocks · slices · log rows)."""
        live = self.follow(retained)
        return self.postings.find(live, slicing.slices(self._source))
