"""Small windows for tests of the estimates: exact moments, exact attributions, and samples."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ids.games import Attributed, Drawn, Game, Moments, Parts, Whole, attribute

__all__ = ["DEGREE", "Given", "Window", "given", "moments_of", "truth"]

DEGREE = 4


class Window(NamedTuple):
    """The rows of a window: value (None: NULL) and whether the predicate holds."""

    value: list[float | None]
    holds: list[bool]

    @property
    def plays(self) -> list[bool]:
        return [y is not None for y in self.value]

    @property
    def player_values(self) -> list[float]:
        return [y for y in self.value if y is not None]


class Given(NamedTuple):
    """The arguments of ``estimate`` besides the game and the moments."""

    parts: Parts
    drawn: Drawn
    whole: Whole


def moments_of(window: Window) -> Moments:
    """Compute the moments from exact rationals."""
    ys = [Fraction(y) for y in window.player_values]
    mean = sum(ys, Fraction(0)) / max(len(ys), 1)
    central = [float(sum(((y - mean) ** d for y in ys), Fraction(0))) for d in range(DEGREE + 1)]
    rest = float(mean - Fraction(float(mean)))
    return Moments.of(len(ys), float(sum(ys, Fraction(0))), float(mean), central, rest)


def truth(game: Game, window: Window) -> Attributed:
    """Compute the exact attribution with ``ids.games.attribute``."""
    moments = moments_of(window)
    own = [
        Fraction(y)
        for y, holds in zip(window.value, window.holds, strict=True)
        if holds and y is not None
    ]
    mean = Fraction(float(moments.mean)) + Fraction(float(moments.rest))
    count = max(int(moments.players), 1)
    deviation = [
        [[float(sum(((y - mean) ** d for y in own), Fraction(0)))
          - len(own) * float(moments.central[d]) / count]]
        for d in range(1, DEGREE + 1)
    ]  # fmt: skip
    total = [[float(sum(own, Fraction(0)))]]
    found = attribute(
        game, moments, np.array([[float(len(own))]]), np.array(total), np.array(deviation)
    )
    return Attributed(*(field[0, 0] for field in found))


def given(
    window: Window,
    samples: Sequence[Sequence[Sequence[int]]],
    strata: Sequence[Sequence[int]],
    whole: Sequence[int] = (),
    population: int = 0,
) -> Given:
    """Return many samples of one window, each as a separate window.

    samples     for each sample, for each part, the rows drawn
    strata      the rows of each part (without the rows in ``whole``)
    population  added to every part's population: a planted mistake
    """
    value = np.array([np.nan if y is None else y for y in window.value])
    plays = np.array(window.plays, np.bool_)
    member = np.array(window.holds, np.bool_) & plays
    rows = np.array([i for sample in samples for part in sample for i in part], np.int64)
    sizes = [len(part) for sample in samples for part in sample]
    bounds = np.array([_bounds(window, rows) for rows in strata], np.float64).reshape(-1, 2)
    times = len(samples)
    parts = Parts(
        np.repeat(np.arange(times), len(strata)),
        np.tile([len(rows) + population for rows in strata], times).astype(np.int64),
        np.tile(bounds[:, 0], times),
        np.tile(bounds[:, 1], times),
    )
    taken = np.tile(np.array(whole, np.int64), times)
    return Given(
        parts,
        Drawn(_starts(sizes), value[rows], member[rows], plays[rows]),
        Whole(_starts([len(whole)] * times), value[taken], member[taken], plays[taken]),
    )


def _bounds(window: Window, rows: Sequence[int]) -> tuple[float, float]:
    ys = [y for i in rows if (y := window.value[i]) is not None]
    return (min(ys), max(ys)) if ys else (np.inf, -np.inf)


def _starts(sizes: list[int]) -> Any:
    return np.cumsum([0, *sizes], dtype=np.int64)
