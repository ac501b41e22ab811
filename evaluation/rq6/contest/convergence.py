"""How many permutations an error takes, from the errors of fewer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["TARGET", "Trend", "trend"]

TARGET = 0.01


class Trend(NamedTuple):
    """A line through the logarithms.

    slope         of the error in the number of permutations; −½ for independent ones
    needed        permutations to reach ``TARGET``, extrapolated along the line
    seconds       what so many take, at the cost of one in the largest run
    """

    slope: float
    needed: float
    seconds: float


def trend(rows: Sequence[Mapping[str, Any]]) -> Trend:
    """Of the rows of one window and one aggregate."""
    number = np.array([row["permutations"] for row in rows], dtype=np.float64)
    errors = np.array([row["error"] for row in rows])
    slope, height = np.polyfit(np.log(number), np.log(errors), 1)
    needed = float(np.exp((np.log(TARGET) - height) / slope))
    largest = max(rows, key=lambda row: int(row["permutations"]))
    each = largest["seconds"].median / largest["permutations"]
    return Trend(float(slope), needed, needed * each)
