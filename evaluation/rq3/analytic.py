"""The bytes that a configuration needs, worked out on paper.

What is counted are the rows and sums that the design keeps, not the room to spare that arrays are
given so that a row need not move at every slide: that, and whatever is needed for a moment only,
is what a measurement shows on top.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from evaluation.rq3.configurations import (
    ENDPOINTS,
    PREDICATES,
    REGIONS,
    TIERS,
    Configuration,
)
from ids.model.sampling import Sampling
from ids.model.scale import Scale

__all__ = ["ATOMS", "DIGITS", "Bytes", "analytic", "survivors"]

ATOMS = 6
DIGITS = 2  # a latency of 53 bits, within seventeen octaves: two digits of 35
_DEGREE = 2

_WORD, _CODE, _FLAG, _PLACE = 8, 4, 1, 2
_TEXTS = {"region": REGIONS, "tier": TIERS, "endpoint": ENDPOINTS}
_BLOCK, _SMALLEST = 65_536, 1_024  # rows of the largest block of an index, and of the smallest
_SMALLER = 16  # about as many smaller blocks stand behind the large ones
_ENTRY = _WORD + 4  # a key of a directory, and where it begins
_FEW, _SLACK = 4_096, 3  # a sample is swept once it holds that many rows, or times what stayed


@dataclass(frozen=True)
class Bytes:
    """Bytes by component."""

    summaries: float
    retained: float
    index: float
    sample: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.summaries + self.retained + self.index + self.sample


def analytic(configuration: Configuration, window: int) -> Bytes:
    """What a configuration needs for a window of so many rows."""
    sampling = configuration.sampling
    return Bytes(
        _summaries(),
        window * _row(sampled=sampling is not None) if configuration.retains else 0,
        _index(window) if configuration.indexed else 0,
        _sample(sampling, window) if sampling is not None else 0,
    )


def _summaries() -> float:
    """The sums of the window, of each predicate and of each atom.

    A summary of the measure is a count, a sum for each digit and two words for each product of two
    digits: 1 + 2 + 2 · 3 = 9 words. COUNT(*) counts every row, NULL or not, in one more. An atom
    has its signature besides, a byte for each predicate, and three entries of four bytes in the
    tables that lead from a row to it.
    """
    summary = (Scale(0, DIGITS, _DEGREE).words + Scale(0, 0, 0).words) * _WORD
    found = len(PREDICATES) + 3 * _CODE
    return (1 + len(PREDICATES) + ATOMS) * summary + ATOMS * found


def _columns() -> int:
    """A raw row: codes of three texts and a double, each with a flag that says it is not NULL."""
    return len(_TEXTS) * (_CODE + _FLAG) + _WORD + _FLAG


def _row(*, sampled: bool) -> int:
    """A retained row: its atom, the measure's digits and whether it plays, and the raw columns.

    A sample needs to know which rows left, and has each row's number and stratum kept.
    """
    return _CODE + DIGITS * _WORD + _FLAG + _columns() + (_WORD + _CODE if sampled else 0)


def _index(window: int) -> float:
    """Two bytes a row and column, and a directory of the distinct values for each block."""
    blocks = window // _BLOCK + min(_SMALLER, window // _SMALLEST)
    distinct = sum(map(len, _TEXTS.values()))
    return len(_TEXTS) * _PLACE * window + blocks * distinct * _ENTRY


def _sample(sampling: Sampling, window: int) -> float:
    """Rows that may yet be drawn, and up to twice as many that wait for the next sweep.

    A row has its columns, its stratum, number and priority, the measure and whether it plays.
    """
    strata = len(REGIONS) if sampling.strata else 1
    drawn = strata * survivors(sampling.size + 2 * sampling.taken_whole, window / strata)
    extreme = 2 * survivors(sampling.taken_whole, window)
    rows = min(window, max(_FEW, _SLACK * (drawn + extreme)))
    return rows * (_columns() + _CODE + 3 * _WORD + _FLAG)


def survivors(size: int, window: float) -> float:
    """Of ``window`` rows, how many are among the ``size`` highest of themselves and all newer ones.

    The newest ``size`` are, and the j-th newest with probability size / j: their sum is about
    size · (1 + ln(window / size)).
    """
    return window if window <= size else size * (1 + log(window / size))
