"""Cells: the combination of classes a row stands in, as one small number."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from ids.predicates.factors import Reading
from ids.predicates.interning import Interner, Numbers

__all__ = ["Cells"]

# Up to here a table with an entry for every possible cell is small enough to index directly.
_DENSE = 2**20
# What one 64-bit word of digits may hold.
_WORD = 2**63
# Cells remembered before they are forgotten and met anew; they cost memory, never correctness.
_REMEMBERED = 2**22


class Cells:
    """Mixed-radix numbers over the factors' classes; beyond 2**20 of them, those that occur.

    A factor may gain classes; then its radix at least doubles and the numbers start afresh, so
    whoever holds them must drop them when ``fit`` says so.
    """

    def __init__(self, factors: int) -> None:
        self._radix = [0] * factors
        self._words: list[list[int]] = []
        self._interners: list[Interner] = []

    def fit(self, classes: Sequence[int], live: int) -> bool:
        """Make room for so many classes of each factor; True when numbers start afresh.

        ``live`` is how many cells the caller surely needs: far beyond it, old ones are forgotten.
        """
        room = all(have >= need for have, need in zip(self._radix, classes, strict=True))
        if room and self._words and self.size <= max(_DENSE, _REMEMBERED, 8 * live):
            return False
        self._radix = [
            have if have >= need else max(need, 2 * have)
            for have, need in zip(self._radix, classes, strict=True)
        ]
        self._words = _packed(self._radix)
        dense = prod(self._radix) <= _DENSE
        self._interners = [] if dense else [Interner() for _ in self._words]
        return True

    @property
    def fixed(self) -> bool:
        """Whether a row's number depends on nothing but its classes."""
        return not self._interners

    @property
    def nbytes(self) -> int:
        """Bytes of the tables; none while numbers are worked out."""
        return sum(interner.nbytes for interner in self._interners)

    @property
    def size(self) -> int:
        """Every number given so far is below it."""
        return self._interners[-1].count if self._interners else prod(self._radix)

    def number(self, readings: Sequence[Reading], rows: slice) -> Numbers:
        """The cell of each of the rows."""
        words = [self._word(word, readings, rows) for word in self._words]
        if not self._interners:
            return words[0]
        numbers: Numbers = np.zeros(len(words[0]), np.uint64)
        for interner, word in zip(self._interners, words, strict=True):
            numbers = interner.number(numbers, word)
        return numbers

    def _word(self, factors: list[int], readings: Sequence[Reading], rows: slice) -> Numbers:
        cell: Numbers = np.zeros(rows.stop - rows.start, np.uint64)
        stride = 1
        for factor in factors:
            readings[factor].add(cell, rows, stride)
            stride *= self._radix[factor]
        return cell

    def classes(self, cells: Numbers) -> list[npt.NDArray[np.intp]]:
        """The class of each factor in the given cells: the inverse of ``number``."""
        found = [np.zeros(len(cells), np.intp) for _ in self._radix]
        words = [cells]
        if self._interners:
            words = []
            for interner in reversed(self._interners):
                cells, word = interner.pairs(cells)
                words.insert(0, word)
        for factors, word in zip(self._words, words, strict=True):
            for factor in factors:
                word, digit = np.divmod(word, np.uint64(self._radix[factor]))
                found[factor] = digit.astype(np.intp)
        return found


def _packed(radix: Sequence[int]) -> list[list[int]]:
    """The factors, in order, in as few words as hold their digits; one word even for none."""
    words: list[list[int]] = [[]]
    room = _WORD
    for factor, size in enumerate(radix):
        if size > room:
            words.append([])
            room = _WORD
        words[-1].append(factor)
        room //= size
    return words
