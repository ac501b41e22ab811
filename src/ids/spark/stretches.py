"""A key's rows cut into stretches for tasks of their own, from a histogram of the order alone.

    buckets   ▁▃▅▂▁▂▄▆▃▁▂▃▅▂     rows of a key, by the first ORDER BY column, ascending
    stretch 0 └─own─┘
    stretch 1    └halo┘└─own─┘    the halo: rows before its own that its first windows reach

Counts are exact, hence so is the rank of every stretch's first row; nothing is sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ids.model.window import CountWindow

__all__ = ["Part", "cut", "end_of", "halo_of", "last_alone", "stairs", "target_of"]

Counts = npt.NDArray[np.int64]

_FEWEST = 100_000  # rows that are worth a task of their own
_MOST = 500_000  # rows that a task holds in memory without anybody noticing
_TASKS = 16


@dataclass(frozen=True, slots=True)
class Part:
    """One stretch of a key.

    first, start, stop  buckets: the halo is ``first`` to ``start``, its own ``start`` to ``stop``
    base                rows of the key before the halo
    halo                rows of the halo
    """

    first: int
    start: int
    stop: int
    base: int
    halo: int


def halo_of(window: CountWindow) -> int:
    """How many rows before a row may matter to it: its window, and the one a slide before."""
    return window.size + window.slide


def target_of(rows: int, halo: int) -> int:
    """How many rows a stretch should have of its own; a halo costs it a quarter more at most."""
    return max(4 * halo, min(_MOST, max(_FEWEST, rows // _TASKS)))


def cut(counts: Counts, target: int, halo: int, old: int = 0) -> list[Part]:
    """Cut at the borders of buckets, so that each part has about ``target`` rows of its own.

    The first ``old`` rows are only looked back at: buckets of these alone are no part's own.
    """
    before = np.concatenate([[0], np.cumsum(counts)])
    total = int(before[-1]) - old
    target = -(-total // max(1, round(total / target)))  # of about equal length
    parts: list[Part] = []
    start = int(np.searchsorted(before, old, side="right")) - 1 if old else 0
    while start < len(counts):
        stop = int(np.searchsorted(before, before[start] + target, side="left"))
        stop = min(max(stop, start + 1), len(counts))
        parts.append(_part(before, start, stop, halo))
        start = stop
    return parts


def last_alone(counts: Counts, slide: int, halo: int) -> list[Part]:
    """The one part that holds the key's last emit; none if it never speaks."""
    before = np.concatenate([[0], np.cumsum(counts)])
    emit = int(before[-1]) // slide * slide
    if emit == 0:
        return []
    start = int(np.searchsorted(before, emit, side="left")) - 1
    return [_part(before, start, len(counts), halo)]


def end_of(counts: Counts, halo: int) -> Part:
    """A part without rows of its own, after all of them: its halo is what rows to come look at."""
    before = np.concatenate([[0], np.cumsum(counts)])
    return _part(before, len(counts), len(counts), halo)


def _part(before: Counts, start: int, stop: int, halo: int) -> Part:
    wanted = max(int(before[start]) - halo, 0)
    first = min(int(np.searchsorted(before, wanted, side="right")) - 1, start)
    return Part(first, start, stop, int(before[first]), int(before[start] - before[first]))


def stairs(parts: Sequence[Part], offset: int, bucket: str) -> tuple[str, str] | None:
    """The first and the last task of a row by its bucket, as SQL, or None where none wants it.

    The parts are tasks ``offset``, ``offset + 1``, …; a row is its own part's, and a row of the
    halo of every part up to the last that begins to look back at or before it.
    """
    if not parts:
        return None
    stops = [part.stop for part in parts[:-1]]
    firsts = [part.first for part in parts[1:]]
    own = _search(bucket, stops, offset, 0, len(stops))
    last = _search(bucket, firsts, offset, 0, len(firsts))
    if parts[0].first == 0:
        return own, last
    before = f"{bucket} < {parts[0].first}"
    return f"if({before}, NULL, {own})", f"if({before}, NULL, {last})"


def _search(bucket: str, steps: list[int], offset: int, first: int, last: int) -> str:
    """``offset`` and how many of the ascending ``steps`` are at or below the bucket."""
    if first == last:
        return str(offset + first)
    middle = (first + last) // 2
    below = _search(bucket, steps, offset, first, middle)
    above = _search(bucket, steps, offset, middle + 1, last)
    return f"if({bucket} < {steps[middle]}, {below}, {above})"
