"""Windows: which rows are inside, and when the query emits; spans of time and counts of rows.

Numbers and flags are Python's or NumPy's, and no text that looks like one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Real
from operator import index
from typing import Any

from ids.errors import ScriptError


def as_whole(given: Any) -> int | None:
    """``given`` as an int; None where it is no whole number.

    >>> as_whole(5), as_whole(True), as_whole(5.0), as_whole("5")
    (5, None, None, None)
    """
    if isinstance(given, bool):
        return None
    try:
        return index(given)
    except TypeError:
        return None


def is_number(given: Any) -> bool:
    """Whether it is a real number; True is none."""
    return isinstance(given, Real) and not isinstance(given, bool)


def checked_count(name: str, given: Any, least: int = 0) -> int:
    """The argument ``name`` as an int, no less than ``least``."""
    whole = as_whole(given)
    if whole is None or whole < least:
        raise ScriptError(f"{name}={given!r}", hint=f"give a whole number, {least} or more")
    return whole


def checked_flag(name: str, given: Any) -> bool:
    """The argument ``name``, which is True or False."""
    if type(given).__name__ not in ("bool", "bool_"):  # bool_: NumPy's, not imported here
        raise ScriptError(f"{name}={given!r}", hint="give True or False")
    return bool(given)


_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
# In lower case only: M might mean months.
_SHORT = {
    "us": "microsecond",
    "ms": "millisecond",
    "s": "second",
    "sec": "second",
    "m": "minute",
    "min": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([A-Za-z]+)[\s,]*", re.ASCII)
_FORMS = "write it as '10 seconds', '1h 30m' or '250ms'; the short units are w, d, h, m, s, ms, us"
_NAMES = "known: " + ", ".join(_UNITS)
_LONGEST = 2**62
_MICROSECOND = timedelta(microseconds=1)

Duration = str | timedelta | int


def microseconds(span: Duration, unit: str | None = None) -> int:
    """A span of time as whole microseconds; a number without a unit is microseconds already.

    >>> microseconds("10 minutes"), microseconds("1.5", "HOUR"), microseconds("1 day 2 hours")
    (600000000, 5400000000, 93600000000)
    >>> microseconds("1h 30m"), microseconds("250ms"), microseconds("0.1s")
    (5400000000, 250000, 100000)
    """
    exact = _exact(span, unit)
    shown = repr(span) if unit is None else f"'{span}' {unit}"
    if exact.denominator != 1:
        raise ScriptError(f"{shown} is not a whole number of microseconds")
    if exact < 0:
        raise ScriptError(f"a span of time cannot be negative: {shown}")
    if exact >= _LONGEST:
        said = span if unit is None else f"{span} {unit}"
        raise ScriptError(
            f"a span of time out of range: {str(said)[:40]!r}",
            hint=f"choose one of at most {_LONGEST // _UNITS['day']:,} days",
        )
    return int(exact)


def span(duration: int) -> str:
    """Microseconds as a person says them, in the largest unit that is whole.

    >>> span(600_000_000), span(5_400_000_000), span(86_400_000_000), span(1_500)
    ('10 minutes', '90 minutes', '1 day', '1,500 microseconds')
    """
    unit = [u for u in _UNITS if u != "week" and duration % _UNITS[u] == 0][-1]
    count = duration // _UNITS[unit]
    return f"{count:,} {unit}" + ("" if count == 1 else "s")


def _exact(span: Duration, unit: str | None) -> Fraction:
    whole = as_whole(span)
    if whole is not None:
        return Fraction(whole * (_factor(unit) if unit else 1))
    if isinstance(span, timedelta):
        # pandas' own has nanoseconds on top
        return Fraction(span // _MICROSECOND) + Fraction(getattr(span, "nanoseconds", 0), 1_000)
    if isinstance(span, str) and unit is not None:
        return _number(span.strip()) * _factor(unit)
    parts = _PART.findall(span) if isinstance(span, str) else []
    if not parts or _PART.sub("", str(span)).strip():
        other = "" if isinstance(span, str) else "; or give a timedelta, or whole microseconds"
        raise ScriptError(f"not a span of time: {span!r}", hint=_FORMS + other)
    exact = Fraction(0)
    for number, name in parts:
        exact += _number(number) * _factor(_SHORT.get(name, name), _FORMS)
    return exact


def _factor(unit: str, hint: str = _NAMES) -> int:
    name = unit.lower().removesuffix("s")
    if name not in _UNITS:
        raise ScriptError(f"unknown unit of time {unit!r}", hint=hint)
    return _UNITS[name]


def _number(digits: str) -> Fraction:
    try:
        return Fraction(Decimal(digits))  # which reads more digits than an int does
    except (InvalidOperation, ValueError, OverflowError):
        raise ScriptError(f"not a number: {digits!r}", hint="write it as '10' MINUTE") from None


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The ``size`` most recent rows, the newest included; emits after every ``slide`` rows."""

    size: int
    slide: int = 1

    def __post_init__(self) -> None:
        size, slide = as_whole(self.size), as_whole(self.slide)
        if size is None or slide is None:
            fact = f"a count window of {self.size!r} rows with a slide of {self.slide!r}"
            hint = "give whole numbers, as in ids.CountWindow(1000, slide=10)"
            raise ScriptError(fact, hint=f"{hint}; for a span of time ids.TimeWindow('10 minutes')")
        if size < 1 or slide < 1:
            fact = f"a count window of {size} rows with a slide of {slide}"
            raise ScriptError(fact, hint="both must be at least 1")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "slide", slide)

    @classmethod
    def preceding(cls, rows: int, slide: int, *, and_current: bool) -> CountWindow:
        """The frame ``ROWS n PRECEDING``: the paper's n most recent rows, the newest included.

        ``ROWS BETWEEN n PRECEDING AND CURRENT ROW`` holds n + 1 rows, as in standard SQL.
        """
        return cls(rows + and_current, slide)


@dataclass(frozen=True, slots=True, init=False)
class TimeWindow:
    """The rows of (t - duration, t], at instants t that are whole multiples of ``slide``.

    Both are microseconds. Without a slide (in the engine only) t is the newest row's event time.
    """

    duration: int
    slide: int | None

    def __init__(self, duration: Duration, slide: Duration | None = None) -> None:
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
