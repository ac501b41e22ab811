"""Scales that follow the data: more digits when values grow or shrink, sums carried exactly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.engine.core import Core
from ids.engine.incoming import Incoming
from ids.engine.refining import recount
from ids.engine.rows import Measure
from ids.errors import StateError
from ids.model.scale import DIGIT_BITS, Scale
from ids.predicates.truth import measure
from ids.state.scaling import fit, grid, lowest_bit, widen
from ids.state.summaries import Summaries

__all__ = ["accommodate", "ease"]

Floats = npt.NDArray[np.float64]

_MARGIN = 8  # bits of head-room over the first batch's largest value
_FINE = -4096  # below the last bit of every double


def accommodate(core: Core, incoming: Incoming, degree: int) -> None:
    """Make every measure's scale fit the rows that are coming, so that each is summed exactly.

    Where no scale holds both the largest value and the last bit of the smallest, a window with
    its raw rows rounds the small ones until the large ones have left (``ease``); one without
    refuses the batch, and nothing changes.
    """
    for number, one in enumerate(incoming.measures, start=1):
        if number == len(core.measures):
            _append(core, _fitting(core, one.values, one.largest, degree))
            continue
        old = core.measures[number].scale
        if not old.digits:
            continue
        wider = widen(old, one.largest, lowest_bit(one.values, grid(old)))
        if wider is None:
            _refit(core, number, one)
        elif wider != old:
            _widen(core, number, wider)


def ease(core: Core) -> None:
    """After expiry: rows that had to be rounded get their bits back once there is room."""
    for number in sorted(core.rounded):
        _refit(core, number, Measure(np.zeros(0), None, 0.0))


def _append(core: Core, scale: Scale) -> None:
    first = core.measures[0]
    core.measures.append(Summaries(scale, len(first.marginals), len(first.atoms)))


def _fitting(core: Core, values: Floats, largest: float, degree: int) -> Scale:
    scale = fit(values, largest, degree, margin=_MARGIN, lowest=lowest_bit(values, _FINE))
    return scale


def _widen(core: Core, number: int, scale: Scale) -> None:
    old = core.measures[number].scale
    core.measures[number].change_scale(scale)
    below = (grid(old) - grid(scale)) // DIGIT_BITS
    top = scale.digits - old.digits - below
    if core.retained is not None and len(core.retained):
        digits = core.retained.rows[f"digits {number}"]
        core.retained.rows.put(f"digits {number}", np.pad(digits, ((0, 0), (top, below))))
