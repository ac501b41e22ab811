"""Answers over a measure whose values lie too far apart in magnitude for the digits of a scale.

Windows without a value that is far from most others go through the kernels. In the other windows
rows are summed as Python integers, which hold any double: slower by far, and as exact. Each emit
is a difference of running sums: those of the rows that came less those of the rows that went.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.engine.answers import Answers
from ids.engine.asked import Asked
from ids.engine.emitting import answer_measure
from ids.exact import Powers, big_attribution, big_worth, integers, unit_of
from ids.kernels.replay import Rows
from ids.state.scaling import fit_most
from ids.window import chosen

__all__ = ["answer_wide_range"]

Integers = npt.NDArray[np.int64]

_EMITS = 2_048
_ROWS = 16_384


def answer_wide_range(asked: Asked, degree: int) -> Answers:
    """Every item over one measure, of which sums of powers up to ``degree`` are asked."""
    values, emits = asked.rows.values, asked.emits
    scale, far = fit_most(values, degree)
    far_before = np.concatenate([[0], np.cumsum(far)])
    wide = far_before[emits.arrived] > far_before[emits.expired]
    answers = Answers.room_for(asked.items, asked.number, len(emits))
    near = Rows(asked.rows.atom, np.where(far, 0.0, values))
    kernels = asked._replace(rows=near, emits=chosen(emits, ~wide), progress=None)
    answers.place(answer_measure(kernels, scale), ~wide)
    answers.place(_answer_wide(asked._replace(emits=chosen(emits, wide))), wide)
    return answers


def _answer_wide(asked: Asked) -> Answers:
    answers = Answers.room_for(asked.items, asked.number, len(asked.emits))
    games = {item.game.name: item.game for item in asked.items}
    came, went = _Running(asked), _Running(asked)
    total = len(asked.emits)
    for first in range(0, total, _EMITS):
        here = slice(first, min(first + _EMITS, total))
        arrived = came.before(asked.emits.arrived[here].view(np.int64))
        expired = went.before(asked.emits.expired[here].view(np.int64))
        window, *items = (_less(a, b) for a, b in zip(arrived, expired, strict=True))
        for name, game in games.items():
            worth, missing = answers.worths[name, asked.number]
            worth[here] = big_worth(game, window)
            missing[here] = window.rows < game.nulls
            for predicate, own in zip(asked.predicates, items, strict=True):
                room = answers.attributions.get((name, asked.number, predicate))
                if room is not None:
                    for part, found in zip(room, big_attribution(game, window, own), strict=True):
                        part[here] = found
        if asked.progress is not None:
            asked.progress(here.stop, total)
    return answers


def _less(a: Powers, b: Powers) -> Powers:
    return Powers(a.rows - b.rows, [x - y for x, y in zip(a.sums, b.sums, strict=True)], a.unit)


class _Running:
    """Sums of all rows before a position that only moves forward.

    The first sums are of every player, the others of the players on which a predicate holds.
    """

    def __init__(self, asked: Asked) -> None:
        self._rows = asked.rows
        self._degree = max(item.game.degree for item in asked.items)
        self._member = np.ones((len(asked.held) + 1, 1 + asked.held.shape[1]), np.bool_)
        self._member[:-1, 1:] = asked.held
        self._member[-1] = False  # a row of the last atom is no player
        self._unit = unit_of(asked.rows.values)
        self._at = 0
        self._counts = [0] * self._member.shape[1]
        self._sums = [[0] * self._degree for _ in self._counts]

    def before(self, positions: Integers) -> list[Powers]:
        """The sums before each of some ascending positions, for every player and predicate."""
        items = range(len(self._counts))
        counts = [np.full(len(positions), self._counts[i]) for i in items]
        sums = [
            [np.full(len(positions), self._sums[i][d], object) for d in range(self._degree)]
            for i in items
        ]
        stop = int(positions[-1])
        for start in range(self._at, stop, _ROWS):
            end = min(start + _ROWS, stop)
            edges = np.clip(positions - start, 0, end - start)
            member = self._member[self._rows.atom[start:end]]
            value = integers(self._rows.values[start:end], self._unit)
            for i in items:
                own = member[:, i]
                counts[i] += _running(own.astype(np.int64))[edges]
                power = np.where(own, value, 0)
                for d in range(self._degree):
                    sums[i][d] += _running(power if d == 0 else power ** (d + 1))[edges]
        self._at = stop
        self._counts = [int(count[-1]) for count in counts]
        self._sums = [[each[-1] for each in powers] for powers in sums]
        return [Powers(counts[i], sums[i], self._unit) for i in items]


def _running(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Sums of the first 0, 1, 2 … values."""
    sums = np.zeros(len(values) + 1, values.dtype)
    np.cumsum(values, out=sums[1:])
    return sums
