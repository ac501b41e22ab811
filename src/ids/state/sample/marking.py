"""Which rows must be kept: one class a sampler, all by the same sweep from newest to oldest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ids.kernels.copies import highest_of_copies, survivors_of_copies
from ids.kernels.sampling import likely_survivors, mix, survivors, survivors_by_stratum
from ids.state.retained import TAG
from ids.state.sample.candidates import PRIORITY, SEQUENCE, plays_of, value_of
from ids.state.sample.chained import Chains
from ids.state.sample.strata import Strata
from ids.state.sliding import Array

__all__ = ["ByChains", "ByCopies", "ByPriority", "Columns", "Extremes", "Independent", "Marking"]

_ARRIVAL = "arrival"

Columns = Callable[[str], Array]
Mask = npt.NDArray[np.bool_]


class Marking(Protocol):
    """What a sampler adds to a row, and which rows it may yet draw."""

    def columns(self, sequence: npt.NDArray[np.int64]) -> dict[str, Array]:
        """Columns beside the row's own, by its arrival number."""

    def mark(self, rows: Columns) -> Mask:
        """The rows that must be kept, of rows in window order."""


class Independent(Marking, Protocol):
    """A sampler with replacement: every copy of the sample has a row of its own."""

    def heads(self, rows: Columns, count: int) -> npt.NDArray[np.int64]:
        """Where the row of each copy is among the kept ones, ``count`` of them."""


class ByPriority:
    """The ``size`` highest of one random priority a row; of each stratum, where there are some."""

    def __init__(self, size: int, seed: int, strata: Strata) -> None:
        self._size = size
        self._seed = np.uint64(seed % 2**64)
        self._strata = strata

    def columns(self, sequence: npt.NDArray[np.int64]) -> dict[str, Array]:
        """The arrival number, and the priority it draws."""
        priority = np.empty(len(sequence), np.float64)
        mix(self._seed, sequence, priority)
        return {SEQUENCE: sequence, PRIORITY: priority}

    def mark(self, rows: Columns) -> Mask:
        """Rows that are among the highest of themselves and all newer rows."""
        priority = rows(PRIORITY)
        keep = np.empty(len(priority), np.bool_)
        if self._strata.columns:
            strata = len(self._strata.population)
            survivors_by_stratum(priority, rows(TAG), strata, self._size, keep)
        else:
            likely_survivors(priority, self._size, keep)
        return keep


class ByCopies:
    """Priority-sample with replacement: the highest row of each of ``copies`` priorities."""

    def __init__(self, copies: int, seed: int) -> None:
        self._copies = copies
        self._seed = np.uint64(seed % 2**64)

    def columns(self, sequence: npt.NDArray[np.int64]) -> dict[str, Array]:
        """The arrival number: a copy's priorities are worked out from it each time."""
        return {SEQUENCE: sequence}

    def mark(self, rows: Columns) -> Mask:
        """Rows that some copy ranks above all newer rows."""
        sequence = rows(SEQUENCE)
        keep = np.empty(len(sequence), np.bool_)
        survivors_of_copies(self._seed, self._copies, sequence, keep)
        return keep

    def heads(self, rows: Columns, count: int) -> npt.NDArray[np.int64]:
        """The highest row of each copy."""
        places = np.empty(self._copies if count else 0, np.int64)
        if count:
            highest_of_copies(self._seed, self._copies, rows(SEQUENCE), places)
        return places


class ByChains:
    """Chain-sample: the rows that some chain has taken and not let go."""

    def __init__(self, chains: Chains) -> None:
        self._chains = chains
        self._taken: Mask | None = None

    def columns(self, sequence: npt.NDArray[np.int64]) -> dict[str, Array]:
        """The arrival number, and the place in the order of arrival, which has no gaps."""
        first = self._chains.arrived + 1
        self._taken = self._chains.arrive(len(sequence))
        return {SEQUENCE: sequence, _ARRIVAL: np.arange(first, first + len(sequence))}

    def mark(self, rows: Columns) -> Mask:
        """Of rows that just arrived those that chains took, of others those still in a chain."""
        taken, self._taken = self._taken, None
        return self._chains.held(rows(_ARRIVAL).view(np.int64)) if taken is None else taken

    def heads(self, rows: Columns, count: int) -> npt.NDArray[np.int64]:
        """The first row of each chain."""
        if not count:
            return np.zeros(0, np.int64)
        return np.searchsorted(rows(_ARRIVAL).view(np.int64), self._chains.heads())


class Extremes:
    """The rows of the largest and of the smallest y of every measure, so many of each."""

    def __init__(self, measures: int, size: int) -> None:
        self._measures = measures
        self._size = size

    def columns(
        self, values: Sequence[npt.NDArray[np.float64]], players: Sequence[Mask | None]
    ) -> dict[str, Array]:
        """Each measure's y and players."""
        columns: dict[str, Array] = {}
        for m, (y, plays) in enumerate(zip(values, players, strict=True), start=1):
            columns[value_of(m)] = y
            columns[plays_of(m)] = np.ones(len(y), np.bool_) if plays is None else plays
        return columns

    def mark(self, rows: Columns, keep: Mask) -> None:
        """Add the rows that may yet be extremes to those that are kept."""
        for m in range(1, self._measures + 1):
            y, plays = rows(value_of(m)), rows(plays_of(m)).view(np.bool_)
            among = slice(None) if plays.all() else np.flatnonzero(plays)
            playing = y.view(np.float64)[among]
            high = np.empty(len(playing), np.bool_)
            for priority in (playing, -playing):
                survivors(priority, self._size, high)
                keep[among] |= high
