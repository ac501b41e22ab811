"""Closed forms: what is left of a cooperative game once the window's sums are known."""

from ids.games.aggregates import GAMES, find, register_game
from ids.games.game import (
    Attributed,
    Coefficients,
    Game,
    Moments,
    attribute,
    coefficients,
    let,
    numbers,
)
from ids.games.moment import MomentGame, Term
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
