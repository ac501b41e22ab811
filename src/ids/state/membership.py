"""The refined state: a row touches one atom, and everything else follows from the atoms.

The enumerated state: only the predicates named in advance are kept, however many atoms.

When a refinement would pass its limit, joint summaries nobody named are given up: inclusion and
exclusion cannot bring them back, so other combinations need the retained window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ids.kernels import add_rows, touched_rows
from ids.model import ColumnData, Expression, Kind, Table
from ids.predicates import Refinement, holds
from ids.state.summaries import Summaries

Words = npt.NDArray[np.int64]
Tags = npt.NDArray[np.generic]

_MOST = 4096


class Refined:
    """Membership by atom: a row's tag is its atom's number, uint32.

    predicates  the registered conditions, bound, by name; their order is the signature's

    ``live`` are the atoms that hold a row, as of the last slide: an atom that ``assign`` meets is
    none of them before its delta is committed, so a reader never sees half a slide.
    """

    def __init__(self, predicates: Mapping[str, Expression]) -> None:
        self.names = tuple(predicates)
        self.refinement = Refinement(list(predicates.values()))
        self.live: Words = np.zeros(0, np.int64)
        self._members: dict[Expression, Words] = {}

    @property
    def width(self) -> int:
        """Atom numbers in use are below this."""
        return self.refinement.atoms

    @property
    def nbytes(self) -> int:
        """Bytes of the signatures, and of the tables that find a row's atom."""
        return self.refinement.nbytes

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
        """Take the deltas in; numbers of atoms that now hold no row are given back."""
        touched = touched_rows(deltas[0])
        for delta in deltas[1:]:
            touched = np.union1d(touched, touched_rows(delta))
        holds = self.refinement.holds(touched)
        for summaries, delta in zip(measures, deltas, strict=True):
            summaries.add(delta, touched, holds)
        self._settle(measures[0], touched)

    def _settle(self, rows: Summaries, touched: Words) -> None:
        """Tell which atoms live; only those touched can have come or gone.

        Were others met, and never committed, they are found by looking at all.
        """
        lives = np.zeros(self.width, np.bool_)
        lives[self.live] = True
        before, after = lives[touched], rows.atoms[touched, 0] != 0
        if len(self.live) + int((after & ~before).sum()) != self.refinement.met:
            self.reclaim(rows)
        elif not np.array_equal(before, after):
            self.refinement.release(touched[before & ~after])
            lives[touched] = after
            self.live = np.flatnonzero(lives)
            self._members.clear()

    def reclaim(self, rows: Summaries) -> None:
        """Give back the numbers of atoms without a row (``rows`` counts every row)."""
        met = self.refinement.live()
        rows.reserve(self.width)
        full = rows.atoms[met, 0] != 0
        if not full.all():
            self.refinement.release(met[~full])
        if not np.array_equal(met[full], self.live):
            self.live = met[full]
            self._members.clear()

    def preload(self, truths: npt.NDArray[np.int8], atoms: Words) -> None:
        """Make signatures mean the given atoms, each of which holds a row."""
        self.refinement.preload(truths, atoms)
        self.live = np.sort(atoms)

    def without(
        self, name: str, predicates: Mapping[str, Expression]
    ) -> tuple[Refined, npt.NDArray[np.uint32]]:
        """The refinement without one predicate, and each old atom's new number."""
        gone = self.names.index(name)
        kept = np.delete(self.refinement.truths[self.live], gone, axis=1)
        distinct, new = np.unique(kept, axis=0, return_inverse=True)
        fresh = Refined(predicates)
        fresh.preload(distinct, np.arange(len(distinct)))
        mapping = np.zeros(max(1, self.width), np.uint32)
        mapping[self.live] = new.ravel()
        return fresh, mapping

    def judge(self, conditions: Sequence[Expression]) -> npt.NDArray[np.bool_]:
        """bool[width, conditions]: which conditions over registered names hold on each atom."""
        table = self._atoms_as_rows(np.arange(self.width))
        return np.stack([holds(c, table) for c in conditions], axis=1)

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
        if known is None:
            if len(self._members) >= _MOST:
                self._members.clear()
            held = holds(condition, self._atoms_as_rows(self.live))
            known = self._members[condition] = self.live[held]
        return known


class Enumerated:
    """Membership by target: a row's tag is a packed bit for each target, uint8[ceil(t / 8)].

    targets  the registered predicates, then the enumerated intersections, bound, by name
    """

    def __init__(self, targets: Mapping[str, Expression]) -> None:
        self.names = tuple(targets)
        self.targets = tuple(targets.values())

    nbytes = 0  # no signatures are kept

    def assign(self, table: Table) -> Tags:
        """Which targets hold on each row. O(rows · targets)."""
        held = np.zeros((table.rows, len(self.targets)), np.bool_)
        for t, target in enumerate(self.targets):
            held[:, t] = holds(target, table)
        return self.pack(held)

    @staticmethod
    def pack(held: npt.NDArray[np.bool_]) -> Tags:
        """bool[n, t] as packed bits."""
        return np.packbits(held, axis=1)

    def unpack(self, tags: Tags) -> npt.NDArray[np.bool_]:
        """Tags as bool[n, t]."""
        bits = np.unpackbits(tags.view(np.uint8), axis=1, count=len(self.targets))
        return bits.astype(np.bool_)

    def tally(
        self, summaries: Summaries, tags: Tags, digits: Words, players: npt.NDArray[np.bool_],
        sign: int, into: Words | None,
    ) -> Words:  # fmt: skip
        """Signed rows of one measure: a delta for the window, then for each target."""
        count = len(self.targets)
        bits = self.unpack(tags)
        delta = into
        if delta is None:
            delta = np.zeros((count + 1, summaries.scale.words), np.int64)
        nobody = np.zeros(len(tags), np.uint32)
        summaries.tally(1, nobody, digits, players, sign, delta[:1])
        for t in range(count):
            taking = bits[:, t] if not len(players) else bits[:, t] & players
            summaries.tally(1, nobody, digits, taking, sign, delta[t + 1 : t + 2])
        return delta

    def commit(self, measures: Sequence[Summaries], deltas: Sequence[Words]) -> None:
        """Take the deltas in."""
        for summaries, delta in zip(measures, deltas, strict=True):
            layout = summaries.scale.layout
            add_rows(summaries.window.reshape(1, -1), delta[:1], layout)
            add_rows(summaries.marginals, delta[1:], layout)
