"""Chain-sample: r rows of a count window with replacement, each the head of a chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ids.kernels.chains import begin_chains, head_arrivals, mark_links, run_chains
from ids.state.sliding import Array

__all__ = ["Chains"]

Arrivals = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class Chains:
    """Which row each chain has for its sample, by the order of arrival, counted from 1.

    O(r) numbers, and the rows in the chains: about e of them each.
    """

    def __init__(self, copies: int, window: int, seed: int) -> None:
        self._seed = np.uint64(seed % 2**64)
        self._window = window
        self._chains: Arrivals = np.zeros((copies, 3), np.int64)
        self._heap: Arrivals = np.zeros(copies, np.int64)
        self.arrived = 0
        self.begin()

    def begin(self) -> None:
        """No row is inside; arrivals are counted on, so no draw is made twice."""
        self._begun = self.arrived
        begin_chains(self._chains, self._heap, self._begun)

    @property
    def nbytes(self) -> int:
        """Bytes of the chains."""
        return self._chains.nbytes + self._heap.nbytes

    def arrive(self, rows: int) -> Mask:
        """That many rows arrive: which of them some chain takes."""
        taken = np.empty(rows, np.bool_)
        run_chains(
            self._seed, self._chains, self._heap, self._begun, self._window, self.arrived + 1, taken
        )
        self.arrived += rows
        return taken

    def held(self, arrivals: Arrivals) -> Mask:
        """Which of these arrivals, ascending, are in a chain."""
        keep = np.empty(len(arrivals), np.bool_)
        mark_links(self._seed, self._chains, self._window, self.arrived, arrivals, keep)
        return keep

    def heads(self) -> Arrivals:
        """The arrival that each chain has for its sample; at least one row is inside."""
        heads = np.empty(len(self._heap), np.int64)
        head_arrivals(self._seed, self._chains, self._window, self.arrived, heads)
        return heads

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint keeps."""
        return {"chains": self._chains, "chain heap": self._heap}

    def facts(self) -> dict[str, Any]:
        """What a checkpoint says."""
        return {"arrived": self.arrived, "begun": self._begun}

    def adopt(self, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Take the place of chains that were written to a checkpoint."""
        self.arrived, self._begun = int(facts["arrived"]), int(facts["begun"])
        self._chains = arrays["chains"].astype(np.int64)
        self._heap = arrays["chain heap"].astype(np.int64)
