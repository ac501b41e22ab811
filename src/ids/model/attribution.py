"""Attribution: one answer."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Attribution"]


class Attribution(NamedTuple):
    """How much of the aggregate a predicate's rows account for; share + lift = value.

    ``share`` is what as many average rows would account for, ``lift`` what these do beyond it.
    ``error`` bounds the value's error at the confidence asked for (0 when exact), ``n`` is the
    number of rows in the window.
    """

    value: float
    share: float
    lift: float
    mechanism: str
    error: float
    n: int
