"""How far the mean of rows drawn may be from the mean of all: ranges and half-widths."""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

from math import frexp, inf, isfinite, sqrt

import numpy as np
from numba import njit

__all__ = ["centred", "half_width", "horner", "hull", "logarithm"]

# Bardenet & Maillard 2015, Theorem 4.3
KAPPA = 7.0 / 3.0 + 3.0 / sqrt(2.0)


@njit
def centred(y, mean):
    """Y - mean, for a mean given as the rounded one and what it misses."""
    return (y - mean[0]) - mean[1]


@njit
def horner(coefficient, z):
    """Σ_d coefficient[d] · z**d."""
    value = coefficient[-1]  # where that is all, z may be NaN: COUNT(*) has no values
    for d in range(len(coefficient) - 2, -1, -1):
        value = value * z + coefficient[d]
    return value


@njit
def _root(slope, left, right):
    """Where a polynomial that changes its sign once between the two ends does so."""
    rising = horner(slope, left) < 0.0
    while True:
        middle = left + (right - left) * 0.5
        if middle <= left or middle >= right:
            return middle
        if (horner(slope, middle) < 0.0) == rising:
            left = middle
        else:
            right = middle


@njit
def _derived(coefficient, times):
    """The coefficients of a derivative."""
    found = coefficient.copy()
    for _ in range(times):
        for d in range(1, len(found)):
            found[d - 1] = d * found[d]
        found = found[:-1]
    return found


@njit
def _turns(coefficient, left, right):
    """Where a polynomial may turn: between the turns of its derivatives it is monotonic.

    The derivative of the highest order is a line; each lower one has at most one root between two
    neighbouring roots of the one above. Includes both ends.
    """
    degree = len(coefficient) - 1
    knots = np.array([left, right])
    for order in range(degree - 1, 0, -1):
        slope = _derived(coefficient, order)
        found = np.empty(len(knots) + degree)
        found[0] = left
        count = 1
        for k in range(len(knots) - 1):
            ends = horner(slope, knots[k]), horner(slope, knots[k + 1])
            if (ends[0] < 0.0) != (ends[1] < 0.0):
                found[count] = _root(slope, knots[k], knots[k + 1])
                count += 1
        found[count] = right
        knots = found[: count + 1].copy()
    return knots


@njit
def hull(coefficient, left, right, low, high):
    """Widen [low, high] by all that a polynomial takes between ``left`` and ``right``.

    Nothing lies between where left > right. O(degree²) bisections above degree 2.
    """
    degree = len(coefficient) - 1
    while degree > 0 and coefficient[degree] == 0.0:
        degree -= 1
    if degree == 0:
        return min(low, coefficient[0]), max(high, coefficient[0])
    if not left <= right:
        return low, high
    if not (isfinite(left) and isfinite(right)):
        return -inf, inf
    if degree <= 2:
        turn = left
        if degree == 2:
            turn = min(max(-0.5 * coefficient[1] / coefficient[2], left), right)
        for z in (left, turn, right):
            value = horner(coefficient, z)
            low, high = min(low, value), max(high, value)
        return low, high
    for z in _turns(coefficient[: degree + 1], left, right):
        value = horner(coefficient, z)
        low, high = min(low, value), max(high, value)
    return low, high


@njit
def logarithm(x):
    """Ln x of + - * / alone: a library's last bit differs from one platform to the next.

    By 2·atanh((f - 1)/(f + 1)) on x = f·2**k, f in [0.7, 1.42].
    """
    fraction, exponent = frexp(x)
    if fraction < 0.70710678118654752440:
        fraction, exponent = fraction * 2.0, exponent - 1
    s = (fraction - 1.0) / (fraction + 1.0)
    series = 0.0
    for odd in range(23, 1, -2):
        series = (series + 1.0 / odd) * (s * s)
    return exponent * 0.69314718055994530942 + (2.0 * s * series + 2.0 * s)


@njit
def half_width(mean, deviation, low, high, rows, population, logs, bernstein, replacement):
    """How far the mean of ``rows`` numbers in [low, high] may be from the mean of ``population``.

    deviation  the sample's standard deviation
    logs       log(2/δ) for Hoeffding, log(10/δ) (log(4/δ) with replacement) for Bernstein: both
               sides, each with half of δ

    Hoeffding (Serfling's without replacement), or empirical Bernstein: Maurer & Pontil's with
    replacement, Bardenet & Maillard's without. Where rows are so few that the Bernstein bound would
    be the wider one even if nothing varied, Hoeffding's stands: rows, range and population settle
    that, not what was drawn, so nothing is added to δ. And never more than what is certain.
    Twin: ``tests/estimates/twin.py``.
    """
    spread = high - low
    fraction = rows / population
    left = 1.0  # what of the variance drawing without replacement leaves
    sure = max(high - mean, mean - low)
    if not replacement:
        left = 1.0 - (rows - 1) / population
        if 2 * rows > population:
            left = (1.0 - fraction) * (1.0 + 1.0 / rows)
        sure *= 1.0 - fraction  # the rows drawn are known
    found = spread * sqrt(left * logs[0] / (2.0 * rows))
    if bernstein and rows > 1:
        if replacement:
            tail = 7.0 * spread * logs[1] / (3.0 * (rows - 1))
        else:
            tail = KAPPA * spread * logs[1] / rows
        if tail < found:
            found = deviation * sqrt(2.0 * left * logs[1] / rows) + tail
    return min(found, sure)
