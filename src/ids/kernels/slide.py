"""The slide loop: split values into digits, add them to summaries, insert and expire rows.

A window is two row indexes. Emit e includes the rows from ``expired[e]`` up to ``arrived[e]``.
Count and time windows, every slide and every key of PARTITION BY differ only in these two arrays.
A row belongs to one atom; an item is the sum of the atoms that it covers.

A summary is a row of int64 words (see ``ids.model.Scale``):

    word 0            m, the number of rows
    words 1 … D       Σ q_j, top digit first
    then 2 per pair   Σ q_i·q_j for i <= j, 128 bits each, low word first (degree >= 2)
    then              Σ (Σ_j (q_j - centre_j)·2**…)**d for d = 3 … degree, low word first

``layout`` is the nested tuple ``Scale.layout``. Its lengths are compile-time constants, so the
loops over digits are unrolled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ids.kernels.compiler import compiled, side_by_side
from ids.kernels.wide_numbers import add_words, mul_add, power_add
from ids.model import DIGIT_BITS, Layout

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


_RADIX = float(2**DIGIT_BITS)


@njit(inline="always")
def _cut_one(value, unit, layout, digits):
    """Split one value into digits, top first; ``value * unit`` must be in (-1, 1).

    digits  int64[D]  changed in place

    Each step is exact: rint keeps the top bits, and the subtraction leaves the rest.
    """
    rest = value * unit
    for j in range(len(layout[0])):
        rest *= _RADIX
        top = np.rint(rest)
        rest -= top
        digits[j] = np.int64(top)


@compiled()
def cut(values, unit, layout, digits):
    """Split every value of a column into digits.

    values  float64[n]
    unit    2**-exponent
    digits  int64[n, D]  changed in place

    O(n·D), allocates nothing. Reference: ``tests/oracles/recount.py``.
    """
    for i in range(len(values)):
        _cut_one(values[i], unit, layout, digits[i])


@njit(inline="always")
def accumulate(summaries, atom, digits, centre, scratch, layout, sign):
    """Add ``sign`` times one row to its atom's summary.

    summaries  int64[a, words]  changed in place
    digits     int64[D]         the row's digits
    centre     int64[D]         subtracted before computing powers 3 and higher
    scratch    int64[D]         for the centred digits
    sign       +1 inserted, -1 expired
    """
    count = len(layout[0])
    summaries[atom, 0] += sign
    for j in range(count):
        summaries[atom, 1 + j] += sign * digits[j]
    word = 1 + count
    if len(layout[1]) > 0:
        for i in range(count):
            signed = sign * digits[i]
            for j in range(i, count):
                low, high = mul_add(
                    summaries[atom, word], summaries[atom, word + 1], signed, digits[j]
                )
                summaries[atom, word] = low
                summaries[atom, word + 1] = high
                word += 2
    if len(layout[2]) > 0:
        for j in range(count):
            scratch[j] = digits[j] - centre[j]
        power_add(summaries, np.int64(atom), np.int64(word), scratch, layout, np.int64(sign))


class Rows(NamedTuple):
    """The rows in window order: ``atom`` uint32[n] and ``values`` float64[n]."""

    atom: npt.NDArray[np.uint32]
    values: npt.NDArray[np.float64]


class Bounds(NamedTuple):
    """The row bounds of each emit, both uint64[e] and ascending."""

    arrived: npt.NDArray[np.uint64]
    expired: npt.NDArray[np.uint64]


class Lists(NamedTuple):
    """One list of numbers per key, concatenated: list k is members[starts[k]:starts[k + 1]]."""

    starts: npt.NDArray[np.uint32]
    members: npt.NDArray[np.uint32]


class Cut(NamedTuple):
    """Parameters for ``cut``: 2**-exponent, the centre int64[max(1, D)] and ``Scale.layout``."""

    unit: float
    centre: npt.NDArray[np.int64]
    layout: Layout


@njit(inline="always")
def _move(summaries, rows, start, stop, cut, touched, digits, scratch, sign):
    for i in range(start, stop):
        _cut_one(rows.values[i], cut.unit, cut.layout, digits)
        atom = rows.atom[i]
        for k in range(touched.starts[atom], touched.starts[atom + 1]):
            accumulate(summaries, touched.members[k], digits, cut.centre, scratch, cut.layout, sign)


@njit(inline="always")
def _take(summaries, merged, item, layout, total, taken, e):
    """Copy an item's summary; if several summaries make it up, add them first."""
    words = 1 + len(layout[0]) + 2 * len(layout[1]) + len(layout[2]) * len(layout[3])
    first = merged.starts[item]
    stop = merged.starts[item + 1]
    if stop == first + 1:
        for w in range(words):
            taken[item, w, e] = summaries[merged.members[first], w]
        return
    total[:] = 0
    for k in range(first, stop):
        add_summary(total, summaries[merged.members[k]], layout)
    for w in range(words):
        taken[item, w, e] = total[w]


