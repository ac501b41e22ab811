"""The refined state: a row touches one atom, and everything else follows from the atoms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ids.model.expression import Expression
from ids.model.table import ColumnData, Kind, Table
from ids.predicates.refinement import Refinement
from ids.predicates.truth import truth
from ids.state.summaries import Summaries

__all__ = ["Refined"]

Words = npt.NDArray[np.int64]
Tags = npt.NDArray[np.generic]


class Refined:
    """Membership by atom: a row's tag is its atom's number, uint32.

    predicates  the registered conditions, bound, by name; their order is the signature's
    """

    def __init__(self, predicates: Mapping[str, Expression]) -> None:
        self.names = tuple(predicates)
        self.refinement = Refinement(list(predicates.values()))
        self._changes = 0
        self._members: dict[Expression, tuple[int, int, Words]] = {}

    @property
    def width(self) -> int:
        """Atom numbers in use are below this."""
        return self.refinement.atoms

    @property
    def nbytes(self) -> int:
        """Bytes of the signatures."""
        return self.refinement.truths.nbytes

    def assign(self, table: Table) -> Tags:
        """Each row's atom."""
        return self.refinement.assign(table)

    def tally(
        self, summaries: Summaries, tags: Tags, digits: Words, players: npt.NDArray[np.bool_],
        sign: int, into: Words | None,
    ) -> Words:  # fmt: skip
        """Signed rows of one measure as a delta over the atoms."""
        return summaries.tally(self.width, tags.view(np.uint32), digits, players, sign, into)

    def holds(self) -> npt.NDArray[np.bool_]:
        """bool[width, K]: which predicates hold on each atom."""
        return self.refinement.holds(np.arange(self.width))

    def commit(self, measures: Sequence[Summaries], deltas: Sequence[Words]) -> None:
        """Take the deltas in; the first measure counts every row, so it knows empty atoms."""
        touched = np.flatnonzero(np.any([d.any(axis=1) for d in deltas], axis=0))
        holds = self.holds()
        for summaries, delta in zip(measures, deltas, strict=True):
            summaries.add(delta, touched, holds)

    def reclaim(self, rows: Summaries) -> None:
        """Give back the numbers of atoms that hold no row."""
        live = self.refinement.live()
        rows.reserve(self.width)
        empty = live[rows.atoms[live, 0] == 0]
        if len(empty):
            self.refinement.release(empty)
            self._changes += 1

    def without(
        self, name: str, predicates: Mapping[str, Expression]
    ) -> tuple[Refined, npt.NDArray[np.uint32]]:
        """The refinement without one predicate, and each old atom's new number."""
        gone = self.names.index(name)
        live = self.refinement.live()
        kept = np.delete(self.refinement.truths[live], gone, axis=1)
        distinct, new = np.unique(kept, axis=0, return_inverse=True)
        fresh = Refined(predicates)
        fresh.refinement.preload(distinct, np.arange(len(distinct)))
        mapping = np.zeros(max(1, self.width), np.uint32)
        mapping[live] = new.ravel()
        return fresh, mapping

    def judge(self, conditions: Sequence[Expression]) -> npt.NDArray[np.bool_]:
        """bool[width, conditions]: which conditions over registered names hold on each atom."""
        table = self._atoms_as_rows(np.arange(self.width))
        return np.stack([truth(c, table) == 1 for c in conditions], axis=1)

    def _atoms_as_rows(self, atoms: Words) -> Table:
        truths = self.refinement.truths[atoms]
        columns = {
            name: ColumnData(Kind.BOOLEAN, truths[:, k] == 1, truths[:, k] >= 0)
            for k, name in enumerate(self.names)
        }
        return Table(columns, len(atoms))

    def holding(self, condition: Expression) -> Words:
        """The live atoms on which a condition over registered names holds (three-valued).

        ``condition`` reads the names as columns. Kept until an atom comes or goes.
        """
        known = self._members.get(condition)
        if known is not None and known[:2] == (self._changes, self.width):
            return known[2]
        live = self.refinement.live()
        held = live[truth(condition, self._atoms_as_rows(live)) == 1]
        self._members[condition] = (self._changes, self.width, held)
        return held
