"""A control variate without bias: each half of a sample is judged by what the other half learnt.

The totals of z and z² over the window are exact, z = y - mean. Fit g by a line (a parabola) in z on
one half A of the rows drawn. Given A, the other half B is a uniform sample of the rows outside A,
whose totals of z and z² are known as well, so

    Σ_A g  +  rows outside A · mean over B of (g - fit)  +  Σ of the fit outside A

has no bias, whatever was learnt from A. Both ways round, and the mean of the two.

All of it is linear in g = v(W)/N · m + lift, so members and lift are estimated each by itself, and
neither is the small difference of two large numbers.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

from math import sqrt

import numpy as np
from numba import njit

from ids.kernels.bounding import centred, half_width, horner, hull, logarithm

__all__ = ["cross"]


@njit
def _look(y, member, plays, mean, unit, lift):
    """A row: u = z·unit and u² (0 where it does not play), its lift, and whether it is a member."""
    z = centred(y, mean)
    u = z * unit if plays else 0.0
    if member:
        return u, u * u, horner(lift, z), 1.0
    return u, u * u, 0.0, 0.0


@njit
def _totals(rows, first, last, mean, unit, lift):
    """Σ u, Σ u², the lift and m of some rows."""
    _, value, member, plays = rows
    everyone = len(plays) == 0
    u = v = g = m = 0.0
    for i in range(first, last):
        row = _look(value[i], member[i], everyone or plays[i], mean, unit, lift)
        u, v, g, m = u + row[0], v + row[1], g + row[2], m + row[3]
    return u, v, g, m


@njit
def _fit(rows, first, last, mean, unit, lift, control, totals):
    """Least squares of the lift and of m on u (and u²): the slopes of the lift, then those of m."""
    _, value, member, plays = rows
    everyone = len(plays) == 0
    n = last - first
    u, v, g, m = totals[0] / n, totals[1] / n, totals[2] / n, totals[3] / n
    uu = uv = vv = gu = gv = mu = mv = 0.0
    for i in range(first, last):
        row = _look(value[i], member[i], everyone or plays[i], mean, unit, lift)
        a, b = row[0] - u, row[1] - v
        uu, uv, vv = uu + a * a, uv + a * b, vv + b * b
        gu, gv = gu + a * (row[2] - g), gv + b * (row[2] - g)
        mu, mv = mu + a * (row[3] - m), mv + b * (row[3] - m)
    if not uu > 0.0:
        return (0.0, 0.0), (0.0, 0.0)
    across = uu * vv - uv * uv
    if control < 2 or not across > 1e-9 * uu * vv:  # all but one line: the parabola is not seen
        return (gu / uu, 0.0), (mu / uu, 0.0)
    return (
        ((gu * vv - gv * uv) / across, (gv * uu - gu * uv) / across),
        ((mu * vv - mv * uv) / across, (mv * uu - mu * uv) / across),
    )


@njit
def _residuals(rows, first, last, mean, unit, lift, base, fit):
    """The means of lift - fit and of m - fit, and the sum of squares of g - fit about its mean."""
    _, value, member, plays = rows
    everyone = len(plays) == 0
    n = last - first
    of_lift, of_m = fit
    lifts = members = squares = 0.0
    for i in range(first, last):
        u, v, g, m = _look(value[i], member[i], everyone or plays[i], mean, unit, lift)
        lifts += g - of_lift[0] * u - of_lift[1] * v
        members += m - of_m[0] * u - of_m[1] * v
    lifts, members = lifts / n, members / n
    for i in range(first, last):
        u, v, g, m = _look(value[i], member[i], everyone or plays[i], mean, unit, lift)
        apart = g - of_lift[0] * u - of_lift[1] * v - lifts
        apart += base * (m - of_m[0] * u - of_m[1] * v - members)
        squares += apart * apart
    return lifts, members, squares


@njit
def _range(coefficient, slopes, unit, left, right):
    """What g - fit may be: on members, on other players, and 0 on rows that do not play."""
    other = np.zeros(3)
    other[1], other[2] = -slopes[0] * unit, -slopes[1] * (unit * unit)
    inside = np.zeros(max(len(coefficient), 3))
    inside[: len(coefficient)] = coefficient
    inside[:3] += other
    low, high = hull(other, left, right, 0.0, 0.0)
    return hull(inside, left, right, low, high)


@njit
def _lift_of(e, form, coefficient):
    """The coefficients of a member's lift, and what each member has as its share."""
    lift = coefficient.copy()
    lift[0] = 0.0
    for d in range(len(form[5])):
        lift[0] -= form[5][d, e] * (form[3][d + 1, e] / form[0][e])
    return lift, form[4][e] / form[0][e]


@njit
def cross(e, k, parts, drawn, whole, form, coefficient, odds, how, control):
    """Part k, the only one of window e: estimated members and lift, the error and variance of g.

    Arguments as in ``estimate_windows``. O(rows), allocates a few words.
    """
    mean, central, population = (form[1][e], form[2][e]), form[3], parts[1][k]
    left, right = centred(parts[2][k], mean), centred(parts[3][k], mean)
    lift, base = _lift_of(e, form, coefficient)
    reach = max(abs(left), abs(right))
    unit = 1.0 / reach if 0.0 < reach < np.inf else 1.0
    # the population's own totals: the window's less those of the rows taken whole
    gone = _totals(whole, whole[0][e], whole[0][e + 1], mean, unit, lift)
    all_u = central[1, e] * unit - gone[0]
    all_v = central[2, e] * (unit * unit) - gone[1] if control > 1 else 0.0
    middle = (drawn[0][k] + drawn[0][k + 1]) // 2
    # either way round has half of δ
    logs = logarithm(2.0 * odds[0]), logarithm(2.0 * odds[1])
    members = lifts = error = squares = 0.0
    for way in range(2):
        a, b = (drawn[0][k], middle), (middle, drawn[0][k + 1])
        if way:
            a, b = b, a
        learnt = _totals(drawn, a[0], a[1], mean, unit, lift)
        fit = _fit(drawn, a[0], a[1], mean, unit, lift, control, learnt)
        average, hold, apart = _residuals(drawn, b[0], b[1], mean, unit, lift, base, fit)
        rest = population - (a[1] - a[0])
        taken = learnt
        if how[1]:  # with replacement the other half is drawn from all rows
            rest, taken = population, (0.0, 0.0, 0.0, 0.0)
        of_lift, of_m = fit
        u, v = all_u - taken[0], all_v - taken[1]
        lifts += 0.5 * (taken[2] + rest * average + of_lift[0] * u + of_lift[1] * v)
        members += 0.5 * (taken[3] + rest * hold + of_m[0] * u + of_m[1] * v)
        rows = b[1] - b[0]
        of_g = of_lift[0] + base * of_m[0], of_lift[1] + base * of_m[1]
        low, high = _range(coefficient, of_g, unit, left, right)
        width = half_width(
            average + base * hold, sqrt(apart / (rows - 1)), low, high, rows, rest, logs, *how
        )
        error += 0.5 * (rest * width)
        squares += apart
    rows = drawn[0][k + 1] - drawn[0][k]
    remain = 1.0 if how[1] else 1.0 - rows / population
    variance = population * (population * remain * (squares / (rows - 2)) / rows)
    return members, lifts, error, variance