@compiled()
def replay(summaries, pointers, rows, cut, bounds, touched, merged, taken):
    """Process a block of emits; ``summaries`` and ``pointers`` are passed on to the next block.

    summaries  int64[s, words]     the exact sums of the current window; changed in place
    pointers   uint64[2]           rows arrived, rows expired so far; changed in place
    touched    Lists               the summaries that a row of each atom belongs to
    merged     Lists               the summaries that make up each item
    taken      int64[i, words, e]  out: the sums of each item at each emit

    O(rows · touched + emits · merged), allocates a few words.
    Reference: ``tests/oracles/recount.py``.
    """
    digits = np.zeros_like(cut.centre)
    scratch = np.zeros_like(cut.centre)
    total = np.zeros(summaries.shape[1], np.int64)
    came = pointers[0]
    went = pointers[1]
    for e in range(np.uint64(len(bounds.arrived))):
        if bounds.expired[e] >= came:
            # no row of the last window is left: skip the rows in between
            summaries[:] = 0
            came = bounds.expired[e]
            went = came
        _move(summaries, rows, came, bounds.arrived[e], cut, touched, digits, scratch, 1)
        _move(summaries, rows, went, bounds.expired[e], cut, touched, digits, scratch, -1)
        came = bounds.arrived[e]
        went = bounds.expired[e]
        for item in range(np.uint64(len(merged.starts) - 1)):
            _take(summaries, merged, item, cut.layout, total, taken, e)
    pointers[0] = came
    pointers[1] = went


@compiled()
def apply_signed(summaries, atom, digits, players, centre, layout, sign):
    """Add ``sign`` times each row to its atom's summary.

    summaries  int64[a, words]     changed in place
    atom       uint32[n]           row i's atom
    digits     int64[n, max(1,D)]  row i's digits
    players    bool[n or 0]        whether row i is a player (empty: every row is)
    centre     int64[max(1, D)]

    O(n), allocates a few words. Reference: ``tests/oracles/recount.py``.
    """
    scratch = np.zeros_like(centre)
    everyone = len(players) == 0
    for i in range(np.uint64(len(atom))):
        if everyone or players[i]:
            accumulate(summaries, atom[i], digits[i], centre, scratch, layout, sign)


@compiled()
def slide(summaries, atom, digits, window, centre, layout):
    """Slide a count window over a whole stream, one row at a time: |Δ| = 1 at every step.

    O(n) for any window size. The evaluation measures this loop.
    """
    scratch = np.zeros_like(centre)
    filled = np.uint64(min(window, len(atom)))
    for i in range(filled):
        accumulate(summaries, atom[i], digits[i], centre, scratch, layout, 1)
    for i in range(filled, np.uint64(len(atom))):
        gone = i - filled
        accumulate(summaries, atom[gone], digits[gone], centre, scratch, layout, -1)
        accumulate(summaries, atom[i], digits[i], centre, scratch, layout, 1)


@njit
def add_summary(total, summary, layout):
    """Compute ``total += summary``, both int64[words]."""
    plain = 1 + len(layout[0])
    for w in range(plain):
        total[w] += summary[w]
    for p in range(len(layout[1])):
        add_words(total, summary, plain + 2 * p, 2)
    start = plain + 2 * len(layout[1])
    for p in range(len(layout[2])):
        add_words(total, summary, start + p * len(layout[3]), len(layout[3]))


@compiled()
def merge_summaries(summaries, chosen, layout, total):
    """Add the chosen summaries to ``total`` (int64[words])."""
    for k in range(len(chosen)):
        add_summary(total, summaries[chosen[k]], layout)


