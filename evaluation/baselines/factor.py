"""The AVG game's λ(N), which every baseline reads from the same table."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Columns = dict[str, npt.NDArray[Any]]


def lift_factors(window: int) -> npt.NDArray[np.float64]:
    """λ(N) = H_{N−1}/(N−1) for N = 0…window (λ(0) = λ(1) = 1, where nothing deviates)."""
    factors = np.ones(window + 1)
    before = np.arange(1.0, window)
    factors[2:] = np.cumsum(1.0 / before) / before
    return factors
