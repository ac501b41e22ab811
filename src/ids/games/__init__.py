"""Closed forms: what is left of a cooperative game once the window's sums are known."""

from ids.games.catalogue import GAMES, find, register_game
from ids.games.game import Attributed, Coefficients, Game, Moments, attribute, coefficients
from ids.games.moment import MomentGame, Term

__all__ = [
    "GAMES",
    "Attributed",
    "Coefficients",
    "Game",
    "MomentGame",
    "Moments",
    "Term",
    "attribute",
    "coefficients",
    "find",
    "register_game",
]