@compiled()
def add_delta(delta, atoms, holds, layout, summaries, marginals, window):
    """Add a delta to the atoms, to the marginals of their predicates, and to the window.

    delta      int64[t, words]  one row per touched atom
    atoms      int64[t]         the touched atoms
    holds      bool[t, k]       whether predicate k holds on each of them
    summaries  int64[a, words], marginals int64[k, words], window int64[words]  changed in place

    O(touched atoms · K) for any number of rows in the delta.
    """
    for t in range(len(atoms)):
        atom = atoms[t]
        add_summary(summaries[atom], delta[t], layout)
        add_summary(window, delta[t], layout)
        for k in range(holds.shape[1]):
            if holds[t, k]:
                add_summary(marginals[k], delta[t], layout)


@compiled()
def add_rows(total, delta, layout):
    """Compute ``total += delta`` row by row, both int64[t, words]."""
    for t in range(len(delta)):
        add_summary(total[t], delta[t], layout)


@compiled()
def touched_rows(delta):
    """Return the indexes of the rows of a delta that are not all zero: int64[t], ascending.

    delta  int64[a, words]
    """
    found = np.empty(len(delta), np.int64)
    count = 0
    for row in range(len(delta)):
        for word in range(delta.shape[1]):
            if delta[row, word] != 0:
                found[count] = row
                count += 1
                break
    return found[:count].copy()


# Each addition to a sum waits for the previous one. Four sums in turn avoid the wait.
LANES = 4


@compiled()
def tally_places(summaries, places, digits, players, centre, layout, sign):
    """Add ``sign`` times the rows at ``places`` to the first summary, using the others as scratch.

    summaries  int64[LANES, words]  changed in place; all but the first are 0
    places     int64[m]             row positions
    digits     int64[n, max(1,D)]
    players    bool[n or 0]         whether a row is a player (empty: every row is)

    O(m) for any n. Reference: ``Summaries.tally``.
    """
    scratch = np.zeros_like(centre)
    everyone = len(players) == 0
    for i in range(np.uint64(len(places))):
        place = np.uint64(places[i])
        if everyone or players[place]:
            accumulate(
                summaries, i % np.uint64(LANES), digits[place], centre, scratch, layout, sign
            )
    for lane in range(1, LANES):
        add_summary(summaries[0], summaries[lane], layout)


_PART = 2**18


def survey(values: npt.NDArray[np.float64]) -> tuple[int, float, float]:
    """Return the index of the first NaN or infinite value, and the largest and smallest magnitudes.

    values  float64[n]

    The index is -1 if all values are finite. Zeros do not count for the smallest magnitude, which
    is 0 if there is no other value. O(n), in parallel.
    """
    if len(values) <= _PART:
        only: tuple[int, float, float] = _survey(values)
        return only
    starts = range(0, len(values), _PART)
    found = list(side_by_side(lambda at: _survey(values[at : at + _PART]), starts))
    bad = [at + first for at, (first, _, _) in zip(starts, found, strict=True) if first >= 0]
    smallest = [small for _, _, small in found if small > 0.0]
    return (
        bad[0] if bad else -1,
        max(large for _, large, _ in found),
        min(smallest, default=0.0),
    )


def ascending(values: npt.NDArray[np.generic]) -> bool:
    """Return whether no value is less than the one before it. O(n), in parallel."""
    if len(values) <= _PART:
        return bool(_ascending(values))
    starts = range(0, len(values), _PART)
    return all(side_by_side(lambda at: _ascending(values[at : at + _PART + 1]), starts))


@compiled()
def _ascending(values):
    disorder = 0
    for i in range(1, len(values)):
        disorder += not values[i] >= values[i - 1]  # NaN is never in order
    return disorder == 0


@compiled(error_model="numpy")
def _survey(values):
    """Survey one part.

    NaN and infinity turn a sum of zeros into NaN, so the fast loop detects them without branches.
    Only then does the slow loop look for the index.
    """
    largest = 0.0
    smallest = np.inf
    poison = 0.0
    for i in range(len(values)):
        magnitude = abs(values[i])
        poison += magnitude * 0.0
        largest = max(largest, magnitude)
        smallest = min(smallest, magnitude if magnitude > 0.0 else np.inf)
    first = -1
    if poison != 0.0:
        largest = 0.0
        smallest = np.inf
        for i in range(len(values)):
            magnitude = abs(values[i])
            if not np.isfinite(magnitude):
                first = i if first < 0 else first
                continue
            largest = max(largest, magnitude)
            smallest = min(smallest, magnitude if magnitude > 0.0 else np.inf)
    return first, largest, smallest if smallest < np.inf else 0.0
