"""What an estimate is made of, and what it is: rows drawn, rows taken whole, parts, estimates.

A window is divided into the rows taken whole and into parts. Each part stands for ``population``
rows of the window, of which some were drawn. Without strata a window has one part.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Drawn", "Estimates", "Parts", "Whole"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


class Drawn(NamedTuple):
    """The rows drawn, part by part, within a part in the order of drawing (by priority).

    starts  int64[p+1]   part k's rows are starts[k] … starts[k+1]-1
    value   float64[n]   y, in the units of the moments; any number where the row does not play
    member  bool[n]      whether the predicate holds and the row plays
    plays   bool[n]      whether y is not NULL (None: every row plays); only a control variate asks
    """

    starts: Integers
    value: Floats
    member: Booleans
    plays: Booleans | None = None


class Whole(NamedTuple):
    """The rows taken whole, window by window; fields as in ``Drawn``, ``starts`` int64[w+1]."""

    starts: Integers
    value: Floats
    member: Booleans
    plays: Booleans | None = None

    @classmethod
    def none(cls, windows: int = 1) -> Whole:
        """No row taken whole in any of the windows."""
        return cls(np.zeros(windows + 1, np.int64), np.zeros(0), np.zeros(0, np.bool_))


class Parts(NamedTuple):
    """What the rows drawn stand for.

    window      int64[p]    which window a part belongs to, ascending
    population  int64[p]    rows of the window that the part stands for, drawn or not, NULL or not,
                            those taken whole left out
    low, high   float64[p]  bounds on y of every player in that population (low > high: no players)
    """

    window: Integers
    population: Integers
    low: Floats
    high: Floats


class Estimates(NamedTuple):
    """An attribution at each window, estimated; every field float64[w].

    value, share, lift  without bias; value = share + lift
    error               |value - exact| is no more than this, at the confidence asked for
    standard_error      the estimate's standard deviation, as far as the sample tells
    """

    value: Floats
    share: Floats
    lift: Floats
    error: Floats
    standard_error: Floats
