"""Estimates of attributions from sampled rows, and bounds on their errors.

``_half_width`` bounds the distance between the mean of the rows drawn and the mean of all rows. In
a window with one part, an unbiased control variate makes the bound tighter. It uses cross-fitting:
each half of the sample is evaluated with a fit from the other half. The totals of z and z² over the
window are exact, z = y - mean. Fit g by a line (or parabola) in z on one half A of the rows drawn.
Given A, the other half B is a uniform sample of the rows outside A, whose totals of z and z² are
also known. Therefore

    Σ_A g  +  rows outside A · mean over B of (g - fit)  +  Σ of the fit outside A

is unbiased for any fit on A. This is done with A and B in both roles, and the two results are
averaged.

All steps are linear in g = v(W)/N · m + lift. Members and lift are therefore estimated separately,
and neither is the small difference of two large numbers.
"""

from __future__ import annotations

from math import frexp, inf, isfinite, sqrt

import numpy as np
from numba import njit

from ids.kernels.closed_form import attribution
from ids.kernels.compiler import compiled

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"


# Bardenet & Maillard 2015, Theorem 4.3
_KAPPA = 7.0 / 3.0 + 3.0 / sqrt(2.0)


@njit
def _centred(y, mean):
    """Return y - mean, where the mean is (rounded mean, rounding error)."""
    return (y - mean[0]) - mean[1]


@njit
def _horner(coefficient, z):
    """Return Σ_d coefficient[d] · z**d."""
    value = coefficient[-1]  # with one coefficient z may be NaN: COUNT(*) has no values
    for d in range(len(coefficient) - 2, -1, -1):
        value = value * z + coefficient[d]
    return value


@njit
def _root(slope, left, right):
    """Return the root of a polynomial that changes sign once between the two ends."""
    rising = _horner(slope, left) < 0.0
    while True:
        middle = left + (right - left) * 0.5
        if middle <= left or middle >= right:
            return middle
        if (_horner(slope, middle) < 0.0) == rising:
            left = middle
        else:
            right = middle


@njit
def _derived(coefficient, times):
    """Return the coefficients of the derivative of order ``times``."""
    found = coefficient.copy()
    for _ in range(times):
        for d in range(1, len(found)):
            found[d - 1] = d * found[d]
        found = found[:-1]
    return found


@njit
def _turns(coefficient, left, right):
    """Return points between which a polynomial is monotonic, including both ends.

    The derivative of the highest order is a line. Each lower derivative has at most one root
    between two adjacent roots of the next higher one.
    """
    degree = len(coefficient) - 1
    knots = np.array([left, right])
    for order in range(degree - 1, 0, -1):
        slope = _derived(coefficient, order)
        found = np.empty(len(knots) + degree)
        found[0] = left
        count = 1
        for k in range(len(knots) - 1):
            ends = _horner(slope, knots[k]), _horner(slope, knots[k + 1])
            if (ends[0] < 0.0) != (ends[1] < 0.0):
                found[count] = _root(slope, knots[k], knots[k + 1])
                count += 1
        found[count] = right
        knots = found[: count + 1].copy()
    return knots


@njit
def hull(coefficient, left, right, low, high):
    """Widen [low, high] to cover a polynomial's values between ``left`` and ``right``.

    The interval is empty if left > right. O(degree²) bisections above degree 2.
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
            value = _horner(coefficient, z)
            low, high = min(low, value), max(high, value)
        return low, high
    for z in _turns(coefficient[: degree + 1], left, right):
        value = _horner(coefficient, z)
        low, high = min(low, value), max(high, value)
    return low, high


@njit
def logarithm(x):
    """Return ln x, computed with + - * / only: library functions differ in the last bit.

    Uses 2·atanh((f - 1)/(f + 1)) with x = f·2**k, f in [0.7, 1.42].
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
def _half_width(mean, deviation, low, high, rows, population, logs, bernstein, replacement):
    """Bound the distance of the mean of ``rows`` numbers in [low, high] from the population's mean.

    deviation  the sample's standard deviation
    logs       log(2/δ) for Hoeffding, log(10/δ) (log(4/δ) with replacement) for Bernstein; the
               bounds are two-sided, with half of δ for each side

    Uses Hoeffding (Serfling without replacement) or empirical Bernstein: Maurer & Pontil with
    replacement, Bardenet & Maillard without. With so few rows that the Bernstein bound would be
    wider even for a variance of 0, it uses Hoeffding. This choice depends on the number of rows,
    the range and the population, not on the values drawn, so δ need not be split. The result never
    exceeds the largest possible distance. Reference: ``tests/games/textbook_estimate.py``.
    """
    spread = high - low
    fraction = rows / population
    left = 1.0  # the factor that drawing without replacement leaves of the variance
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
            tail = _KAPPA * spread * logs[1] / rows
        if tail < found:
            found = deviation * sqrt(2.0 * left * logs[1] / rows) + tail
    return min(found, sure)


