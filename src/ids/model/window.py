"""Windows, and the time they are measured in: durations and timestamps in microseconds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from operator import index
from typing import Any

import numpy as np

from ids.errors import ArgumentError

Duration = str | timedelta | int
Instant = int | datetime | np.datetime64


def as_whole(given: Any) -> int | None:
    """Convert a whole number of Python or NumPy to an int; return None for anything else.

    >>> as_whole(5), as_whole(True), as_whole(5.0), as_whole("5")
    (5, None, None, None)
    """
    if isinstance(given, bool):
        return None
    try:
        return index(given)
    except TypeError:
        return None


_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
# Case-sensitive, because M could mean months.
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


def microseconds(duration: Duration, unit: str | None = None) -> int:
    """Convert a duration to whole microseconds; a number without a unit is in microseconds.

    >>> microseconds("10 minutes"), microseconds("1.5", "HOUR"), microseconds("1 day 2 hours")
    (600000000, 5400000000, 93600000000)
    >>> microseconds("1h 30m"), microseconds("250ms"), microseconds("0.1s")
    (5400000000, 250000, 100000)
    """
    exact = _exact(duration, unit)
    shown = repr(duration) if unit is None else f"'{duration}' {unit}"
    if exact.denominator != 1:
        raise ArgumentError(f"{shown} is not a whole number of microseconds")
    if exact < 0:
        raise ArgumentError(f"a duration cannot be negative: {shown}")
    if exact >= _LONGEST:
        written = duration if unit is None else f"{duration} {unit}"
        raise ArgumentError(
            f"duration out of range: {str(written)[:40]!r}",
            f"use at most {_LONGEST // _UNITS['day']:,} days",
        )
    return int(exact)


def span(duration: int) -> str:
    """Format a duration in microseconds for a person, in the largest unit that is whole.

    >>> span(600_000_000), span(5_400_000_000), span(86_400_000_000), span(1_500)
    ('10 minutes', '90 minutes', '1 day', '1,500 microseconds')
    """
    unit = [u for u in _UNITS if u != "week" and duration % _UNITS[u] == 0][-1]
    count = duration // _UNITS[unit]
    return f"{count:,} {unit}" + ("" if count == 1 else "s")


def _exact(duration: Duration, unit: str | None) -> Fraction:
    whole = as_whole(duration)
    if whole is not None:
        return Fraction(whole * (_factor(unit) if unit else 1))
    if isinstance(duration, timedelta):
        # a pandas Timedelta also has nanoseconds
        nanoseconds = getattr(duration, "nanoseconds", 0)
        return Fraction(duration // _MICROSECOND) + Fraction(nanoseconds, 1_000)
    if isinstance(duration, str) and unit is not None:
        return _number(duration.strip()) * _factor(unit)
    parts = _PART.findall(duration) if isinstance(duration, str) else []
    if not parts or _PART.sub("", str(duration)).strip():
        other = "" if isinstance(duration, str) else "; or give a timedelta, or whole microseconds"
        raise ArgumentError(f"not a duration: {duration!r}", _FORMS + other)
    exact = Fraction(0)
    for number, name in parts:
        exact += _number(number) * _factor(_SHORT.get(name, name), _FORMS)
    return exact


def _factor(unit: str, hint: str = _NAMES) -> int:
    name = unit.lower().removesuffix("s")
    if name not in _UNITS:
        raise ArgumentError(f"unknown unit of time {unit!r}", hint)
    return _UNITS[name]


def _number(digits: str) -> Fraction:
    try:
        return Fraction(Decimal(digits))  # Decimal accepts more digits than int does
    except (InvalidOperation, ValueError, OverflowError):
        raise ArgumentError(f"not a number: {digits!r}", "write it as '10' MINUTE") from None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = 290_000  # before and after 1970: the range of 64-bit microseconds
_LARGEST_OFFSET = timedelta(hours=18)  # from UTC, as in Java
_TIMESTAMP = re.compile(
    r"""\s*\+?(?P<year>\d{4})
    (?:-(?P<month>\d{1,2})
    (?:-(?P<day>\d{1,2})
    (?:[ T](?P<hour>\d{1,2})
    (?::(?P<minute>\d{1,2})
    (?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d*))?)?)?
    \s*+(?:Z|(?:UTC|GMT|UT)?(?:(?P<sign>[+-])(?:
        (?P<hours>\d{1,2})(?::(?P<minutes>[0-5]?\d)(?::(?P<seconds>[0-5]\d))?)?
        |(?P<hh>\d{2})(?P<mm>[0-5]\d)(?P<ss>[0-5]\d)?))?)
    )?)?)?\s*""",
    re.VERBOSE | re.ASCII,
)


def parse_timestamp(text: str, *, with_time: bool = True) -> datetime | None:
    """Parse a timestamp and convert it to UTC; return None if the text is not a timestamp.

    The format is ``year[-month[-day[ hour[:minute[:second[.fraction]]][zone]]]]``, as in Spark: a T
    may replace the blank, digits beyond microseconds are cut off, and a time without a zone is UTC.
    A zone is ``Z``, ``UTC``, ``GMT``, ``UT`` or an offset of at most 18 hours; unlike in Spark, it
    may follow the hour or the minute. Zone names such as Europe/Paris, times without a date and
    years outside 1 to 9999 are not accepted. With ``with_time=False`` only a date is accepted.

    >>> parse_timestamp("2024-3-1 12:30+02:00")
    datetime.datetime(2024, 3, 1, 10, 30, tzinfo=datetime.timezone.utc)
    >>> parse_timestamp("yesterday") is None
    True
    """
    match = _TIMESTAMP.fullmatch(text)
    if match is None or (match["hour"] and not with_time):
        return None
    year, month, day = (int(match[name] or 1) for name in ("year", "month", "day"))
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    fraction = int((match["fraction"] or "")[:6].ljust(6, "0"))
    offset = timedelta(
        hours=int(match["hours"] or match["hh"] or 0),
        minutes=int(match["minutes"] or match["mm"] or 0),
        seconds=int(match["seconds"] or match["ss"] or 0),
    )
    if offset > _LARGEST_OFFSET:
        return None
    zone = timezone(-offset if match["sign"] == "-" else offset)
    try:
        local = datetime(year, month, day, hour, minute, second, fraction, zone)
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def microseconds_of(instant: datetime) -> int:
    """Convert to whole microseconds since 1970 UTC; naive datetimes are treated as UTC."""
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def to_microseconds(instant: Instant) -> int | None:
    """Convert to microseconds since 1970 UTC; return None if ``instant`` is not an instant.

    Whole numbers are microseconds already. An instant without a zone is in UTC. Nanoseconds are
    rounded down, as they are in columns.

    >>> to_microseconds(datetime(1970, 1, 2)), to_microseconds(np.datetime64("1970-01-02"))
    (86400000000, 86400000000)
    """
    if isinstance(instant, np.datetime64):
        if np.isnat(instant) or abs(int(instant.astype("datetime64[Y]").astype(int))) > _YEARS:
            return None
        return int(instant.astype("datetime64[us]").astype(np.int64))
    if isinstance(instant, datetime):
        return microseconds_of(instant) if instant == instant else None  # NaT differs from itself
    found = as_whole(instant)
    return found if found is not None and -(2**63) <= found < 2**63 else None


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The ``size`` most recent rows, including the newest; emits after every ``slide`` rows."""

    size: int
    slide: int = 1

    def __post_init__(self) -> None:
        size, slide = as_whole(self.size), as_whole(self.slide)
        if size is None or slide is None:
            raise ArgumentError(
                f"a count window of {self.size!r} rows with a slide of {self.slide!r}",
                "give whole numbers, as in ids.CountWindow(1000, slide=10); for a duration use "
                "ids.TimeWindow('10 minutes')",
            )
        if size < 1 or slide < 1:
            fact = f"a count window of {size} rows with a slide of {slide}"
            raise ArgumentError(fact, "both must be at least 1")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "slide", slide)

    @classmethod
    def preceding(cls, rows: int, slide: int, *, and_current: bool) -> CountWindow:
        """The frame ``ROWS n PRECEDING``: the n most recent rows, including the newest.

        ``ROWS BETWEEN n PRECEDING AND CURRENT ROW`` has n + 1 rows, as in standard SQL.
        """
        return cls(rows + and_current, slide)


@dataclass(frozen=True, slots=True, init=False)
class TimeWindow:
    """The rows in (t - duration, t], for each t that is a whole multiple of ``slide``.

    Both are in microseconds. Without a slide (only in the engine), t is the newest row's event
    time.
    """

    duration: int
    slide: int | None

    def __init__(self, duration: Duration, slide: Duration | None = None) -> None:
        object.__setattr__(self, "duration", microseconds(duration))
        object.__setattr__(self, "slide", None if slide is None else microseconds(slide))
        if self.duration < 1 or (self.slide is not None and self.slide < 1):
            raise ArgumentError("the duration and the slide of a time window must be positive")
        if self.slide is not None and self.duration % self.slide:
            raise ArgumentError(
                f"a slide of {span(self.slide)} does not divide the window of "
                f"{span(self.duration)}",
                "choose a slide that divides it",
            )


@dataclass(frozen=True, slots=True)
class Changelog:
    """A window defined by an upstream changelog of inserted and deleted rows (``Engine.apply``).

    The engine retains the rows in the window, so that it can reject the deletion of a row that was
    never inserted. With retain=False it keeps only sums and trusts the upstream.
    """
