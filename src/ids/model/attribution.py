"""Attribution: one answer."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Attribution"]


class Attribution(NamedTuple):
    """How much of the aggregate a predicate's rows account for; share + lift = value.

    ``share`` is what as many average rows would account for, ``lift`` what these do beyond it.
    ``error`` bounds the value's error at the ``confidence`` (0 when exact), ``n`` is the number of
    rows in the window. ``why`` says what made the ``mechanism`` the one to choose, ``estimated``
    how many rows it expected to look at and ``touched`` how many it did. An estimate carries its
    standard error, and the size and the seed of the sample it came from.
    """

    value: float
    share: float
    lift: float
    mechanism: str
    error: float
    n: int
    why: str = ""
    estimated: int = 0
    touched: int = 0
    confidence: float = 1.0
    standard_error: float = 0.0
    sample_size: int = 0
    seed: int | None = None
