"""Attribution: one answer."""

from __future__ import annotations

from typing import NamedTuple


class Attribution(NamedTuple):
    """How much of the aggregate a predicate's rows account for; share + lift = value.

    ``share`` is what as many average rows would account for, ``lift`` what these do beyond it.
    ``error`` bounds the value's error at the ``confidence`` (0 when exact), ``n`` is the number of
    rows in the window. ``why`` says what made the ``mechanism`` the one to choose, ``estimated``
    how many rows it expected to look at and ``touched`` how many it did. An estimate carries its
    standard error, and the size and the seed of the sample it came from.

    >>> Attribution(82.5, 19.0, 63.5, "compositional", 0.0, 4, why="registered names")
    Attribution(value=82.5, share=19.0, lift=63.5, mechanism='compositional', n=4)
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

    def __repr__(self) -> str:
        bound = f"error={self.error!r}, confidence={self.confidence!r}, " if self.error else ""
        return (
            f"Attribution(value={self.value!r}, share={self.share!r}, lift={self.lift!r}, "
            f"mechanism={self.mechanism!r}, {bound}n={self.n!r})"
        )
