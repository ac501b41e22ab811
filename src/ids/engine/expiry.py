"""Expiry: which of the oldest rows are outside a window now."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ids.engine.core import Core
from ids.engine.settings import Window
from ids.model.window import CountWindow, TimeWindow
from ids.state.retained import TIME

__all__ = ["expiring"]


def expiring(window: Window, core: Core, newest: int | None) -> int:
    """How many of the oldest rows have left the window; ``newest`` is the latest time seen.

    A time window without a slide ends at the newest row, one with a slide at the next multiple.
    """
    if isinstance(window, CountWindow):
        return max(0, core.rows - window.size)
    if isinstance(window, TimeWindow) and newest is not None and core.rows:
        assert core.retained is not None
        now = newest if window.slide is None else -(-newest // window.slide) * window.slide
        times: npt.NDArray[np.int64] = core.retained.rows[TIME].view(np.int64)
        return int(np.searchsorted(times, now - window.duration, side="right"))
    return 0
