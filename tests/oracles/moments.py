"""One window many times over: what many samples of the same window are estimated against."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

__all__ = ["repeated"]

Fields = TypeVar("Fields", bound=tuple[np.ndarray, ...])


def repeated(moments: Fields, times: int) -> Fields:
    """The moments of one window, each field with an axis of so many equal windows at its end."""
    return type(moments)(*(np.repeat(np.array(each)[..., None], times, -1) for each in moments))
