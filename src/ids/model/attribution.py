"""Attribution: one answer."""

from __future__ import annotations

from typing import NamedTuple


class Attribution(NamedTuple):
    """How much of the aggregate a predicate's rows account for; share + lift = value.

    ``share`` is what the same number of average rows would account for, and ``lift`` is the rest.
    ``error`` bounds the value's error at the given ``confidence`` (0 if the value is exact); ``n``
    is the number of rows in the window. ``reason`` explains why the ``mechanism`` was chosen,
    ``rows_expected`` is how many rows it was expected to read and ``rows_read`` how many it read.
    An estimate also has its standard error, and the size and the seed of its sample.

    >>> Attribution(82.5, 19.0, 63.5, "compositional", 0.0, 4, reason="registered names")
    Attribution(value=82.5, share=19.0, lift=63.5, mechanism='compositional', n=4)
    """

    value: float
    share: float
    lift: float
    mechanism: str
    error: float
    n: int
    reason: str = ""
    rows_expected: int = 0
    rows_read: int = 0
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
