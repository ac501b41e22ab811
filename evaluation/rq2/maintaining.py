"""The two ways to have a window's summaries after every slide, both compiled.

*Incremental*: the rows that left are subtracted and those that came are added. *Per-window scan*:
all rows inside are added up afresh. Both leave the same integers in the same table. It has a row
for each live atom; where all that Algorithm 1 keeps is kept, also one for each predicate's marginal
and one for the window, which are sums of atoms.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from evaluation.rq2.stream import Prepared
from ids.kernels.compiling import compiled
from ids.kernels.digits import accumulate
from ids.kernels.scatter import add_summary

__all__ = ["ATOMS", "EVERYTHING", "Maintained", "Words"]

Words = npt.NDArray[np.int64]

ATOMS = "atoms"
EVERYTHING = "atoms, marginals, window"


class _Beyond(NamedTuple):
    """The rows that an atom is part of beside its own: from ``starts[atom]`` on, to the next."""

    starts: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Maintained:
    """A window of ``window`` rows that slides ``step`` rows at a time over a prepared stream.

    kept  ``ATOMS``, or ``EVERYTHING`` that Algorithm 1 keeps
    """

    prepared: Prepared
    window: int
    step: int
    kept: str

    def incremental(self, slides: int) -> Callable[[], Words]:
        """So many slides, from the first full window on; the table after the last of them."""
        first, beyond = self.scan(0)(), self._beyond()
        kernel = self._kernel
        table = first.copy()

        def work() -> Words:
            table[:] = first
            kernel(table, beyond, *self._stream(0), self.window, self.step, slides, *self._scale)
            return table

        return work

    def scan(self, slides: int, before: int = 0) -> Callable[[], Words]:
        """The windows of the same slides from number ``before`` + 1 on, each scanned whole.

        With no slide at all it is the first window that is scanned.
        """
        table = np.zeros((self._rows, self.prepared.scale.words), np.int64)
        beyond, stream = self._beyond(), self._stream((before + bool(slides)) * self.step)

        def work() -> Words:
            _scanned(table, beyond, *stream, self.window, self.step, max(1, slides), *self._scale)
            return table

        return work

    @property
    def _kernel(self) -> Callable[..., None]:
        """Many rows at once are summed by atom before marginals and the window are touched."""
        if self.kept == ATOMS:
            return _by_atom
        return _merged if self.step > 1 else _one_by_one

    @property
    def _rows(self) -> int:
        live, count = self.prepared.holds.shape
        return live + count + 1 if self.kept == EVERYTHING else live

    @property
    def _scale(self) -> tuple[Words, object]:
        return self.prepared.centre, self.prepared.scale.layout

    def _stream(self, first: int) -> tuple[npt.NDArray[np.uint32], Words]:
        return self.prepared.atoms[first:], self.prepared.digits[first:]

    def _beyond(self) -> _Beyond:
        live, count = self.prepared.holds.shape
        found: list[list[int]] = [[] for _ in range(live)]
        if self.kept == EVERYTHING:
            found = [[*(live + np.flatnonzero(h)), live + count] for h in self.prepared.holds]
        starts = np.cumsum([0, *map(len, found)]).astype(np.int64)
        return _Beyond(starts, np.array([row for rows in found for row in rows], np.int64))


# A row's sign is a constant wherever these are called: the loops are compiled for each sign.


@njit(inline="always")
def _add(table, atom, digits, first, step, centre, scratch, layout, sign):
    for i in range(np.uint64(first), np.uint64(first + step)):
        accumulate(table, atom[i], digits[i], centre, scratch, layout, sign)


@njit(inline="always")
def _add_beyond(table, beyond, atom, digits, first, step, centre, scratch, layout, sign):
    for i in range(np.uint64(first), np.uint64(first + step)):
        a = np.uint64(atom[i])
        accumulate(table, a, digits[i], centre, scratch, layout, sign)
        for p in range(np.uint64(beyond.starts[a]), np.uint64(beyond.starts[a + np.uint64(1)])):
            row = np.uint64(beyond.rows[p])
            accumulate(table, row, digits[i], centre, scratch, layout, sign)


@compiled()
def _by_atom(table, _, atom, digits, window, step, slides, centre, layout):
    """Each row goes to its atom: ``ids.kernels.scatter.slide`` for steps of any length."""
    scratch = np.zeros_like(centre)
    for t in range(slides):
        gone, come = t * step, t * step + window
        _add(table, atom, digits, gone, step, centre, scratch, layout, -1)
        _add(table, atom, digits, come, step, centre, scratch, layout, 1)


@compiled()
def _one_by_one(table, beyond, atom, digits, window, step, slides, centre, layout):
    """Each row goes to its atom, and to every row beyond."""
    scratch = np.zeros_like(centre)
    for t in range(slides):
        gone, come = t * step, t * step + window
        _add_beyond(table, beyond, atom, digits, gone, step, centre, scratch, layout, -1)
        _add_beyond(table, beyond, atom, digits, come, step, centre, scratch, layout, 1)


@compiled()
def _merged(table, beyond, atom, digits, window, step, slides, centre, layout):
    """The rows of a slide go to a delta by atom, as in the engine, and that goes to the table."""
    scratch = np.zeros_like(centre)
    live = len(beyond.starts) - 1
    delta = np.zeros((live, table.shape[1]), np.int64)
    touched = np.zeros(live, np.bool_)
    for t in range(slides):
        gone, come = t * step, t * step + window
        _add(delta, atom, digits, gone, step, centre, scratch, layout, -1)
        _add(delta, atom, digits, come, step, centre, scratch, layout, 1)
        for first in (gone, come):
            for i in range(first, first + step):
                touched[atom[i]] = True
        for a in range(live):
            if touched[a]:
                add_summary(table[a], delta[a], layout)
                for p in range(beyond.starts[a], beyond.starts[a + 1]):
                    add_summary(table[beyond.rows[p]], delta[a], layout)
                delta[a] = 0
                touched[a] = False


@compiled()
def _scanned(table, beyond, atom, digits, window, step, windows, centre, layout):
    """Each window by atom, and the atoms to what they are part of; the table of the last one.

    Returns a sum over what all of them found, so that none can be left out as useless.
    """
    scratch = np.zeros_like(centre)
    found = 0
    for t in range(windows):
        table[:] = 0
        first = np.uint64(t * step)
        for i in range(first, first + np.uint64(window)):
            accumulate(table, np.uint64(atom[i]), digits[i], centre, scratch, layout, 1)
        for a in range(len(beyond.starts) - 1):
            for p in range(beyond.starts[a], beyond.starts[a + 1]):
                add_summary(table[beyond.rows[p]], table[a], layout)
        found += table[0, 0] + table[0, 1]
    return found
