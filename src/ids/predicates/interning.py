"""Interning: distinct pairs of numbers become 0, 1, 2, … in the order they first come."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ids.kernels.cells import intern, reseat

__all__ = ["Interner"]

Numbers = npt.NDArray[np.uint64]

_CAPACITY = 1024


class Interner:
    """A growing hash table from pairs to numbers, and an array from numbers back to pairs.

    O(1) expected a row; 24 bytes a distinct pair.
    """

    def __init__(self) -> None:
        self.count = 0
        self._previous: Numbers = np.empty(_CAPACITY, np.uint64)
        self._word: Numbers = np.empty(_CAPACITY, np.uint64)
        self._slots = np.full(2 * _CAPACITY, -1, np.int32)

    def number(self, previous: Numbers, word: Numbers) -> Numbers:
        """The number of each pair, a new one where the pair is new."""
        numbers: Numbers = np.empty(len(word), np.uint64)
        done = 0
        while True:
            done, self.count = intern(
                previous,
                word,
                done,
                self._slots,
                self._previous,
                self._word,
                self.count,
                numbers,
            )
            if done == len(word):
                return numbers
            self._grow()

    def pairs(self, numbers: npt.NDArray[Any]) -> tuple[Numbers, Numbers]:
        """The pairs behind the numbers."""
        return self._previous[numbers], self._word[numbers]

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return self._previous.nbytes + self._word.nbytes + self._slots.nbytes

    def _grow(self) -> None:
        empty: Numbers = np.empty(len(self._word), np.uint64)
        self._previous = np.concatenate([self._previous, empty])
        self._word = np.concatenate([self._word, empty])
        self._slots = np.full(2 * len(self._slots), -1, np.int32)
        reseat(self._previous, self._word, self.count, self._slots)
