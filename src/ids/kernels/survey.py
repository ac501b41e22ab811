"""One look at a column before it is cut into digits."""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np

from ids.kernels.compiling import compiled

__all__ = ["survey"]


@compiled()
def survey(values):
    """(index of the first NaN or infinite value or -1, largest magnitude of the finite ones).

    values  float64[n]

    O(n), allocates nothing. NaN fails every comparison, so the fast loop only sees that
    something is wrong; the slow one then finds where.
    """
    largest = 0.0
    poison = 0.0
    for i in range(len(values)):
        magnitude = abs(values[i])
        poison += magnitude * 0.0
        largest = max(largest, magnitude)
    if poison == 0.0:
        return -1, largest
    first = -1
    largest = 0.0
    for i in range(len(values)):
        if np.isfinite(values[i]):
            largest = max(largest, abs(values[i]))
        elif first < 0:
            first = i
    return first, largest
