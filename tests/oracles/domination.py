"""Domination: the rows that a sliding sample must still hold, by counting all newer ones."""

from __future__ import annotations

import numpy as np

__all__ = ["undominated"]


def undominated(priority: np.ndarray, size: int) -> list[bool]:
    """A row stays while fewer than ``size`` newer rows are as high. O(rows²)."""
    return [
        sum(bool(newer >= one) for newer in priority[i + 1 :]) < size
        for i, one in enumerate(priority)
    ]
