"""From rows drawn to an attribution and its bound.

Given the window's exact moments a row's own part of an attribution is a polynomial of its value:

    Φ = Σ_W g     g = 1_P · h(y)     h(y) = v(W)/N + Σ_d slope_d · ((y - mean)**d - central_d/N)

so a sample estimates a sum over one population of numbers, and one bound covers it: no need to
bound counts, sums and squares apart and add up.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ids.errors import ScriptError
from ids.estimates.parts import Drawn, Estimates, Parts, Whole
from ids.games import Game, Moments
from ids.kernels.estimating import estimate_windows
from ids.model.sampling import BOUNDS, refuse_confidence

__all__ = ["estimate"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

_EVERYONE = np.zeros(0, np.bool_)


def estimate(
    game: Game,
    moments: Moments,
    parts: Parts,
    drawn: Drawn,
    whole: Whole,
    *,
    confidence: float,
    bound: str = "bernstein",
    replacement: bool = False,
    control_variate: bool = False,
) -> Estimates:
    """Estimate a predicate's attribution at each of w windows, with a bound on the error.

    ``moments`` are the exact ones of the windows, NULLs left out (a field without an axis is one
    window). The sums run in the order of the rows given: the same rows give the same bits. A part
    of which every row was drawn is exact; one of which none was drawn may be off by all it could
    hold. A control variate is for windows of one part: where there are strata it is left out.
    O(rows + parts + windows).
    """
    delta = _delta(confidence, bound)
    form = _form(game, moments)
    out = np.zeros((5, len(form[0])))
    central = form[3]
    estimate_windows(
        (
            np.ascontiguousarray(parts.window, np.int64),
            np.ascontiguousarray(parts.population, np.int64),
            np.ascontiguousarray(parts.low, np.float64),
            np.ascontiguousarray(parts.high, np.float64),
        ),
        _rows(drawn),
        _rows(whole),
        form,
        game.additive,
        (2.0 / delta, (4.0 if replacement else 10.0) / delta),
        (bound == "bernstein", replacement),
        # COUNT knows no values to lean on
        min(len(central) - 1, 2) if control_variate and game.degree else 0,
        out,
    )
    out[3:, ~np.isfinite(out[0])] = np.inf  # of a value that no double holds nothing is known
    return Estimates(*out)


def _delta(confidence: float, bound: str) -> float:
    refuse_confidence(confidence)
    if bound not in BOUNDS:
        raise ScriptError(f"unknown bound {bound!r}", hint=f"choose {' or '.join(BOUNDS)}")
    return 1.0 - confidence


def _rows(rows: Drawn | Whole) -> tuple[Integers, Floats, Booleans, Booleans]:
    return (
        np.ascontiguousarray(rows.starts, np.int64),
        np.ascontiguousarray(rows.value, np.float64),
        np.ascontiguousarray(rows.member, np.bool_),
        _EVERYONE if rows.plays is None else np.ascontiguousarray(rows.plays, np.bool_),
    )


def _form(game: Game, moments: Moments) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats]:
    """Players, mean, its rest, central sums, worth and slopes, each with an axis of windows."""
    players, mean = _axis(moments.players), _axis(moments.mean)
    rest = np.ascontiguousarray(np.broadcast_to(_axis(moments.rest), len(mean)))
    central = np.ascontiguousarray(moments.central, np.float64)
    central = central.reshape(len(central), len(players))
    worth = _axis(game.worth(moments))
    if game.affine and len(players) == 1:
        slopes = _slopes_of(game, float(players[0]))
    else:
        given = game.slopes(moments)
        slopes = np.array(given, np.float64).reshape(game.degree, len(players))
    return players, mean, rest, central, worth, slopes


def _axis(field: Floats) -> Floats:
    return np.ascontiguousarray(field, np.float64).reshape(-1)


@lru_cache(maxsize=1024)
def _slopes_of(game: Game, players: float) -> Floats:
    """The slopes of a game whose slopes depend on N alone: asked again, they need no logarithm."""
    window = Moments.of(players, 0.0, 0.0, [players] + [0.0] * max(game.degree, 2))
    return np.array(game.slopes(window), np.float64).reshape(game.degree, 1)
