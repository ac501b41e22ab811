"""Summaries to central deviations: the one delicate step, done on integers and pairs.

With the exact sums of a window W and of a predicate P in hand, what a closed form needs is

    mean           of W
    central_d      Σ_W (y - mean)**d                                  d = 2 … degree
    deviation_d    Σ_P (y - mean)**d  -  m/N · central_d              d = 1 … degree

All of them cancel badly when computed in doubles from raw sums (mean 10**9, spread 10**-3). Here
the digits are first centred at the rounded mean of each digit, in integers; the rest, now small,
goes through double-double arithmetic, and each result is rounded to a double once.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ids.kernels.compiling import compiled
from ids.kernels.pairs import (
    add,
    deviation_of,
    divide,
    from_word,
    mean_of,
    multiply,
    scale,
    times,
)
from ids.kernels.powers import recentre_powers
from ids.kernels.wide import mul_add
from ids.model.scale import DIGIT_BITS, MAX_DIGITS

__all__ = [
    "Centred",
    "centre_block",
    "degree_of",
    "deviations",
    "power_sums",
    "total_of",
    "window_moments",
]


class Centred(NamedTuple):
    """What a block of emits yields; sums are in units of 2**exponent (to the power summed).

    players     int64[e]                N, the window's players
    total       float64[e]              Σ y
    mean        float64[e]
    central     float64[degree + 1, e]  Σ (y - mean)**d
    members     int64[i, e]             m of each item
    item_total  float64[i, e]           Σ y of each item
    deviation   float64[degree, i, e]   deviation_d of each item
    rest        float64[e]              what the rounded mean misses
    """

    players: npt.NDArray[np.int64]
    total: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float64]
    central: npt.NDArray[np.float64]
    members: npt.NDArray[np.int64]
    item_total: npt.NDArray[np.float64]
    deviation: npt.NDArray[np.float64]
    rest: npt.NDArray[np.float64]


_RADIX = np.int64(2**DIGIT_BITS)

_inline = njit(error_model="numpy")
# A digit j weighs _WEIGHT[j + 1]; a global tuple, so that unrolled loops see constants.
_WEIGHT = tuple(2.0 ** (-DIGIT_BITS * k) for k in range(2 * MAX_DIGITS + 1))
_BINOMIAL = np.array(
    [
        [1, 0, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0, 0],
        [1, 2, 1, 0, 0, 0, 0],
        [1, 3, 3, 1, 0, 0, 0],
        [1, 4, 6, 4, 1, 0, 0],
        [1, 5, 10, 10, 5, 1, 0],
        [1, 6, 15, 20, 15, 6, 1],
    ],
    dtype=np.float64,
)


@_inline
def degree_of(layout):
    """The highest power summed under this layout (0: rows are only counted)."""
    if len(layout[0]) == 0:
        return 0
    if len(layout[1]) == 0:
        return 1
    return 2 + len(layout[2])


@_inline
def power_sums(total, centre, offset, layout, sums):
    """Σ (y - offset)**d for d = 1 … degree, as pairs in units of 2**exponent.

    total   int64[words]       exact sums
    centre  int64[D]           the scale's centre, about which powers of 3 and more are kept
    offset  int64[D]           digits to centre at
    sums    float64[degree,2]  changed in place
    """
    count = len(layout[0])
    first = (0.0, 0.0)
    for j in range(count):
        rest = from_word(total[1 + j] - total[0] * offset[j])
        first = add(first, scale(rest, _WEIGHT[j + 1]))
    sums[0, 0], sums[0, 1] = first
    if len(layout[1]) > 0:
        sums[1, 0], sums[1, 1] = _second(total, offset, layout)
    if len(layout[2]) > 0:
        recentre_powers(total, centre, offset, layout, sums)


@_inline
def _second(total, offset, layout):
    """Σ (y - offset)**2: products of digits centred exactly in 128 bits, then added as pairs."""
    count = len(layout[0])
    second = (0.0, 0.0)
    word = 1 + count
    for i in range(count):
        for j in range(i, count):
            low, high = mul_add(total[word], total[word + 1], -offset[i], total[1 + j])
            low, high = mul_add(low, high, -offset[j], total[1 + i] - offset[i] * total[0])
            pair = _pair_of(low, high)
            weight = _WEIGHT[2 + i + j] * (1.0 if i == j else 2.0)
            second = add(second, scale(pair, weight))
            word += 2
    return second


@_inline
def _pair_of(low, high):
    unsigned = add(
        (float((low >> 32) & 0xFFFFFFFF) * 4294967296.0, 0.0), (float(low & 0xFFFFFFFF), 0.0)
    )
    return add(scale(from_word(high), 18446744073709551616.0), unsigned)


@_inline
def total_of(total, offset, layout, sums):
    """Σ y as a pair in units of 2**exponent: what was centred away, put back."""
    whole = (sums[0, 0], sums[0, 1])
    for j in range(len(layout[0])):
        removed = from_word(offset[j] * total[0])
        whole = add(whole, scale(removed, _WEIGHT[j + 1]))
    return whole


@_inline
def window_moments(total, centre, layout, offset, sums, central):
    """Centre a whole window: its digits' means, its power sums, its central moments.

    total    int64[words]            the window's exact sums
    centre   int64[D]                the scale's centre
    offset   int64[D]                out: the digits centred at
    sums     float64[degree, 2]      out: power sums about ``offset``
    central  float64[degree + 1]     out: Σ (y - mean)**d, d = 0 … degree

    Returns the residual mean (mean - offset) as a pair.
    """
    count = total[0]
    rest = np.int64(0)
    for j in range(len(layout[0])):
        # what one digit's rounded mean leaves goes down to the next: less than a lowest digit stays
        whole = rest * _RADIX + total[1 + j]
        offset[j] = np.int64(np.rint(whole / count))
        rest = whole - offset[j] * count
    power_sums(total, centre, offset, layout, sums)
    residual = divide((sums[0, 0], sums[0, 1]), float(count))
    central[0] = count
    central[1] = 0.0
    for d in range(2, degree_of(layout) + 1):
        whole = (float(count), 0.0)
        for i in range(1, d + 1):
            # Horner in (-residual): Σ_i C(d, i)·(-residual)**(d-i)·P_i, highest power of it first
            whole = multiply(whole, (-residual[0], -residual[1]))
            whole = add(whole, times((sums[i - 1, 0], sums[i - 1, 1]), _BINOMIAL[d, i]))
        central[d] = whole[0] + whole[1]
    return residual


@_inline
def deviations(count, window_sums, members, residual, layout, sums, deviation):
    """deviation_d of one predicate, d = 1 … degree, in units of 2**exponent to the d.

    count        int64              N, the window's players
    window_sums  float64[degree,2]  the window's power sums about its offset
    members      int64              m, the predicate's players
    residual     pair               mean - offset
    sums         float64[degree,2]  the predicate's power sums about that offset; spent here
    deviation    float64[degree]    changed in place
    """
    players = float(count)
    degree = degree_of(layout)
    for d in range(degree):
        own = times((sums[d, 0], sums[d, 1]), players)
        average = times((window_sums[d, 0], window_sums[d, 1]), -float(members))
        sums[d, 0], sums[d, 1] = divide(add(own, average), players)
    for d in range(1, degree + 1):
        whole = (0.0, 0.0)
        for i in range(1, d + 1):
            whole = multiply(whole, (-residual[0], -residual[1]))
            whole = add(whole, times((sums[i - 1, 0], sums[i - 1, 1]), _BINOMIAL[d, i]))
        deviation[d - 1] = whole[0] + whole[1]


@compiled(error_model="numpy")
def centre_block(taken, centre, layout, emits):
    """Every emit of a block: the window's moments, and each item's deviations from them.

    taken   int64[i + 1, words, e]  exact sums of the window (first) and of each item
    centre  int64[max(1, D)]        the scale's centre
    layout  ``Scale.layout``
    emits   filled in place (for a scale without digits only the counts)

    O(e · i), allocates a few words. Twin: exact rationals in ``tests/oracles``.
    """
    degree = degree_of(layout)
    offset = np.zeros_like(centre)
    window_sums = np.zeros((max(1, degree), 2))
    own_sums = np.zeros((max(1, degree), 2))
    moments = np.zeros(degree + 1)
    deviation = np.zeros(max(1, degree))
    for e in range(taken.shape[2]):
        count = taken[0, 0, e]
        emits.players[e] = count
        for k in range(len(emits.members)):
            emits.members[k, e] = taken[k + 1, 0, e]
        if degree == 0:
            continue
        if count == 0:
            _nothing(emits, e)
            continue
        window = taken[0, :, e]
        residual = window_moments(window, centre, layout, offset, window_sums, moments)
        whole = total_of(window, offset, layout, window_sums)
        emits.total[e] = whole[0] + whole[1]
        mean = mean_of(whole[0], whole[1], float(count))
        emits.mean[e] = mean[0] + mean[1]
        emits.rest[e] = mean[1] - (emits.mean[e] - mean[0])
        for d in range(degree + 1):
            emits.central[d, e] = moments[d]
        for k in range(len(emits.members)):
            own = taken[k + 1, :, e]
            power_sums(own, centre, offset, layout, own_sums)
            whole = total_of(own, offset, layout, own_sums)
            emits.item_total[k, e] = whole[0] + whole[1]
            deviations(count, window_sums, own[0], residual, layout, own_sums, deviation)
            deviation[0] = deviation_of(whole[0], whole[1], float(own[0]), mean[0], mean[1])
            for d in range(degree):
                emits.deviation[d, k, e] = deviation[d]


@_inline
def _nothing(emits, e):
    """A window without players: every sum is 0."""
    emits.total[e] = 0.0
    emits.mean[e] = 0.0
    emits.rest[e] = 0.0
    emits.central[:, e] = 0.0
    emits.item_total[:, e] = 0.0
    emits.deviation[:, :, e] = 0.0
