"""The enumerated state: only the predicates named in advance are kept, however many atoms.

When a refinement would pass its limit, joint summaries nobody named are given up: inclusion and
exclusion cannot bring them back, so other combinations need the retained window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from ids.kernels.scatter import add_rows
from ids.model.expression import Expression
from ids.model.table import Table
from ids.predicates.truth import holds
from ids.state.summaries import Summaries

__all__ = ["Enumerated"]

Words = npt.NDArray[np.int64]
Tags = npt.NDArray[np.generic]


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
