"""The games by name: five of the paper, two moment games, and whatever a user adds."""

from __future__ import annotations

from ids.errors import ScriptError, UnknownNameError
from ids.games.game import Game
from ids.games.moment import M3, M4, MomentGame
from ids.games.sums import AVG, COUNT, SUM
from ids.games.variance import VAR_POP, VAR_SAMP

__all__ = ["GAMES", "find", "register_game"]

GAMES: dict[str, Game] = {game.name: game for game in (SUM, COUNT, AVG, VAR_POP, VAR_SAMP, M3, M4)}


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
