"""One look at a column before it is cut into digits."""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np

from ids.kernels.compiling import compiled

__all__ = ["survey"]


@compiled(error_model="numpy")
def survey(values):
    """(first NaN or infinite value or -1, largest magnitude, smallest that is not 0 or 0).

    values  float64[n]

    O(n), allocates nothing. NaN and infinity poison a sum of zeros, so the fast loop only sees
    that something is wrong; the slow one then finds where.
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
