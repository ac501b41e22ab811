"""Answers from the state: one attribution now, or every live atom's."""

from __future__ import annotations

from functools import lru_cache
from math import fsum

import numpy as np
import numpy.typing as npt

from ids.engine.core import Core
from ids.errors import StateError
from ids.games import Attributed, Game, Moments, attribute, find
from ids.kernels.asking import ask
from ids.kernels.central import Centred, centre_block
from ids.model.scale import Scale
from ids.state.refined import Refined
from ids.state.summaries import Summaries

__all__ = [
    "Triple",
    "answer",
    "answer_by_atoms",
    "empty_emits",
    "in_units",
    "moments_of",
    "residual",
    "window_alone",
    "worth",
]

Words = npt.NDArray[np.int64]
Triple = tuple[float, float, float]

_LARGEST_UNIT = 960  # a power of two that leaves the doubles room for sums of 2**26 rows


@lru_cache(maxsize=4096)
def _weights(name: str, players: int, exponent: int) -> npt.NDArray[np.float64]:
    """What each moment weighs in the worth of a window of N = ``players``, then the slopes.

    An affine game is linear in (N, Σ y, mean, Σ (y - mean)²): a weight is the worth of a window
    that has that moment alone. The last is given as a divisor, as the variances have it, so that
    an engine rounds as a query does.
    """
    game = find(name)
    unit = 2.0 ** (exponent * game.power)
    window = Moments.of(players, 0.0, 0.0, [players, 0.0, 0.0])
    base = float(game.worth(window))
    probes = (
        window._replace(total=np.array(1.0)),
        window._replace(mean=np.array(1.0)),
        window._replace(central=np.array([players, 0.0, 1.0])),
    )
    slopes = [float(s) * unit for s in game.slopes(window)] + [0.0, 0.0]
    total, mean, spread = (float(game.worth(p)) - base for p in probes)
    divisor = round(1.0 / spread) / unit if spread else 0.0
    own = unit if game.additive else 0.0
    return np.array([base / max(players, 1), total * unit, mean * unit, divisor, *slopes[:2], own])


def answer(summaries: Summaries, items: Words, row: int, game: Game) -> Triple:
    """(value, share, lift) of one summary; what no double holds comes out infinite."""
    scale = summaries.scale
    if not game.affine or abs(scale.exponent * game.power) > _LARGEST_UNIT:
        return _total(summaries, _attributed(summaries, items[row : row + 1], game), game)
    weights = _weights(game.name, int(summaries.window[0]), scale.exponent)
    found: Triple = ask(summaries.window, items, row, summaries.centre, scale.layout, weights)
    return found


def answer_by_atoms(summaries: Summaries, chosen: Words, game: Game) -> Triple:
    """The cross-check: evaluate each atom by itself and add the results."""
    return _total(summaries, _attributed(summaries, summaries.atoms[chosen], game), game)


def worth(summaries: Summaries, game: Game) -> float | None:
    """The aggregate itself; None where SQL says NULL."""
    if int(summaries.window[0]) < game.nulls:
        return None
    value = game.worth(moments_of(window_alone(summaries)))
    return in_units(float(value[0]), summaries, game)


def residual(core: Core, summaries: Summaries, game: Game) -> float:
    """Efficiency over the live atoms, Σ attribution - v(W): 0 up to rounding, or a fault."""
    if not isinstance(core.membership, Refined):
        raise StateError("the atoms were given up at their limit: there is no partition to probe")
    each = _attributed(summaries, summaries.atoms[core.membership.live], game)
    whole = game.worth(moments_of(window_alone(summaries)))
    players = int(summaries.window[0])
    missed = fsum(each.value[:, 0]) - (float(whole[0]) if players else 0.0)
    return in_units(missed, summaries, game)


def _attributed(summaries: Summaries, rows: Words, game: Game) -> Attributed:
    """Attributions of some summaries, in units of 2**(exponent · power)."""
    emits = _centred(summaries, rows)
    return attribute(
        game, moments_of(emits), emits.members.astype(np.float64), emits.item_total, emits.deviation
    )


def _total(summaries: Summaries, each: Attributed, game: Game) -> Triple:
    value, share, lift = (in_units(fsum(part[:, 0]), summaries, game) for part in each)
    return value, share, lift


def in_units(value: float, summaries: Summaries, game: Game) -> float:
    """Back in the measure's own units; infinite where no double holds it."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.ldexp(value, summaries.scale.exponent * game.power))


def moments_of(emits: Centred) -> Moments:
    """A block of emits as the games take it."""
    players = emits.players.astype(np.float64)
    return Moments(players, emits.total, emits.mean, emits.central, emits.rest)


def window_alone(summaries: Summaries) -> Centred:
    """One emit: the window, and no summary beside it."""
    return _centred(summaries, summaries.atoms[:0])


def _centred(summaries: Summaries, rows: Words) -> Centred:
    """One emit: the window and the given summaries."""
    scale = summaries.scale
    taken = np.concatenate([summaries.window.reshape(1, -1), rows])[:, :, None]
    emits = empty_emits(scale, len(rows), 1)
    centre_block(np.ascontiguousarray(taken), summaries.centre, scale.layout, emits)
    return emits


def empty_emits(scale: Scale, items: int, size: int) -> Centred:
    """Room for a block of emits."""
    return Centred(
        np.zeros(size, np.int64),
        np.zeros(size),
        np.zeros(size),
        np.zeros((scale.degree + 1, size)),
        np.zeros((items, size), np.int64),
        np.zeros((items, size)),
        np.zeros((scale.degree, items, size)),
        np.zeros(size),
    )
