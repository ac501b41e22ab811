"""The games by name: SUM, COUNT, AVG, VAR_POP and VAR_SAMP of the paper, two moment games, and
whatever a user adds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from ids.errors import ScriptError, UnknownNameError
from ids.games.game import Game, Moments, let, numbers
from ids.games.harmonic import harmonic, harmonic_squares
from ids.games.moment import M3, M4, MomentGame

Floats = npt.NDArray[np.float64]


def average_slope(count: npt.ArrayLike) -> Floats:
    """λ of AVG: H_{N-1}/(N-1), and 1 for N = 1 (where the deviation is 0).

    >>> (average_slope([3, 4]) * [4, 18]).round(12).tolist()
    [3.0, 11.0]
    """
    n = numbers(count, np.float64)
    others = let(np.maximum(n - 1.0, 1.0))
    return np.where(n > 1, harmonic(others) / others, 1.0)


def population_slope(count: npt.ArrayLike) -> Floats:
    """λ of VAR_POP; 0 for N <= 2, where the lift vanishes.

    >>> (population_slope([3, 4]) * [8, 54]).round(12).tolist()
    [3.0, 17.0]
    """
    n = numbers(count, np.float64)
    big = let(np.maximum(n, 3.0))
    spread = harmonic(big) - harmonic_squares(big)
    slope = big * spread / ((big - 1.0) * (big - 2.0)) - 1.0 / (big * (big - 2.0))
    return np.where(n > 2, slope, 0.0)


def sample_slope(count: npt.ArrayLike) -> Floats:
    """λ of VAR_SAMP; 0 for N <= 2.

    >>> (sample_slope([3, 4]) * [4, 9]).round(12).tolist()
    [3.0, 5.0]
    """
    n = numbers(count, np.float64)
    big = let(np.maximum(n, 3.0))
    rest = big - 1.0
    slope = (big * (rest * harmonic(big) - big + 0.5) / (big - 2.0) - 0.5) / (rest * rest)
    return np.where(n > 2, slope, 0.0)


def _population(moments: Moments) -> Floats:
    worth: Floats = moments.central[2] / np.maximum(moments.players, 1.0)
    return worth


def _sample(moments: Moments) -> Floats:
    n = moments.players
    return np.where(n > 1, moments.central[2] / np.maximum(n - 1.0, 1.0), 0.0)


def _slopes(*each: Callable[[Floats], Floats]) -> Callable[[Moments], Sequence[Floats]]:
    """The factors of deviation_1, deviation_2 …, each from N."""
    return lambda moments: tuple(slope(moments.players) for slope in each)


GAMES: dict[str, Game] = {
    game.name: game
    for game in (
        Game("SUM", 1, 1, lambda w: w.total, _slopes(np.ones_like), additive=True, affine=True),
        Game("COUNT", 0, 0, lambda w: w.players, _slopes(), affine=True, nulls=0),
        Game("AVG", 1, 1, lambda w: w.mean, _slopes(average_slope), affine=True),
        Game("VAR_POP", 2, 2, _population, _slopes(np.zeros_like, population_slope), affine=True),
        Game("VAR_SAMP", 2, 2, _sample, _slopes(np.zeros_like, sample_slope), affine=True, nulls=2),
        M3,
        M4,
    )
}


def find(name: str) -> Game:
    """The game of that name, or a clear error."""
    if name not in GAMES:
        raise UnknownNameError("aggregate", name, GAMES)
    return GAMES[name]


def register_game(game: MomentGame) -> Game:
    """Make a moment polynomial game known to scripts and engines under its name."""
    name = game.name.upper()
    if name in GAMES:
        raise ScriptError(f"a game {name!r} is already known", hint="choose another name")
    GAMES[name] = MomentGame(name, game.terms, game.central).game()
    return GAMES[name]