@njit
def _look(y, member, plays, mean, unit, lift):
    """Return u = z·unit and u² (0 if y is NULL), the lift, and 1.0 for a member, else 0.0."""
    z = _centred(y, mean)
    u = z * unit if plays else 0.0
    if member:
        return u, u * u, _horner(lift, z), 1.0
    return u, u * u, 0.0, 0.0


@njit
def _totals(rows, first, last, mean, unit, lift):
    """Return Σ u, Σ u², the lift and m over a range of rows."""
    _, value, member, plays = rows
    everyone = len(plays) == 0
    u = v = g = m = 0.0
    for i in range(first, last):
        row = _look(value[i], member[i], everyone or plays[i], mean, unit, lift)
        u, v, g, m = u + row[0], v + row[1], g + row[2], m + row[3]
    return u, v, g, m


@njit
def _fit(rows, first, last, mean, unit, lift, control, totals):
    """Fit lift and m by least squares on u (and u²); return the slopes of the lift, then of m."""
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
    if control < 2 or not across > 1e-9 * uu * vv:  # nearly collinear: fit only a line
        return (gu / uu, 0.0), (mu / uu, 0.0)
    return (
        ((gu * vv - gv * uv) / across, (gv * uu - gu * uv) / across),
        ((mu * vv - mv * uv) / across, (mv * uu - mu * uv) / across),
    )


@njit
def _residuals(rows, first, last, mean, unit, lift, base, fit):
    """Return the means of lift - fit and m - fit, and Σ (g - fit - its mean)²."""
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
    """Return the range of g - fit over members, other players, and NULLs (where it is 0)."""
    other = np.zeros(3)
    other[1], other[2] = -slopes[0] * unit, -slopes[1] * (unit * unit)
    inside = np.zeros(max(len(coefficient), 3))
    inside[: len(coefficient)] = coefficient
    inside[:3] += other
    low, high = hull(other, left, right, 0.0, 0.0)
    return hull(inside, left, right, low, high)


@njit
def _lift_of(e, form, coefficient):
    """Return the coefficients of a member's lift, and the share of one member."""
    lift = coefficient.copy()
    lift[0] = 0.0
    for d in range(len(form.slopes)):
        lift[0] -= form.slopes[d, e] * (form.central[d + 1, e] / form.players[e])
    return lift, form.worth[e] / form.players[e]


@njit
def _cross(e, k, parts, drawn, whole, form, coefficient, odds, how, control):
    """Estimate members and lift of part k, the only part of window e, with a control variate.

    Returns (members, lift, error of g, variance of g). Arguments as in ``estimate_windows``.
    O(rows), allocates a few words.
    """
    mean, central, population = (form.mean[e], form.rest[e]), form.central, parts.population[k]
    left, right = _centred(parts.low[k], mean), _centred(parts.high[k], mean)
    lift, base = _lift_of(e, form, coefficient)
    extent = max(abs(left), abs(right))
    unit = 1.0 / extent if 0.0 < extent < np.inf else 1.0
    # totals of the population: those of the window minus those of the rows known exactly
    gone = _totals(whole, whole.starts[e], whole.starts[e + 1], mean, unit, lift)
    all_u = central[1, e] * unit - gone[0]
    all_v = central[2, e] * (unit * unit) - gone[1] if control > 1 else 0.0
    middle = (drawn.starts[k] + drawn.starts[k + 1]) // 2
    # half of δ for each of the two roles
    logs = logarithm(2.0 * odds[0]), logarithm(2.0 * odds[1])
    members = lifts = error = squares = 0.0
    for way in range(2):
        a, b = (drawn.starts[k], middle), (middle, drawn.starts[k + 1])
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
        width = _half_width(
            average + base * hold, sqrt(apart / (rows - 1)), low, high, rows, rest, logs, *how
        )
        error += 0.5 * (rest * width)
        squares += apart
    rows = drawn.starts[k + 1] - drawn.starts[k]
    remain = 1.0 if how[1] else 1.0 - rows / population
    variance = population * (population * remain * (squares / (rows - 2)) / rows)
    return members, lifts, error, variance


# At least two rows per half: for a slope, and for a variance.
_HALVED = 4


@njit
def _tally(rows, first, last, mean, coefficient, sums):
    """Compute m, Σ y, Σ z, Σ z², … over the members in a range of rows, z = y - mean (a pair).

    Returns Σ g and Σ (g - mean of g)² over all rows in the range; g is 0 for non-members.
    """
    sums[:] = 0.0
    total = 0.0
    for i in range(first, last):
        if rows.member[i]:
            z = _centred(rows.value[i], mean)
            sums[0] += 1.0
            sums[1] += rows.value[i]
            power = 1.0
            for d in range(2, len(sums)):
                power *= z
                sums[d] += power
            total += _horner(coefficient, z)
    if first == last:
        return 0.0, 0.0
    average = total / (last - first)
    squares = (last - first - sums[0]) * average * average
    for i in range(first, last):
        if rows.member[i]:
            apart = _horner(coefficient, _centred(rows.value[i], mean)) - average
            squares += apart * apart
    return total, squares


