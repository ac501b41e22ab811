"""Scales that follow the data: more digits when values grow or shrink, sums carried exactly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.engine.core import Core
from ids.engine.incoming import Incoming
from ids.engine.refining import recount
from ids.errors import StateError
from ids.model.scale import DIGIT_BITS, Scale
from ids.predicates.truth import measure
from ids.state.scaling import fit, grid, widen
from ids.state.summaries import Summaries

__all__ = ["accommodate"]

_MARGIN = 8  # bits of head-room over the first batch's largest value


def accommodate(core: Core, incoming: Incoming, degree: int) -> None:
    """Make every measure's scale fit the rows that are coming."""
    retains = core.retained is not None
    for number, one in enumerate(incoming.measures, start=1):
        if number == len(core.measures):
            # a changelog's deletes are cut again, so its grid is laid once, with a digit to spare
            least = 2 if retains else 3
            scale = fit(one.values, one.largest, degree, margin=_MARGIN, least=least)
            atoms = len(core.measures[0].atoms)
            core.measures.append(Summaries(scale, len(core.measures[0].marginals), atoms))
            continue
        old = core.measures[number].scale
        wider = widen(old, one.values, one.largest, finer=retains)
        if wider is None:
            _refit(core, number, one.values, one.largest)
        elif wider != old:
            _widen(core, number, wider)


def _widen(core: Core, number: int, scale: Scale) -> None:
    old = core.measures[number].scale
    core.measures[number].change_scale(scale)
    below = (grid(old) - grid(scale)) // DIGIT_BITS
    top = scale.digits - old.digits - below
    if core.retained is not None and len(core.retained):
        digits = core.retained.rows[f"digits {number}"]
        core.retained.rows.put(f"digits {number}", np.pad(digits, ((0, 0), (top, below))))


def _refit(core: Core, number: int, values: npt.NDArray[np.float64], largest: float) -> None:
    """No digit left to add: cut the rows inside anew, under a coarser scale."""
    if core.retained is None or not core.has_raw:
        raise StateError(
            f"a value of magnitude {largest:g} is too far from those already summed to be added "
            "exactly; filter it upstream, or retain the window. Nothing changed"
        )
    inside = np.zeros(0)
    if len(core.retained):
        inside, players = measure(core.schema.measures[number - 1], core.retained.table())
        inside = inside if players is None else np.where(players, inside, 0.0)
    everything = np.concatenate([inside, values])
    scale = fit(everything, float(np.abs(everything).max()), core.measures[number].scale.degree)
    core.measures[number] = Summaries(scale, len(core.measures[0].marginals))
    if len(core.retained):
        core.retained.rows.put(f"digits {number}", core.measures[number].cut(inside))
    recount(core)
