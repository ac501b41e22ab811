"""Scales that follow the data: more digits when values grow or shrink, sums carried exactly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.engine.answering import Triple
from ids.engine.core import Core
from ids.engine.incoming import Incoming
from ids.engine.refining import recount
from ids.errors import StateError
from ids.exact import big_attribution, big_worth, sum_powers, unit_of
from ids.games import Game
from ids.model.expression import Expression
from ids.model.scale import DIGIT_BITS, Scale
from ids.predicates.truth import holds, measure
from ids.state.scaling import fit, grid, lowest_bit, uncut, widen
from ids.state.summaries import Summaries

__all__ = ["accommodate", "answer_rounded", "ease", "worth_rounded"]

Floats = npt.NDArray[np.float64]

_MARGIN = 8  # bits of head-room over the largest value


def accommodate(core: Core, incoming: Incoming, degree: int) -> None:
    """Make every measure's scale fit the rows that are coming, so that each is summed exactly.

    Where no scale holds both the largest value and the last bit of the smallest, a window that
    retains its raw rows rounds the small ones in its sums until the large ones have left
    (``ease``), and answers from the rows meanwhile; one that does not refuses the batch, and
    nothing changes.
    """
    for number, one in enumerate(incoming.measures, start=1):
        if number == len(core.measures):
            scale = _fitted(core, number, one.values, degree)
            first = core.measures[0]
            core.measures.append(Summaries(scale, len(first.marginals), len(first.atoms)))
            continue
        old = core.measures[number].scale
        if not old.digits:
            continue
        rounds = number in core.rounded
        lowest = grid(old) if rounds else lowest_bit(one.values, grid(old))
        wider = widen(old, one.largest, lowest)
        if wider is None:
            _refit(core, number, one.values)
        elif wider != old:
            _widen(core, number, wider)


def ease(core: Core) -> None:
    """Give rounded rows their bits back, once every value that needed the top digit has left."""
    for number in sorted(core.rounded & core.relieved):
        assert core.retained is not None
        if not len(core.retained) or not core.retained.rows[f"digits {number}"][:, 0].any():
            _refit(core, number, np.zeros(0))
    core.relieved.clear()


def _widen(core: Core, number: int, scale: Scale) -> None:
    old = core.measures[number].scale
    core.measures[number].change_scale(scale)
    below = (grid(old) - grid(scale)) // DIGIT_BITS
    top = scale.digits - old.digits - below
    if core.retained is not None and len(core.retained):
        digits = core.retained.rows[f"digits {number}"]
        core.retained.rows.put(f"digits {number}", np.pad(digits, ((0, 0), (top, below))))


def _refit(core: Core, number: int, coming: Floats) -> None:
    """No digit left to add: choose a scale for the rows inside and those coming, and cut anew."""
    old = core.measures[number]
    played = bool(old.window[0])
    inside = np.zeros(core.rows)
    if played:
        if core.retained is None:
            raise _too_far_apart(coming)
        inside = _inside(core, number)
    scale = _fitted(core, number, np.concatenate([inside, coming]), old.scale.degree)
    if scale == old.scale:
        return
    core.measures[number] = Summaries(scale, len(old.marginals), len(old.atoms))
    if core.retained is not None and len(core.retained):
        core.retained.rows.put(f"digits {number}", core.measures[number].cut(inside))
    if played:
        recount(core)


def _inside(core: Core, number: int) -> Floats:
    """The values of the rows inside; without raw columns no digit was ever rounded."""
    if not core.has_raw:
        return uncut(core.inside().digits[number], core.measures[number].scale)
    values, players = _players(core, number)
    return np.where(players, values, 0.0)


def _players(core: Core, number: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """A measure on the raw rows inside, and which of them take part."""
    assert core.retained is not None
    values, players = measure(core.schema.measures[number - 1], core.retained.table())
    return values, np.ones(len(values), np.bool_) if players is None else players


def worth_rounded(core: Core, number: int, game: Game) -> float | None:
    """The aggregate of a measure of which some rows are rounded: summed anew from the rows."""
    values, players = _players(core, number)
    window = sum_powers(values[players], unit_of(values[players]), game.degree)
    return None if window.rows[0] < game.nulls else float(big_worth(game, window)[0])


def answer_rounded(core: Core, number: int, game: Game, condition: Expression) -> Triple:
    """(value, share, lift) where some rows are rounded: summed anew from the rows. O(rows)."""
    assert core.retained is not None
    values, players = _players(core, number)
    unit = unit_of(values[players])
    held = players & holds(condition, core.retained.table())
    window, item = (sum_powers(values[rows], unit, game.degree) for rows in (players, held))
    value, share, lift = (float(part[0]) for part in big_attribution(game, window, item))
    return value, share, lift


def _fitted(core: Core, number: int, values: Floats, degree: int) -> Scale:
    """A scale for these values alone; notes whether it rounds some of them."""
    largest = float(np.abs(values).max(initial=0.0))
    lowest = lowest_bit(values)
    scale = fit(values, largest, degree, margin=_MARGIN, lowest=lowest)
    rounds = bool(scale.digits and grid(scale) > lowest)
    if rounds and not core.has_raw:
        raise _too_far_apart(values)
    core.rounded = core.rounded | {number} if rounds else core.rounded - {number}
    return scale


def _too_far_apart(values: Floats) -> StateError:
    largest = float(np.abs(values).max(initial=0.0))
    return StateError(
        f"values up to {largest:g} are too far from others in magnitude to be summed exactly; "
        "filter them upstream, or make the engine with retain=True. Nothing changed"
    )