@njit
def _polynomial(e, form, additive, coefficient):
    """Write the coefficients of h about the mean of window e."""
    players, mean, _, central, worth, slopes = form
    coefficient[:] = 0.0
    if not players[e] > 0.0:
        return
    if additive:  # a row contributes its value, which needs no sum of four terms
        coefficient[0] = mean[e]
        coefficient[1] = 1.0
        return
    coefficient[0] = worth[e] / players[e]
    for d in range(len(slopes)):
        coefficient[d + 1] = slopes[d, e]
        coefficient[0] -= slopes[d, e] * (central[d + 1, e] / players[e])


@njit
def _attribute(e, form, additive, sums, out):
    """Write value, share and lift, computed from the sums over the members."""
    players, worth = form.players[e], form.worth[e]
    if not players > 0.0:
        return
    lift = 0.0
    for d in range(len(form.slopes)):
        lift += form.slopes[d, e] * (sums[d + 2] - sums[0] * (form.central[d + 1, e] / players))
    total = sums[1] + 0.0
    value, share = attribution(sums[0], players, worth, worth / players, lift, total, additive)
    out[0, e] = value
    out[1, e] = share
    out[2, e] = lift


@njit
def _rows(drawn, k):
    return drawn.starts[k + 1] - drawn.starts[k]


@njit
def _exact(rows, population, replacement):
    return population == 1 or (rows >= population and not replacement)


@njit
def _sampled(parts, drawn, first, last, replacement):
    """Count the parts of a window that share its δ: those with some but not all rows drawn."""
    count = 0
    for k in range(first, last):
        rows = _rows(drawn, k)
        if rows > 0 and not _exact(rows, parts.population[k], replacement):
            count += 1
    return count


@njit
def _add_part(k, parts, drawn, mean, coefficient, logs, how, sums, own):
    """Add the sums of part k, scaled up to its population; return its error and its variance."""
    population, rows, replacement = parts.population[k], _rows(drawn, k), how[1]
    if population <= 0:
        return 0.0, 0.0
    left, right = _centred(parts.low[k], mean), _centred(parts.high[k], mean)
    low, high = hull(coefficient, left, right, 0.0, 0.0)
    if rows == 0:
        worst = population * max(high, -low)
        return worst, worst * worst
    total, squares = _tally(drawn, drawn.starts[k], drawn.starts[k + 1], mean, coefficient, own)
    sums += own * (population / rows)
    if _exact(rows, population, replacement):
        return 0.0, 0.0
    average = total / rows
    # the variance of one row is unknown, but at most a quarter of the squared range
    variance = 0.25 * (high - low) ** 2
    if rows > 1:
        variance = squares / (rows - 1)
        if not replacement:
            variance *= 1.0 - rows / population
    width = _half_width(
        average, sqrt(squares / max(rows - 1, 1)), low, high, rows, population, logs, *how
    )
    return population * width, population * (population * variance / rows)


@njit
def _is_the_rest(e, first, last, parts, drawn, whole, form):
    """Return whether window e has one part besides the rows known exactly.

    The totals of that part are then known, too. If the window has more players than these rows,
    some strata were left out, and their totals are unknown.
    """
    held = whole.starts[e + 1] - whole.starts[e]
    return (
        last == first + 1
        and _rows(drawn, first) >= _HALVED
        and 0.0 < form.players[e] <= held + parts.population[first]
    )


@compiled()
def estimate_windows(parts, drawn, whole, form, additive, odds, how, control, out):
    """Estimate an attribution in each window; sums are taken in the order of the given rows.

    parts    Parts: window int64[p] ascending, population int64[p], low and high float64[p]
    drawn    Drawn: starts int64[p+1], value float64[n], member bool[n], plays bool[n or 0]
    whole    Drawn, with starts int64[w+1]
    form     players, mean, rest float64[w], central float64[>degree, w], worth float64[w],
             slopes float64[degree, w]
    odds     2/δ, and 10/δ or 4/δ; ``_half_width`` takes their logarithms
    how      bernstein, replacement
    control  number of control variates among z, z² (0: none)
    out      float64[5, w]  value, share, lift, error, standard error; zeros

    O(rows + parts + windows), allocates a few words.
    Reference: ``tests/games/textbook_estimate.py``.
    """
    degree = len(form.slopes)
    coefficient = np.zeros(degree + 1)
    sums, own = np.zeros(degree + 2), np.zeros(degree + 2)
    first = 0
    for e in range(out.shape[1]):
        last = first
        while last < len(parts.window) and parts.window[last] == e:
            last += 1
        mean = form.mean[e], form.rest[e]
        _polynomial(e, form, additive, coefficient)
        _tally(whole, whole.starts[e], whole.starts[e + 1], mean, coefficient, sums)
        split = _sampled(parts, drawn, first, last, how[1])
        if control and split == 1 and _is_the_rest(e, first, last, parts, drawn, whole, form):
            found = _cross(e, first, parts, drawn, whole, form, coefficient, odds, how, control)
            _attribute(e, form, additive, sums, out)
            share = found[0] * (form.worth[e] / form.players[e])
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
