"""From rows drawn to an attribution and its bound.

Given the window's exact moments a row's own part of an attribution is a polynomial of its value:

    Φ = Σ_W g     g = 1_P · h(y)     h(y) = v(W)/N + Σ_d slope_d · ((y - mean)**d - central_d/N)

so a sample estimates a sum over one population of numbers, and one bound covers it: no need to
bound counts, sums and squares apart and add up.

A window is divided into the rows taken whole and into parts. Each part stands for ``population``
rows of the window, of which some were drawn. Without strata a window has one part.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids import kernels  # Numba is imported when one of them is called
from ids.errors import ScriptError
from ids.games.game import Game, Moments
from ids.model import BOUNDS, refuse_confidence

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


class Drawn(NamedTuple):
    """The rows drawn, part by part, within a part in the order of drawing (by priority).

    starts  int64[p+1]   part k's rows are starts[k] … starts[k+1]-1
    value   float64[n]   y, in the units of the moments; any number where the row does not play
    member  bool[n]      whether the predicate holds and the row plays
    plays   bool[n]      whether y is not NULL (None: every row plays); only a control variate asks
    """

    starts: Integers
    value: Floats
    member: Booleans
    plays: Booleans | None = None


class Whole(Drawn):
    """The rows taken whole, window by window; fields as in ``Drawn``, ``starts`` int64[w+1]."""

    __slots__ = ()

    @classmethod
    def none(cls, windows: int = 1) -> Whole:
        """No row taken whole in any of the windows."""
        return cls(np.zeros(windows + 1, np.int64), np.zeros(0), np.zeros(0, np.bool_))


class Parts(NamedTuple):
    """What the rows drawn stand for.

    window      int64[p]    which window a part belongs to, ascending
    population  int64[p]    rows of the window that the part stands for, drawn or not, NULL or not,
                            those taken whole left out
    low, high   float64[p]  bounds on y of every player in that population (low > high: no players)
    """

    window: Integers
    population: Integers
    low: Floats
    high: Floats


class Estimates(NamedTuple):
    """An attribution at each window, estimated; every field float64[w].

    value, share, lift  without bias; value = share + lift
    error               |value - exact| is no more than this, at the confidence asked for
    standard_error      the estimate's standard deviation, as far as the sample tells
    """

    value: Floats
    share: Floats
    lift: Floats
    error: Floats
    standard_error: Floats


class _Form(NamedTuple):
    """The closed form of a game at each window; arrays as ``estimate_windows`` takes them."""

    players: Floats
    mean: Floats
    rest: Floats
    central: Floats
    worth: Floats
    slopes: Floats


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
    refuse_confidence(confidence)
    if bound not in BOUNDS:
        raise ScriptError(f"unknown bound {bound!r}", hint=f"choose {' or '.join(BOUNDS)}")
    delta = 1.0 - confidence
    form = _form(game, moments)
    out = np.zeros((5, len(form.players)))
    kernels.estimate_windows(
        Parts(
            np.ascontiguousarray(parts.window, np.int64),
            np.ascontiguousarray(parts.population, np.int64),
            np.ascontiguousarray(parts.low, np.float64),
            np.ascontiguousarray(parts.high, np.float64),
        ),
        _contiguous(drawn),
        _contiguous(whole),
        form,
        game.additive,
        (2.0 / delta, (4.0 if replacement else 10.0) / delta),
        (bound == "bernstein", replacement),
        # COUNT knows no values to lean on
        min(len(form.central) - 1, 2) if control_variate and game.degree else 0,
        out,
    )
    out[3:, ~np.isfinite(out[0])] = np.inf  # of a value that no double holds nothing is known
    return Estimates(*out)


def _contiguous(rows: Drawn) -> Drawn:
    """The same rows as the kernel takes them: an empty ``plays`` where every row plays."""
    return Drawn(
        np.ascontiguousarray(rows.starts, np.int64),
        np.ascontiguousarray(rows.value, np.float64),
        np.ascontiguousarray(rows.member, np.bool_),
        _EVERYONE if rows.plays is None else np.ascontiguousarray(rows.plays, np.bool_),
    )


def _form(game: Game, moments: Moments) -> _Form:
    """Every field with an axis of windows."""
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
    return _Form(players, mean, rest, central, worth, slopes)


def _axis(field: Floats) -> Floats:
    return np.ascontiguousarray(field, np.float64).reshape(-1)


@lru_cache(maxsize=1024)
def _slopes_of(game: Game, players: float) -> Floats:
    """The slopes of a game whose slopes depend on N alone: asked again, they need no logarithm."""
    window = Moments.of(players, 0.0, 0.0, [players] + [0.0] * max(game.degree, 2))
    return np.array(game.slopes(window), np.float64).reshape(game.degree, 1)
