"""Summaries: the exact sums of one measure, for the window, each predicate and each atom."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.kernels.scatter import add_delta, apply_signed, merge_summaries
from ids.model.scale import Scale
from ids.state.scaling import cut_column, decode, rescale

__all__ = ["Summaries"]

Words = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Summaries:
    """One measure's state: ``window`` = Σ ``atoms``, ``marginals[k]`` = Σ atoms where k holds.

    Algebra: adding a delta and adding its negative is the identity, in any order and any split.
    Cost: a delta of n rows is O(n), plus O(touched atoms · K) to carry it to the marginals.
    """

    def __init__(self, scale: Scale, predicates: int, atoms: int = 0) -> None:
        self.scale = scale
        self.centre = _centre(scale)
        self.window: Words = np.zeros(scale.words, np.int64)
        self.marginals: Words = np.zeros((predicates, scale.words), np.int64)
        self.atoms: Words = np.zeros((atoms, scale.words), np.int64)

    def cut(self, values: npt.NDArray[np.float64]) -> Words:
        """A column's digits under this measure's scale."""
        return cut_column(values, self.scale)

    def reserve(self, atoms: int) -> None:
        """Make room for atom numbers below ``atoms``."""
        if atoms > len(self.atoms):
            grown = np.zeros((max(atoms, 2 * len(self.atoms)), self.scale.words), np.int64)
            grown[: len(self.atoms)] = self.atoms
            self.atoms = grown

    def tally(
        self, atoms: int, tag: npt.NDArray[np.uint32], digits: Words, players: Bools, sign: int,
        into: Words | None = None,
    ) -> Words:  # fmt: skip
        """Signed rows as a delta: a summary for each atom number below ``atoms``."""
        delta = np.zeros((atoms, self.scale.words), np.int64) if into is None else into
        apply_signed(delta, tag, digits, players, self.centre, self.scale.layout, sign)
        return delta

    def add(self, delta: Words, touched: Words, holds: Bools) -> None:
        """Take a delta in: rows ``touched`` of it, to atoms, marginals and the window."""
        self.reserve(len(delta))
        add_delta(
            delta[touched], touched, holds, self.scale.layout, self.atoms, self.marginals,
            self.window,
        )  # fmt: skip

    def merged(self, chosen: Words) -> Words:
        """Merge before evaluating: the summary of several atoms together."""
        total = np.zeros(self.scale.words, np.int64)
        merge_summaries(self.atoms, chosen, self.scale.layout, total)
        return total

    def exact(self, summary: Words) -> tuple[int, list[int]]:
        """A summary as plain integers (m, Σ q, Σ q², …): equal state means equal integers."""
        return decode(summary, self.scale)

    def change_scale(self, scale: Scale) -> None:
        """Carry every sum over to a scale with digits added on either side: exact."""
        old = self.scale
        self.window = rescale(self.window.reshape(1, -1), old, scale)[0]
        self.marginals = rescale(self.marginals, old, scale)
        self.atoms = rescale(self.atoms, old, scale)
        self.scale = scale
        self.centre = _centre(scale)


def _centre(scale: Scale) -> Words:
    """The scale's centre as the kernels take it."""
    return np.array(scale.centre or (0,), dtype=np.int64)
