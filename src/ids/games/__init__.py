"""Closed forms of attributions, and estimates of attributions from samples."""

from ids.games.game import (
    GAMES,
    Attributed,
    Coefficients,
    Game,
    Moments,
    attribute,
    coefficients,
    find,
    let,
    numbers,
)
from ids.games.moment import MomentGame, Term, register_game
from ids.games.sample_estimate import Drawn, Estimates, Parts, Whole, estimate

__all__ = [
    "GAMES",
    "Attributed",
    "Coefficients",
    "Drawn",
    "Estimates",
    "Game",
    "MomentGame",
    "Moments",
    "Parts",
    "Term",
    "Whole",
    "attribute",
    "coefficients",
    "estimate",
    "find",
    "let",
    "numbers",
    "register_game",
]
