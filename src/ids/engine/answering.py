"""Answers from the state: one attribution now, or every live atom's."""

from __future__ import annotations

from functools import lru_cache
from math import fsum

import numpy as np
import numpy.typing as npt

from ids.engine.core import Core
from ids.errors import StateError
from ids.games import Attributed, Game, Moments, attribute
from ids.kernels.central import Centred, ask, centre_block
from ids.model.scale import Scale
from ids.state.refined import Refined
from ids.state.summaries import Summaries

__all__ = ["answer", "answer_by_atoms", "empty_emits", "moments_of", "residual", "worth"]

Words = npt.NDArray[np.int64]


@lru_cache(maxsize=4096)
def _weights(game: Game, count: int, exponent: int) -> npt.NDArray[np.float64]:
    """What each moment weighs in the worth of a window of ``count`` rows, then the slopes.

    Every game up to degree 2 is linear in (N, Σ y, mean, Σ (y - mean)²); a weight is the worth of
    a window that has that moment alone.
    """
    unit = 2.0 ** (exponent * game.power)
    one = np.float64(count)
    zero = np.float64(0.0)
    window = Moments(one, zero, zero, np.array([count, 0.0, 0.0]))
    base = float(game.worth(window))
    probes = (
        window._replace(total=np.float64(1.0)),
        window._replace(mean=np.float64(1.0)),
        window._replace(central=np.array([count, 0.0, 1.0])),
    )
    slopes = [float(s) * unit for s in game.slopes(window)] + [0.0, 0.0]
    weights = [(float(game.worth(p)) - base) * unit for p in probes]
    return np.array([base / max(count, 1), *weights, *slopes[:2], unit if game.additive else 0.0])


def answer(summaries: Summaries, items: Words, row: int, game: Game) -> tuple[float, float, float]:
    """(value, share, lift) of one summary."""
    scale = summaries.scale
    if game.degree > 2:
        one = _attributed(summaries, items[row : row + 1], game)
        return float(one.value[0, 0]), float(one.share[0, 0]), float(one.lift[0, 0])
    weights = _weights(game, int(summaries.window[0]), scale.exponent)
    found: tuple[float, float, float] = ask(
        summaries.window, items, row, summaries.centre, scale.layout, weights
    )
    return found


def answer_by_atoms(summaries: Summaries, chosen: Words, game: Game) -> tuple[float, float, float]:
    """The cross-check: evaluate each atom by itself and add the results."""
    if not len(chosen):
        return 0.0, 0.0, 0.0
    each = _attributed(summaries, summaries.atoms[chosen], game)
    return fsum(each.value[:, 0]), fsum(each.share[:, 0]), fsum(each.lift[:, 0])


def worth(summaries: Summaries, game: Game) -> float | None:
    """The aggregate itself; None where SQL says NULL."""
    count = int(summaries.window[0])
    if count < game.nulls:
        return None
    emits = _centred(summaries, summaries.atoms[:0])
    value = game.worth(moments_of(emits))
    return float(np.ldexp(value, summaries.scale.exponent * game.power)[0])


def residual(core: Core, summaries: Summaries, game: Game) -> float:
    """Efficiency over the live atoms: Σ attribution - v(W). 0 up to rounding, or something broke."""
    if not isinstance(core.membership, Refined):
        raise StateError("the atoms were given up at their limit: there is no partition to probe")
    value, _, _ = answer_by_atoms(summaries, core.membership.refinement.live(), game)
    return value - (worth(summaries, game) or 0.0)


def _attributed(summaries: Summaries, rows: Words, game: Game) -> Attributed:
    emits = _centred(summaries, rows)
    found = attribute(
        game, moments_of(emits), emits.members.astype(np.float64), emits.item_total, emits.deviation
    )
    unit = summaries.scale.exponent * game.power
    return Attributed(*(np.ldexp(part, unit) for part in found))


def moments_of(emits: Centred) -> Moments:
    """A block of emits as the games take it."""
    return Moments(emits.players.astype(np.float64), emits.total, emits.mean, emits.central)


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
    )
