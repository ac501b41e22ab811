"""One question to a running engine: a single closed form, without the cost of a block."""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np

from ids.kernels.central import degree_of, deviations, power_sums, total_of, window_moments
from ids.kernels.compiling import compiled
from ids.kernels.pairs import deviation_of, mean_of

__all__ = ["ask"]


@compiled(error_model="numpy")
def ask(window, items, row, centre, layout, weights):
    """One question put to a running engine: (value, share, lift) of summary ``items[row]``.

    window   int64[words]
    items    int64[k, words]
    weights  float64[7]  what N, Σ y and the mean weigh in the worth, and what Σ (y - mean)² is
             divided by (0: it has no part); then the slopes of the first two deviations, and what
             Σ_P y weighs in the value where it alone is the value (SUM), else 0; own units

    The closed form of every game up to degree 2; with no player everything is 0.
    """
    count = window[0]
    members = items[row, 0]
    if count == 0:
        return 0.0, 0.0, 0.0
    worth = weights[0] * count
    lift = 0.0
    own_total = (0.0, 0.0)
    degree = degree_of(layout)
    if degree > 0:
        offset = np.zeros_like(centre)
        window_sums = np.zeros((degree, 2))
        own_sums = np.zeros((degree, 2))
        moments = np.zeros(degree + 1)
        deviation = np.zeros(degree)
        residual = window_moments(window, centre, layout, offset, window_sums, moments)
        whole = total_of(window, offset, layout, window_sums)
        mean = mean_of(whole[0], whole[1], float(count))
        worth += weights[1] * (whole[0] + whole[1]) + weights[2] * (mean[0] + mean[1])
        own = items[row]
        power_sums(own, centre, offset, layout, own_sums)
        own_total = total_of(own, offset, layout, own_sums)
        deviations(count, window_sums, members, residual, layout, own_sums, deviation)
        first = deviation_of(own_total[0], own_total[1], float(members), mean[0], mean[1])
        lift = weights[4] * first
        if degree > 1:
            if weights[3] != 0.0:
                worth += moments[2] / weights[3]
            lift += weights[5] * deviation[1]
    share = worth if members == count else members * (worth / count)
    value = share + lift
    if weights[6] != 0.0:
        value = (own_total[0] + own_total[1]) * weights[6]
    return value, share, lift
