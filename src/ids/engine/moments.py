"""The exact moments that estimates lean on, asked for as aggregates of the same query.

As aggregates they are the same to the last bit in every execution, and so are the estimates.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ids.engine.answers import Answers
from ids.games import Game, Moments, find
from ids.model.query import ItemKind
from ids.model.scale import MAX_DEGREE
from ids.plan import PlannedItem, SelectPlan

__all__ = ["moment_items", "moments_at", "with_moments"]

Floats = npt.NDArray[np.float64]


def _mean_power(degree: int) -> Game:
    """Σ (y - mean)**degree / N as a game's worth; nobody asks for its attributions."""

    def worth(window: Moments) -> Floats:
        mean: Floats = window.central[degree] / np.maximum(window.players, 1.0)
        return mean

    def slopes(window: Moments) -> list[Floats]:
        return [np.zeros_like(window.players)] * degree

    return Game(f"POWER_{degree}", degree, degree, worth, slopes)


_COUNT, _SUM, _AVG = find("COUNT"), find("SUM"), find("AVG")
# What the rounded mean misses, as a game's worth: samples are centred at both together.
_REST = Game("MEAN_REST", 1, 1, lambda w: w.rest, lambda w: [np.zeros_like(w.players)])
_POWERS = {degree: _mean_power(degree) for degree in range(2, MAX_DEGREE + 1)}


def with_moments(plan: SelectPlan) -> SelectPlan:
    """The plan, with the moments of sampled measures beside its items."""
    return replace(plan, items=(*plan.items, *moment_items(plan)))


def moment_items(plan: SelectPlan) -> tuple[PlannedItem, ...]:
    """The moments of every measure that is sampled, as items under names of their own."""
    degrees: dict[int, int] = {}
    for item in plan.sampled:
        degrees[item.measure] = max(degrees.get(item.measure, 0), item.game.degree)
    return tuple(
        PlannedItem(
            ItemKind.AGGREGATE, game, measure, None, f"ids_{game.name}_{measure}", (), "aggregate"
        )
        for measure, degree in degrees.items()
        for game in _games(degree)
    )


def _games(degree: int) -> tuple[Game, ...]:
    """The games whose worths tell the moments up to a degree."""
    first = (_SUM, _AVG, _REST) if degree else ()
    return (_COUNT, *first, *(_POWERS[d] for d in range(2, degree + 1)))


def moments_at(
    answers: Answers, item: PlannedItem, emits: npt.NDArray[np.int64], exponent: int
) -> Moments:
    """The moments of an item's measure at some emits, for values in units of 2**exponent."""

    def worth(game: Game) -> Floats:
        values, missing = answers.worths[game.name, item.measure]
        return np.ldexp(np.where(missing[emits], 0.0, values[emits]), -exponent * game.power)

    degree = item.game.degree
    players = worth(_COUNT)
    nothing = np.zeros_like(players)
    total, mean, rest = (worth(g) if degree else nothing for g in (_SUM, _AVG, _REST))
    central = [players, nothing][: degree + 1]
    central += [players * worth(_POWERS[d]) for d in range(2, degree + 1)]
    return Moments(players, total, mean, np.array(central), rest)
