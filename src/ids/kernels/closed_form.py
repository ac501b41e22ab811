"""Closed forms over exact sums: centring in integers and pairs, then one rounding.

    attribution = share + lift       share = m/N · v(W)       lift = Σ_d slope_d · deviation_d

From the exact sums of a window W and of a predicate P, a closed form needs

    mean           of W
    central_d      Σ_W (y - mean)**d                                  d = 2 … degree
    deviation_d    Σ_P (y - mean)**d  -  m/N · central_d              d = 1 … degree

Computed in doubles from raw sums, all of them cancel badly (mean 10**9, spread 10**-3). Here the
digits are first centred at the rounded mean of each digit, in integers. The rest is small, goes
through double-double arithmetic, and each result is rounded to a double once.

Third and higher powers are stored as multi-word integers, Σ (q - c)**d. About another centre k they
are Σ_i C(d, i)·(c - k)**(d - i)·Σ (q - c)**i, which cancels badly if c is far from k. This is
therefore computed in integers of the same width, modulo 2**(64·words), where two's complement
handles the signs. The result is small and is then converted to a pair.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from ids.kernels.compiler import compiled
from ids.kernels.wide_numbers import (
    add,
    add_words,
    append_word,
    deviation_of,
    divide,
    from_word,
    from_words,
    mean_of,
    mul_add,
    multiply,
    multiply_words,
    scale,
    times,
)
from ids.model import DIGIT_BITS, MAX_DIGITS

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


_RADIX = np.int64(2**DIGIT_BITS)
# The weight of digit j is _WEIGHT[j + 1]; a global tuple gives unrolled loops constants.
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

_step = njit(error_model="numpy")


@njit(inline="always")
def attribution(members, players, worth, worth_each, lift, total, additive):
    """Return (value, share) of a predicate; every kernel uses this closed form.

    worth       v(W); ``worth_each`` is v(W)/N
    total       Σ_P y, which is the value if the game is additive (SUM): the exact sum is rounded
                once, share + lift would be rounded three times

    A predicate that holds on every row gets exactly v(W). Reference: ``ids.games.attribute``.
    """
    share = worth if members == players else members * worth_each
    return (total if additive else share + lift), share


class Centred(NamedTuple):
    """The results of a block of emits; sums are in units of 2**exponent to the power summed.

    players     int64[e]                N, the window's players
    total       float64[e]              Σ y
    mean        float64[e]
    central     float64[degree + 1, e]  Σ (y - mean)**d
    members     int64[i, e]             m of each item
    item_total  float64[i, e]           Σ y of each item
    deviation   float64[degree, i, e]   deviation_d of each item
    rest        float64[e]              rounding error of the mean
    """

    players: npt.NDArray[np.int64]
    total: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float64]
    central: npt.NDArray[np.float64]
    members: npt.NDArray[np.int64]
    item_total: npt.NDArray[np.float64]
    deviation: npt.NDArray[np.float64]
    rest: npt.NDArray[np.float64]


@compiled(error_model="numpy")
def ask(window, items, row, centre, layout, weights):
    """Answer one question to a running engine: (value, share, lift) of summary ``items[row]``.

    window   int64[words]
    items    int64[k, words]
    weights  float64[7]  the factors of N, Σ y and the mean in the worth, and the divisor of
             Σ (y - mean)² (0: not used); then the slopes of the first two deviations, and the
             factor of Σ_P y if it is the value (SUM), else 0; all in the measure's own units

    Evaluates every game up to degree 2. Without players every result is 0.
    """
    count = window[0]
    own = items[row]
    if count == 0:
        return 0.0, 0.0, 0.0
    worth = weights[0] * count
    lift = total = 0.0
    if len(layout[0]) > 0:
        scratch = _scratch(centre, layout)
        whole, mean, residual = _centre_window(window, centre, layout, scratch)
        worth += weights[1] * (whole[0] + whole[1]) + weights[2] * (mean[0] + mean[1])
        part = _centre_item(own, count, mean, residual, centre, layout, scratch)
        total = (part[0] + part[1]) * weights[6]
        _, _, _, central, deviation = scratch
        lift = weights[4] * deviation[0]
        if len(layout[1]) > 0:
            if weights[3] != 0.0:
                worth += central[2] / weights[3]
            lift += weights[5] * deviation[1]
    additive = weights[6] != 0.0
    value, share = attribution(own[0], count, worth, worth / count, lift, total, additive)
    return value, share, lift


@compiled(error_model="numpy")
def centre_block(taken, centre, layout, emits):
    """Compute the window's moments and each item's deviations for every emit of a block.

    taken   int64[i + 1, words, e]  exact sums of the window (first) and of each item
    centre  int64[max(1, D)]        the scale's centre
    layout  ``Scale.layout``
    emits   Centred, filled in place (only the counts if the scale has no digits)

    O(e · i), allocates a few words. Reference: exact rationals in ``tests/oracles``.
    """
    degree = _degree_of(layout)
    scratch = _scratch(centre, layout)
    _, _, _, central, deviation = scratch
    for e in range(taken.shape[2]):
        count = taken[0, 0, e]
        emits.players[e] = count
        for k in range(len(emits.members)):
            emits.members[k, e] = taken[k + 1, 0, e]
        if degree == 0:
            continue
        if count == 0:  # no players: every sum is 0
            emits.total[e] = 0.0
            emits.mean[e] = 0.0
            emits.rest[e] = 0.0
            emits.central[:, e] = 0.0
            emits.item_total[:, e] = 0.0
            emits.deviation[:, :, e] = 0.0
            continue
        whole, mean, residual = _centre_window(taken[0, :, e], centre, layout, scratch)
        emits.total[e] = whole[0] + whole[1]
        emits.mean[e] = mean[0] + mean[1]
        emits.rest[e] = mean[1] - (emits.mean[e] - mean[0])
        for d in range(degree + 1):
            emits.central[d, e] = central[d]
        for k in range(len(emits.members)):
            own = taken[k + 1, :, e]
            part = _centre_item(own, count, mean, residual, centre, layout, scratch)
            emits.item_total[k, e] = part[0] + part[1]
            for d in range(degree):
                emits.deviation[d, k, e] = deviation[d]


@_step
def _degree_of(layout):
    """Return the highest power summed in this layout (0: rows are only counted)."""
    if len(layout[0]) == 0:
        return 0
    if len(layout[1]) == 0:
        return 1
    return 2 + len(layout[2])


@_step
def _scratch(centre, layout):
    """Allocate the arrays that ``_centre_window`` and ``_centre_item`` write to and reuse.

    offset       int64[D]             the digits used as centre
    window_sums  float64[degree, 2]   the window's power sums about ``offset``
    own_sums     float64[degree, 2]   an item's power sums about ``offset``
    central      float64[degree + 1]  Σ_W (y - mean)**d, d = 0 … degree
    deviation    float64[degree]      of an item, d = 1 … degree
    """
    degree = max(1, _degree_of(layout))
    sums, own = np.zeros((degree, 2)), np.zeros((degree, 2))
    return np.zeros_like(centre), sums, own, np.zeros(degree + 1), np.zeros(degree)


@_step
def _centre_window(window, centre, layout, scratch):
    """Centre a window: compute the means of its digits, its power sums and its central moments.

    window  int64[words]  exact sums, with at least one player
    centre  int64[D]      the scale's centre

    Returns three pairs: Σ y, the mean, and the residual mean (mean - offset).
    """
    offset, sums, _, central, _ = scratch
    count = window[0]
    rest = np.int64(0)
    for j in range(len(layout[0])):
        # carry the remainder of this digit's rounded mean to the next: the last is below one unit
        total = rest * _RADIX + window[1 + j]
        offset[j] = np.int64(np.rint(total / count))
        rest = total - offset[j] * count
    whole = _power_sums(window, centre, offset, layout, sums)
    residual = divide((sums[0, 0], sums[0, 1]), float(count))
    central[0] = count
    central[1] = 0.0
    for d in range(2, _degree_of(layout) + 1):
        central[d] = _about_mean((float(count), 0.0), residual, sums, d)
    return whole, mean_of(whole[0], whole[1], float(count)), residual


@_step
def _centre_item(own, count, mean, residual, centre, layout, scratch):
    """Compute the deviations of one predicate, in units of 2**(exponent·d); return Σ_P y as a pair.

    own       int64[words]  exact sums of the predicate
    count     int64         N, the window's players
    mean, residual          as returned by ``_centre_window``
    """
    offset, window_sums, sums, _, deviation = scratch
    part = _power_sums(own, centre, offset, layout, sums)
    players, members = float(count), float(own[0])
    degree = _degree_of(layout)
    for d in range(degree):
        fair = times((window_sums[d, 0], window_sums[d, 1]), -members)
        beyond = add(times((sums[d, 0], sums[d, 1]), players), fair)
        sums[d, 0], sums[d, 1] = divide(beyond, players)
    deviation[0] = deviation_of(part[0], part[1], members, mean[0], mean[1])
    for d in range(2, degree + 1):
        deviation[d - 1] = _about_mean((0.0, 0.0), residual, sums, d)
    return part


@_step
def _about_mean(whole, residual, sums, d):
    """Return Σ_i C(d, i)·(-residual)**(d-i)·P_i, rounded, by Horner's rule in -residual.

    whole  P_0 as a pair
    sums   float64[≥ d, 2]  P_1 … P_d, power sums about the offset
    """
    for i in range(1, d + 1):
        whole = multiply(whole, (-residual[0], -residual[1]))
        whole = add(whole, times((sums[i - 1, 0], sums[i - 1, 1]), _BINOMIAL[d, i]))
    return whole[0] + whole[1]


@_step
def _power_sums(total, centre, offset, layout, sums):
    """Compute Σ (y - offset)**d, d = 1 … degree, as pairs in units of 2**(exponent·d); return Σ y.

    total   int64[words]       exact sums
    centre  int64[D]           the scale's centre, about which powers 3 and higher are stored
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
        sums[1, 0], sums[1, 1] = _second_sum(total, offset, layout)
    if len(layout[2]) > 0:
        _higher_sums(total, centre, offset, layout, sums)
    for j in range(count):  # add back what centring removed
        first = add(first, scale(from_word(offset[j] * total[0]), _WEIGHT[j + 1]))
    return first


