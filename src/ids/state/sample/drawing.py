"""A drawing: the rows of one sample of the window, ready to be put a predicate to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids.model.table import Table

__all__ = ["Drawing"]


class Drawing(NamedTuple):
    """Rows taken whole, then rows drawn, part by part (a stratum is a part).

    rows         raw columns: first those taken whole, then each part's, highest priority first
    whole        how many are taken whole: each stands for itself
    starts       int64[p+1]   where a part's rows start, behind those taken whole
    population   int64[p]     rows of the window a part stands for, those taken whole left out
    value        float64[n]   y of each row (0 for COUNT(*))
    plays        bool[n]      whether a row is a player
    low, high    bounds on y of the players that are not taken whole (0 where there is none)
    complete     every row of the window is here, taken whole: the answer is exact
    replacement  a row may have been drawn more than once
    strata       the strata's columns, one row a part; None without strata
    """

    rows: Table
    whole: int
    starts: npt.NDArray[np.int64]
    population: npt.NDArray[np.int64]
    value: npt.NDArray[np.float64]
    plays: npt.NDArray[np.bool_]
    low: float
    high: float
    complete: bool
    replacement: bool
    strata: Table | None
