"""Windows: which rows are inside, and when the query speaks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from ids.errors import ScriptError

__all__ = ["Changelog", "CountWindow", "TimeWindow", "microseconds", "span"]

_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SPOKEN = [unit for unit in _UNITS if unit != "week"]
_LONGEST = 2**62


def microseconds(span: str | timedelta | int, unit: str | None = None) -> int:
    """A span as whole microseconds; an int without a unit is microseconds already.

    >>> microseconds("10 minutes"), microseconds("1.5", "HOUR"), microseconds("1 day 2 hours")
    (600000000, 5400000000, 93600000000)
    """
    found = _microseconds(span, unit)
    if not -_LONGEST < found < _LONGEST:
        said = span if unit is None else f"{span} {unit}"
        raise ScriptError(
            f"a span of time out of range: {str(said)[:40]!r}",
            hint=f"choose one of at most {_LONGEST // _UNITS['day']:,} days",
        )
    return found


def _microseconds(span: str | timedelta | int, unit: str | None) -> int:
    if isinstance(span, timedelta):
        return span // timedelta(microseconds=1)
    if isinstance(span, int):
        return span * (_factor(unit) if unit else 1)
    if unit is not None:
        return _whole(span, unit)
    pairs = re.findall(r"([0-9.]+)\s*([A-Za-z]+)", span)
    rest = re.sub(r"([0-9.]+)\s*([A-Za-z]+)", "", span).replace(",", "").strip()
    if not pairs or rest:
        raise ScriptError(f"not a span of time: {span!r}", hint="write it as '10 minutes'")
    return sum(_whole(number, name) for number, name in pairs)


def span(duration: int) -> str:
    """Microseconds as a person says them, in the largest unit that is whole.

    >>> span(600_000_000), span(5_400_000_000), span(86_400_000_000), span(1_500)
    ('10 minutes', '90 minutes', '1 day', '1,500 microseconds')
    """
    unit = max((u for u in _SPOKEN if duration % _UNITS[u] == 0), key=lambda u: _UNITS[u])
    count = duration // _UNITS[unit]
    return f"{count:,} {unit}" + ("" if count == 1 else "s")


def _factor(unit: str) -> int:
    name = unit.lower().removesuffix("s")
    if name not in _UNITS:
        raise ScriptError(f"unknown unit of time {unit!r}", hint="known: " + ", ".join(_UNITS))
    return _UNITS[name]


def _whole(number: str, unit: str) -> int:
    factor = _factor(unit)
    try:
        # a Fraction, since 1.1 hours are 66 minutes, but no double is 1.1
        exact = Fraction(Decimal(number.strip())) * factor
    except (InvalidOperation, ValueError, OverflowError):
        raise ScriptError(f"not a number: {number!r}", hint="write it as '10' MINUTE") from None
    if exact.denominator != 1:
        raise ScriptError(f"'{number}' {unit} is not a whole number of microseconds")
    return int(exact)


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The ``size`` most recent rows, the newest included; speaks after every ``slide`` rows."""

    size: int
    slide: int = 1

    def __post_init__(self) -> None:
        if self.size < 1 or self.slide < 1:
            raise ScriptError(
                f"a count window of {self.size} rows with a slide of {self.slide}",
                hint="both must be at least 1",
            )


@dataclass(frozen=True, slots=True, init=False)
class TimeWindow:
    """The rows of (t - duration, t], at instants t that are whole multiples of ``slide``.

    Both are microseconds. Without a slide (in the engine only) t is the newest row's event time.
    """

    duration: int
    slide: int | None

    def __init__(
        self, duration: str | timedelta | int, slide: str | timedelta | int | None = None
    ) -> None:
        object.__setattr__(self, "duration", microseconds(duration))
        object.__setattr__(self, "slide", None if slide is None else microseconds(slide))
        if self.duration < 1 or (self.slide is not None and self.slide < 1):
            raise ScriptError("a time window and its slide must be longer than nothing")
        if self.slide is not None and self.duration % self.slide:
            raise ScriptError(
                f"a slide of {span(self.slide)} does not divide the window of "
                f"{span(self.duration)}",
                hint="choose a slide that does",
            )


@dataclass(frozen=True, slots=True)
class Changelog:
    """No window of our own: an upstream says which rows come and which go (``Engine.apply``).

    The engine keeps the rows inside, to refuse the deletion of one that was never there; with
    retain=False it keeps sums alone and trusts the upstream.
    """