@_step
def _second_sum(total, offset, layout):
    """Return Σ (y - offset)**2: centre digit products exactly in 128 bits, then add as pairs."""
    count = len(layout[0])
    second = (0.0, 0.0)
    word = 1 + count
    for i in range(count):
        for j in range(i, count):
            low, high = _centred_product(total, word, i, j, offset)
            weight = _WEIGHT[2 + i + j] * (1.0 if i == j else 2.0)
            second = add(second, scale(append_word(from_word(high), low), weight))
            word += 2
    return second


@njit(inline="always")
def _centred_product(total, word, i, j, offset):
    """Return Σ (q_i - o_i)·(q_j - o_j) in 128 bits, from Σ q_i·q_j at index ``word``."""
    low, high = mul_add(total[word], total[word + 1], -offset[i], total[1 + j])
    return mul_add(low, high, -offset[j], total[1 + i] - offset[i] * total[0])


@njit
def _higher_sums(total, centre, offset, layout, sums):
    """Compute Σ (y - offset)**d, d = 3 … degree, as pairs in units of 2**(exponent·d).

    Arguments as in ``_power_sums``; rows 2, 3, … of ``sums`` are changed. O(degree² · words²),
    allocates a few words.
    """
    count = len(layout[0])
    width = len(layout[3])
    degree = 2 + len(layout[2])
    powers = np.zeros((degree + 1, width), np.int64)
    scratch = np.zeros(width, np.int64)
    shift = np.zeros(width, np.int64)
    _add_word(powers[0], total[0])
    for j in range(count):
        _scale_word(powers[1], _RADIX, scratch)
        _add_word(powers[1], total[1 + j] - total[0] * centre[j])
        _scale_word(shift, _RADIX, scratch)
        _add_word(shift, centre[j] - offset[j])
    _second_power(total, centre, layout, powers[2], scratch)
    start = 1 + count + 2 * len(layout[1])
    for p in range(len(layout[2])):
        powers[3 + p] = total[start + p * width : start + (p + 1) * width]
    moved = np.zeros(width, np.int64)
    term = np.zeros(width, np.int64)
    weight = _WEIGHT[count] * _WEIGHT[count]
    for d in range(3, degree + 1):
        weight *= _WEIGHT[count]
        moved[:] = powers[0]
        for i in range(1, d + 1):
            multiply_words(moved, shift)
            term[:] = powers[i]
            _scale_word(term, np.int64(_BINOMIAL[d, i]), scratch)
            add_words(moved, term, 0, width)
        sums[d - 1, 0], sums[d - 1, 1] = scale(from_words(moved, 0, width), weight)


@njit
def _second_power(total, centre, layout, number, scratch):
    """Compute Σ (q - c)²: digit products are grouped by weight, highest weight first."""
    count = len(layout[0])
    for weight in range(2 * count - 1):
        _scale_word(number, _RADIX, scratch)
        word = 1 + count
        for i in range(count):
            for j in range(i, count):
                if i + j == weight:
                    low, high = _centred_product(total, word, i, j, centre)
                    for _ in range(1 if i == j else 2):
                        scratch[:] = high >> 63
                        scratch[0] = low
                        scratch[1] = high
                        add_words(number, scratch, 0, len(number))
                word += 2


@njit
def _add_word(number, word):
    """Add a signed word to a multi-word integer."""
    scratch = np.full(len(number), word >> 63, np.int64)
    scratch[0] = word
    add_words(number, scratch, 0, len(number))


@njit
def _scale_word(number, factor, scratch):
    """Multiply a multi-word integer by a factor of one word."""
    scratch[:] = factor >> 63
    scratch[0] = factor
    multiply_words(number, scratch)
