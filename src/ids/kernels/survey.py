"""One look at a column before it is cut into digits."""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.kernels.compiling import compiled
from ids.kernels.threads import side_by_side

__all__ = ["ascending", "survey"]

_PART = 2**18


def survey(values: npt.NDArray[np.float64]) -> tuple[int, float, float]:
    """(first NaN or infinite value or -1, largest magnitude, smallest that is not 0 or 0).

    values  float64[n]

    O(n), in parts side by side.
    """
    starts = range(0, max(1, len(values)), _PART)
    found = list(side_by_side(lambda at: _survey(values[at : at + _PART]), starts))
    bad = [at + first for at, (first, _, _) in zip(starts, found, strict=True) if first >= 0]
    smallest = [small for _, _, small in found if small > 0.0]
    return (
        bad[0] if bad else -1,
        max(large for _, large, _ in found),
        min(smallest, default=0.0),
    )


def ascending(values: npt.NDArray[np.generic]) -> bool:
    """Whether no value is below the one before it. O(n), in parts side by side."""
    starts = range(0, max(1, len(values)), _PART)
    return all(side_by_side(lambda at: _ascending(values[at : at + _PART + 1]), starts))


@compiled()
def _ascending(values):
    disorder = 0
    for i in range(1, len(values)):
        disorder += not values[i] >= values[i - 1]  # NaN is in no order
    return disorder == 0


@compiled(error_model="numpy")
def _survey(values):
    """One part. NaN and infinity poison a sum of zeros, so the fast loop only sees that something
    is wrong; the slow one then finds where.
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
