"""Estimates of attributions: sums over rows drawn, part by part, and what bounds them."""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit

from ids.kernels.bounding import centred, half_width, horner, hull, logarithm
from ids.kernels.compiling import compiled
from ids.kernels.crossing import cross

__all__ = ["estimate_windows"]

# Two rows on either side: a slope to learn, and a spread to judge it by.
_HALVED = 4


@njit
def _tally(rows, first, last, mean, coefficient, sums):
    """Sums over the members among some rows: m, Σ y, Σ z, Σ z², … with z = y - mean (a pair).

    Returns Σ g and Σ (g - its mean)² over all these rows; g is 0 where no member is.
    """
    value, member = rows[1], rows[2]
    sums[:] = 0.0
    total = 0.0
    for i in range(first, last):
        if member[i]:
            z = centred(value[i], mean)
            sums[0] += 1.0
            sums[1] += value[i]
            power = 1.0
            for d in range(2, len(sums)):
                power *= z
                sums[d] += power
            total += horner(coefficient, z)
    if first == last:
        return 0.0, 0.0
    average = total / (last - first)
    squares = (last - first - sums[0]) * average * average
    for i in range(first, last):
        if member[i]:
            apart = horner(coefficient, centred(value[i], mean)) - average
            squares += apart * apart
    return total, squares


@njit
def _polynomial(e, form, additive, coefficient):
    """The coefficients of h about the mean, in window e."""
    players, mean, _, central, worth, slopes = form
    coefficient[:] = 0.0
    if not players[e] > 0.0:
        return
    if additive:  # a row's part is its value, and nothing is gained by adding it up from four terms
        coefficient[0] = mean[e]
        coefficient[1] = 1.0
        return
    coefficient[0] = worth[e] / players[e]
    for d in range(len(slopes)):
        coefficient[d + 1] = slopes[d, e]
        coefficient[0] -= slopes[d, e] * (central[d + 1, e] / players[e])


@njit
def _attribute(e, form, additive, sums, out):
    """Value, share and lift from sums over the members: the steps of ``ids.games.attribute``."""
    players, _, _, central, worth, slopes = form
    if not players[e] > 0.0:
        return
    share = worth[e] if sums[0] == players[e] else sums[0] * (worth[e] / players[e])
    lift = 0.0
    for d in range(len(slopes)):
        lift += slopes[d, e] * (sums[d + 2] - sums[0] * (central[d + 1, e] / players[e]))
    out[0, e] = sums[1] + 0.0 if additive else share + lift
    out[1, e] = share
    out[2, e] = lift


@njit
def _rows(drawn, k):
    return drawn[0][k + 1] - drawn[0][k]


@njit
def _exact(rows, population, replacement):
    return population == 1 or (rows >= population and not replacement)


@njit
def _sampled(parts, drawn, first, last, replacement):
    """How many parts of a window share its δ: those with rows drawn, but not all."""
    count = 0
    for k in range(first, last):
        rows = _rows(drawn, k)
        if rows > 0 and not _exact(rows, parts[1][k], replacement):
            count += 1
    return count


@njit
def _add_part(k, parts, drawn, mean, coefficient, logs, how, sums, own):
    """Add part k's sums, expanded to its population; returns its error and its variance."""
    population, rows, replacement = parts[1][k], _rows(drawn, k), how[1]
    if population <= 0:
        return 0.0, 0.0
    left, right = centred(parts[2][k], mean), centred(parts[3][k], mean)
    low, high = hull(coefficient, left, right, 0.0, 0.0)
    if rows == 0:
        worst = population * max(high, -low)
        return worst, worst * worst
    total, squares = _tally(drawn, drawn[0][k], drawn[0][k + 1], mean, coefficient, own)
    sums += own * (population / rows)
    if _exact(rows, population, replacement):
        return 0.0, 0.0
    average = total / rows
    # one row tells nothing of the spread: at most it is half the range
    variance = 0.25 * (high - low) ** 2
    if rows > 1:
        variance = squares / (rows - 1)
        if not replacement:
            variance *= 1.0 - rows / population
    width = half_width(
        average, sqrt(squares / max(rows - 1, 1)), low, high, rows, population, logs, *how
    )
    return population * width, population * (population * variance / rows)


@njit
def _is_the_rest(e, first, last, parts, drawn, whole, form):
    """Whether window e is one part and the rows taken whole: then the part's own totals are known.

    Fewer rows than players: strata were left out, and who knows their totals?
    """
    held = whole[0][e + 1] - whole[0][e]
    return (
        last == first + 1
        and _rows(drawn, first) >= _HALVED
        and 0.0 < form[0][e] <= held + parts[1][first]
    )


@compiled()
def estimate_windows(parts, drawn, whole, form, additive, odds, how, control, out):
    """Estimate an attribution at each window, in the order of the rows given.

    parts    window int64[p] ascending, population int64[p], low float64[p], high float64[p]
    drawn    starts int64[p+1], value float64[n], member bool[n], plays bool[n or 0]
    whole    starts int64[w+1], and the rest alike
    form     players, mean, rest float64[w], central float64[>degree, w], worth float64[w],
             slopes float64[degree, w]
    odds     2/δ, and 10/δ or 4/δ: their logarithms are what ``half_width`` takes
    how      bernstein, replacement
    control  how many of z, z² to lean on (0: no control variate)
    out      float64[5, w]  value, share, lift, error, standard error; zeros

    O(rows + parts + windows), allocates a few words. Twin: ``tests/estimates/twin.py``.
    """
    degree = len(form[5])
    coefficient = np.zeros(degree + 1)
    sums, own = np.zeros(degree + 2), np.zeros(degree + 2)
    first = 0
    for e in range(out.shape[1]):
        last = first
        while last < len(parts[0]) and parts[0][last] == e:
            last += 1
        mean = form[1][e], form[2][e]
        _polynomial(e, form, additive, coefficient)
        _tally(whole, whole[0][e], whole[0][e + 1], mean, coefficient, sums)
        split = _sampled(parts, drawn, first, last, how[1])
        if control and split == 1 and _is_the_rest(e, first, last, parts, drawn, whole, form):
            found = cross(e, first, parts, drawn, whole, form, coefficient, odds, how, control)
            _attribute(e, form, additive, sums, out)
            share = found[0] * (form[4][e] / form[0][e])
            out[0, e] += share + found[1]
            out[1, e] += share
            out[2, e] += found[1]
            out[3, e] = found[2]
            out[4, e] = sqrt(found[3])
        else:
            logs = logarithm(odds[0] * max(split, 1)), logarithm(odds[1] * max(split, 1))
            variance = 0.0
            for k in range(first, last):
                error, square = _add_part(k, parts, drawn, mean, coefficient, logs, how, sums, own)
                out[3, e] += error
                variance += square
            out[4, e] = sqrt(variance)
            _attribute(e, form, additive, sums, out)
        first = last
