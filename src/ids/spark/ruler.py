"""A ruler for the first ORDER BY column: values to bucket numbers, never out of order.

Equal values fall into one bucket. Numbers and instants are divided evenly between the smallest and
the largest, or at quantiles where they crowd; a text counts by the bytes after the beginning that
all texts share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ids.model.table import Kind
from ids.spark.frames import Typed
from ids.spark.sources.canonical import spell

__all__ = ["BUCKETS", "Ruler"]

BUCKETS = 1024

_BYTES = 7  # of a text: as many as a BIGINT holds
_WIDEST = 2**62


@dataclass(frozen=True, slots=True)
class Ruler:
    """Buckets 0 … ``buckets - 1`` of a value.

    number  SQL of a BIGINT or DOUBLE that ascends with the value
    bucket  SQL of the value's bucket
    """

    number: str
    bucket: str
    buckets: int

    @classmethod
    def between(cls, value: Typed, low: Any, high: Any) -> Ruler:
        """Even buckets between the smallest and the largest (of a DOUBLE: finite) value."""
        if low is None or high is None or low == high:
            return cls("0L", "0", 1)
        if value.kind is Kind.TEXT:
            number = _texts(value.text, low.encode(), high.encode())
            return _even(number, 0, 256**_BYTES - 1)
        if value.kind is Kind.BOOLEAN:
            return _even(f"cast({value.text} as bigint)", 0, 1)
        if value.kind is Kind.NUMBER and not value.whole:
            return _even_doubles(value.text, float(low), float(high))
        if high - low >= _WIDEST:
            return _even_doubles(f"cast({value.text} as double)", float(low), float(high))
        return _even(value.text, low, high)

    def at(self, quantiles: Sequence[float | int]) -> Ruler:
        """Buckets that part at the given values of ``number`` instead."""
        steps = sorted({q for q in quantiles if isfinite(q)})
        return Ruler(self.number, _search(self.number, steps, 0, len(steps)), len(steps) + 1)


def _even(number: str, low: int, high: int) -> Ruler:
    width = -(-(high - low + 1) // BUCKETS)
    bucket = f"cast((({number}) - {_whole(low)}) div {width}L as int)"
    return Ruler(number, bucket, (high - low) // width + 1)


def _whole(number: int) -> str:
    return f"({number}L)" if number > -(2**63) else f"({number + 1}L - 1L)"


def _even_doubles(number: str, low: float, high: float) -> Ruler:
    """In halves, so that no difference overflows; infinities and NaN go to the ends."""
    span = high * 0.5 - low * 0.5
    factor = BUCKETS / span if span else 0.0
    if not (isfinite(factor) and factor > 0.0):
        return Ruler(number, "0", 1)
    place = f"(({number}) * 0.5D - double('{low * 0.5!r}')) * double('{factor!r}')"
    bucket = f"cast(greatest(0.0D, least({BUCKETS - 1}.0D, {place})) as int)"
    return Ruler(number, bucket, BUCKETS)


def _texts(text: str, low: bytes, high: bytes) -> str:
    """The first bytes in which texts between ``low`` and ``high`` differ, as one number."""
    shared = 0
    while shared < min(len(low), len(high)) and low[shared] == high[shared]:
        shared += 1
    some = f"substring(cast({text} as binary), {shared + 1}, {_BYTES})"
    return f"cast(conv(rpad(hex({some}), {2 * _BYTES}, {spell('0')}), 16, 10) as bigint)"


def _search(number: str, steps: Sequence[float | int], first: int, last: int) -> str:
    """How many of the ascending ``steps`` are below the number."""
    if first == last:
        return str(first)
    middle = (first + last) // 2
    step = steps[middle]
    spelled = _whole(step) if isinstance(step, int) else f"double('{step!r}')"
    below = _search(number, steps, first, middle)
    above = _search(number, steps, middle + 1, last)
    return f"if(({number}) <= {spelled}, {below}, {above})"
