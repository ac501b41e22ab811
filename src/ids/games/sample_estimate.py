"""Estimates attributions from samples, with error bounds.

Given the window's exact moments, the contribution of a row is a polynomial in its value:

    Φ = Σ_W g     g = 1_P · h(y)     h(y) = v(W)/N + Σ_d slope_d · ((y - mean)**d - central_d/N)

The attribution is therefore a sum of one number per row, and a single bound on that sum is enough;
counts, sums and squares do not need separate bounds.

Each row of a window is either known exactly (``Whole``) or belongs to a part. A part represents
``population`` rows of the window, some of which were drawn. Each stratum is a part; without strata,
a window has one part.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ids import kernels  # Numba is imported on the first call of a kernel
from ids.errors import ArgumentError
from ids.games.game import Game, Moments
from ids.model import BOUNDS, refuse_confidence

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


class Drawn(NamedTuple):
    """The sampled rows, grouped by part and sorted by priority within each part.

    starts  int64[p+1]   part k consists of the rows starts[k] … starts[k+1]-1
    value   float64[n]   y, in the units of the moments; any number if y is NULL
    member  bool[n]      whether the predicate holds and y is not NULL
    plays   bool[n]      whether y is not NULL (None: no y is NULL); used only by a control variate
    """

    starts: Integers
    value: Floats
    member: Booleans
    plays: Booleans | None = None


class Whole(Drawn):
    """The rows known exactly, grouped by window; fields as in ``Drawn``, ``starts`` int64[w+1]."""

    __slots__ = ()

    @classmethod
    def none(cls, windows: int = 1) -> Whole:
        """Return an empty set of rows for each window."""
        return cls(np.zeros(windows + 1, np.int64), np.zeros(0), np.zeros(0, np.bool_))


class Parts(NamedTuple):
    """The population that each part represents.

    window      int64[p]    the window of each part, ascending
    population  int64[p]    the number of rows that the part represents, including rows that were
                            not drawn and NULLs, but without the rows of ``Whole``
    low, high   float64[p]  bounds on every y in that population (low > high: every y is NULL)
    """

    window: Integers
    population: Integers
    low: Floats
    high: Floats


class Estimates(NamedTuple):
    """The estimated attribution in each window; every field is float64[w].

    value, share, lift  unbiased estimates; value = share + lift
    error               the bound on |value - exact| at the requested confidence
    standard_error      the standard deviation of the estimate, estimated from the sample
    """

    value: Floats
    share: Floats
    lift: Floats
    error: Floats
    standard_error: Floats


class _Form(NamedTuple):
    """The closed form of a game in each window, as arrays for ``estimate_windows``."""

    players: Floats
    mean: Floats
    rest: Floats
    central: Floats
    worth: Floats
    slopes: Floats


_NO_NULLS = np.zeros(0, np.bool_)


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
    """Estimate a predicate's attribution in each of w windows, with a bound on the error.

    ``moments`` are the exact moments of the windows, without NULLs (fields without an axis describe
    one window). Rows are summed in the given order, so the same rows produce the same bits. The
    estimate of a part is exact if all of its rows were drawn. If none were drawn, the error covers
    the largest possible contribution. A control variate is used only in windows with one part, and
    ignored if there are strata. O(rows + parts + windows).
    """
    refuse_confidence(confidence)
    if bound not in BOUNDS:
        raise ArgumentError(f"unknown bound {bound!r}", hint=f"choose {' or '.join(BOUNDS)}")
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
        # COUNT has no values that a control variate could use
        min(len(form.central) - 1, 2) if control_variate and game.degree else 0,
        out,
    )
    out[3:, ~np.isfinite(out[0])] = np.inf  # the value overflowed
    return Estimates(*out)


def _contiguous(rows: Drawn) -> Drawn:
    """Convert the rows to contiguous arrays; ``plays`` is empty if there are no NULLs."""
    return Drawn(
        np.ascontiguousarray(rows.starts, np.int64),
        np.ascontiguousarray(rows.value, np.float64),
        np.ascontiguousarray(rows.member, np.bool_),
        _NO_NULLS if rows.plays is None else np.ascontiguousarray(rows.plays, np.bool_),
    )


def _form(game: Game, moments: Moments) -> _Form:
    """Evaluate the closed form; every field of the result has an axis for windows."""
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
    """Return the slopes of an affine game, cached per N to avoid recomputing logarithms."""
    window = Moments.of(players, 0.0, 0.0, [players] + [0.0] * max(game.degree, 2))
    return np.array(game.slopes(window), np.float64).reshape(game.degree, 1)
