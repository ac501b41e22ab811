"""Refinement into atoms: rows on which every predicate has the same truth are one atom.

A row's atom is found by its cell, the combination of the classes it is in, as one small number.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ids import kernels  # Numba is imported when one of them is called
from ids.errors import DataError, StateError
from ids.model import ColumnData, Expression, Kind, Table
from ids.predicates.factors import Factor, Numbers, Reading, Split, rows_as_bytes, split
from ids.predicates.three_valued import has_arithmetic, truth

# Up to here a table with an entry for every possible cell is small enough to index directly.
_DENSE = 2**20
# What one 64-bit word of digits may hold.
_WORD = 2**63
# Cells remembered before they are forgotten and met anew; they cost memory, never correctness.
_REMEMBERED = 2**22


# Pairs that an interner has room for at first.
_PAIRS = 1024


class _Interner:
    """Distinct pairs of numbers as 0, 1, 2, … in the order they first come, and back.

    O(1) expected a row; 24 bytes a distinct pair.
    """

    def __init__(self) -> None:
        self.count = 0
        self._previous: Numbers = np.empty(_PAIRS, np.uint64)
        self._word: Numbers = np.empty(_PAIRS, np.uint64)
        self._slots = np.full(2 * _PAIRS, -1, np.int32)

    def number(self, previous: Numbers, word: Numbers) -> Numbers:
        """The number of each pair, a new one where the pair is new."""
        numbers: Numbers = np.empty(len(word), np.uint64)
        done = 0
        while True:
            done, self.count = kernels.intern(
                previous, word, done, self._slots, self._previous, self._word, self.count, numbers
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
        kernels.reseat(self._previous, self._word, self.count, self._slots)


class _Cells:
    """Mixed-radix numbers over the factors' classes; beyond 2**20 of them, those that occur.

    A factor may gain classes; then its radix at least doubles and the numbers start afresh, so
    whoever holds them must drop them when ``fit`` says so.
    """

    def __init__(self, factors: int) -> None:
        self._radix = [0] * factors
        self._words: list[list[int]] = []
        self._interners: list[_Interner] = []

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
        self._interners = [] if dense else [_Interner() for _ in self._words]
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


Ids = npt.NDArray[np.uint32]

_CAPACITY = 16
# Rows at a time: their cells stay in the cache, and a first batch meets its cells early.
_ROWS = 2**16
# From so many blocks on, threads are worth their start.
_FEW = 4


class Refinement:
    """Rows on which every predicate has the same truth are one atom.

    A row's atom follows from one look-up for each column the predicates read and one for the
    combination, not from K tests. A combination met for the first time costs O(K) once.

    >>> from ids.model.expression import Column, Comparison, Literal
    >>> slow = Comparison(">", Column("ms"), Literal(100))
    >>> rows = Table({"ms": ColumnData(Kind.NUMBER, np.array([250, 20, 170]))}, 3)
    >>> refinement = Refinement([slow])
    >>> refinement.assign(rows), refinement.truths[:refinement.atoms]
    (array([1, 0, 1], dtype=uint32), array([[0], [1]], dtype=int8))
    """

    def __init__(self, predicates: Sequence[Expression]) -> None:
        self.predicates = tuple(predicates)
        self.atoms = 0
        self.truths: npt.NDArray[np.int8] = np.zeros((_CAPACITY, len(predicates)), np.int8)
        self._atom_of_signature: dict[bytes, int] = {}
        self._free: list[int] = []
        self._split: Split | None = None
        self._whole = False
        self._cells = _Cells(0)
        self._atom_of_cell = np.full(0, -1, np.int32)
        self._following = np.full(0, -1, np.int32)
        self._first = np.full(_CAPACITY, -1, np.int32)

    def assign(self, table: Table) -> Ids:
        """The atom of each row, as uint32[rows]; meets new atoms on the way."""
        factors, readings = self._read(table)
        live = len(self._atom_of_signature)
        if self._cells.fit([factor.classes for factor in factors], live):
            self._forget_cells()
        atoms = np.empty(table.rows, np.int32)
        blocks = [slice(at, min(at + _ROWS, table.rows)) for at in range(0, table.rows, _ROWS)]
        for rows in blocks[:1]:
            self._place(readings, rows, atoms[rows])
        if len(blocks) > _FEW and self._cells.fixed:
            # the first block has met most cells; the others look theirs up side by side
            missed = kernels.side_by_side(
                lambda rows: self._find(readings, rows, atoms[rows]), blocks[1:]
            )
            again = [rows for rows, some in zip(blocks[1:], missed, strict=True) if some]
            blocks = [*blocks[:1], *again]
        for rows in blocks[1:]:
            self._place(readings, rows, atoms[rows])
        return atoms.view(np.uint32)

    def signature(self, atom: int) -> bytes:
        """The truths of an atom as a key: one byte a predicate."""
        return rows_as_bytes(self.truths[atom : atom + 1])[0]

    def holds(self, atoms: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Which predicates hold on the atoms: bool[..., K]; NULL does not hold."""
        held: npt.NDArray[np.bool_] = self.truths[atoms] == 1
        return held

    def _find(self, readings: list[Reading], rows: slice, atoms: npt.NDArray[np.int32]) -> int:
        """Look the rows' atoms up; how many stand in a cell not met before."""
        cells = self._cells.number(readings, rows)
        self._reserve_cells(self._cells.size)
        unseen: int = kernels.look_up(cells, self._atom_of_cell, atoms)
        return unseen

    def _place(self, readings: list[Reading], rows: slice, atoms: npt.NDArray[np.int32]) -> None:
        """Look the rows' atoms up, and meet the cells not met before."""
        if self._find(readings, rows, atoms):
            self._meet(np.unique(self._cells.number(readings, rows)[atoms < 0]))
            self._find(readings, rows, atoms)

    @property
    def nbytes(self) -> int:
        """Bytes of the signatures and of the tables that find an atom."""
        tables = (self.truths, self._atom_of_cell, self._following, self._first)
        return sum(table.nbytes for table in tables) + self._cells.nbytes

    @property
    def met(self) -> int:
        """How many atom numbers are in use."""
        return len(self._atom_of_signature)

    def live(self) -> npt.NDArray[np.int64]:
        """The atom numbers in use, ascending."""
        return np.array(sorted(self._atom_of_signature.values()), dtype=np.int64)

    def release(self, atoms: npt.NDArray[np.integer] | Sequence[int]) -> None:
        """Give the ids back: their signatures, when they come again, get ids afresh. O(ids)."""
        ids = np.unique(np.asarray(atoms, np.int64))
        if len(ids) and not (ids[0] >= 0 and ids[-1] < self.atoms):
            raise StateError(f"no atom has the ids {ids}; release only what was assigned")
        signatures = rows_as_bytes(self.truths[ids])
        for atom, signature in zip(ids.tolist(), signatures, strict=True):
            if self._atom_of_signature.get(signature) != atom:
                raise StateError(f"atom {atom} is not in use; release only what was assigned")
        for signature in signatures:
            del self._atom_of_signature[signature]
        self._free.extend(ids.tolist()[::-1])
        kernels.unlink(ids, self._atom_of_cell, self._following, self._first)

    def preload(
        self, truths: npt.NDArray[np.int8], ids: npt.NDArray[np.integer] | Sequence[int]
    ) -> None:
        """Make signatures mean the given ids again, as when they were saved; only when new."""
        numbers = np.asarray(ids, np.int64)
        if self.atoms:
            raise StateError("atoms are already assigned; preload a new refinement")
        if truths.shape != (len(numbers), len(self.predicates)):
            raise StateError(f"truths of shape {truths.shape} do not fit the ids and predicates")
        signatures = rows_as_bytes(truths)
        if len(set(signatures)) < len(numbers) or len(np.unique(numbers)) < len(numbers):
            raise StateError("a signature or an id stands twice among the atoms to preload")
        self.atoms = int(numbers.max()) + 1 if len(numbers) else 0
        self._reserve_atoms()
        self.truths[numbers] = truths
        self._atom_of_signature = dict(zip(signatures, numbers.tolist(), strict=True))
        unused = np.setdiff1d(np.arange(self.atoms), numbers)
        self._free = unused[::-1].tolist()

    def _read(self, table: Table) -> tuple[list[Factor], list[Reading]]:
        """What each factor makes of a batch."""
        factors = self._factors(table).factors
        try:
            return factors, [factor.read(table) for factor in factors]
        except DataError:
            # of integers that leave 64 bits, maybe on rows that a predicate as a whole leaves out
            if self._whole or not any(map(has_arithmetic, self.predicates)):
                raise
        self._whole, self._split = True, None
        self._forget_cells()
        return self._read(table)

    def _factors(self, table: Table) -> Split:
        """Split at the first batch, which tells the columns' kinds."""
        if self._split is None:
            schema = {name: column.kind for name, column in table.columns.items()}
            self._split = split(self.predicates, schema, has_arithmetic if self._whole else None)
            self._cells = _Cells(len(self._split.factors))
        return self._split

    def _meet(self, cells: Numbers) -> None:
        """Find or make the atoms of cells seen for the first time. O(cells * K)."""
        truths = self._truths_of(cells)
        signatures = rows_as_bytes(truths)
        known = self._atom_of_signature
        fresh: list[int] = []
        for position, signature in enumerate(signatures):
            if signature not in known:
                known[signature] = self._allocate()
                fresh.append(position)
        self._reserve_atoms()
        atoms = np.array([known[signature] for signature in signatures], np.int32)
        self.truths[atoms[fresh]] = truths[fresh]
        kernels.link(cells, atoms, self._atom_of_cell, self._following, self._first)

    def _truths_of(self, cells: Numbers) -> npt.NDArray[np.int8]:
        """What every predicate is in the given cells, from what its units are there."""
        assert self._split is not None
        columns: dict[str, ColumnData] = {}
        classes = self._cells.classes(cells)
        for factor, names, met in zip(self._split.factors, self._split.names, classes, strict=True):
            said = factor.truths[met]
            for position, name in enumerate(names):
                unit = said[:, position]
                columns[name] = ColumnData(Kind.BOOLEAN, unit == 1, unit >= 0)
        table = Table(columns, len(cells))
        truths = np.empty((len(cells), len(self.predicates)), np.int8)
        for position, skeleton in enumerate(self._split.skeletons):
            truths[:, position] = truth(skeleton, table)
        return truths

    def _allocate(self) -> int:
        if self._free:
            return self._free.pop()
        self.atoms += 1
        return self.atoms - 1

    def _reserve_atoms(self) -> None:
        capacity = len(self._first)
        while capacity < self.atoms:
            capacity *= 2
        self._first = _extended(self._first, capacity, -1)
        if capacity > len(self.truths):
            truths = np.zeros((capacity, len(self.predicates)), np.int8)
            truths[: len(self.truths)] = self.truths
            self.truths = truths

    def _reserve_cells(self, cells: int) -> None:
        if cells > len(self._atom_of_cell):
            capacity = max(cells, 2 * len(self._atom_of_cell))
            self._atom_of_cell = _extended(self._atom_of_cell, capacity, -1)
            self._following = _extended(self._following, capacity, -1)

    def _forget_cells(self) -> None:
        """Cells are numbered afresh; atoms stay, and are found again by their signatures."""
        self._atom_of_cell = np.full(0, -1, np.int32)
        self._following = np.full(0, -1, np.int32)
        self._first.fill(-1)


def _extended(array: npt.NDArray[np.int32], length: int, filler: int) -> npt.NDArray[np.int32]:
    if length <= len(array):
        return array
    longer = np.full(length, filler, np.int32)
    longer[: len(array)] = array
    return longer
