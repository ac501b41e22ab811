"""Timestamps: the text that names one, read as Spark reads it, and microseconds since 1970 UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import numpy as np

from ids.model.window import as_whole

Instant = int | datetime | np.datetime64


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = 290_000  # either side of 1970, in microseconds of 64 bits
_FARTHEST = timedelta(hours=18)  # of a zone from UTC, as in Java
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
    """The instant a text names, in UTC; None when it names none.

    The text is ``year[-month[-day[ hour[:minute[:second[.fraction]]][zone]]]]``, as in Spark: T may
    stand for the blank, digits beyond microseconds are cut off, the time is UTC without a zone. A
    zone is ``Z``, ``UTC``, ``GMT``, ``UT`` or an offset of at most 18 hours. Unlike in Spark it may
    follow the hour or the minute; names such as Europe/Paris, times without a date and years
    outside 1 to 9999 are not read. Without ``with_time`` the text must be a date alone.

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
    if offset > _FARTHEST:
        return None
    zone = timezone(-offset if match["sign"] == "-" else offset)
    try:
        local = datetime(year, month, day, hour, minute, second, fraction, zone)
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def microseconds_of(instant: datetime) -> int:
    """Whole microseconds since 1970 UTC, exactly; an instant without a zone is in UTC."""
    aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def to_microseconds(instant: Instant) -> int | None:
    """Microseconds since 1970 UTC, nanoseconds floored as in columns; None for what is no instant.

    A whole number is microseconds already. An instant without a zone is in UTC.

    >>> to_microseconds(datetime(1970, 1, 2)), to_microseconds(np.datetime64("1970-01-02"))
    (86400000000, 86400000000)
    """
    if isinstance(instant, np.datetime64):
        if np.isnat(instant) or abs(int(instant.astype("datetime64[Y]").astype(int))) > _YEARS:
            return None
        return int(instant.astype("datetime64[us]").astype(np.int64))
    if isinstance(instant, datetime):
        return microseconds_of(instant) if instant == instant else None  # pandas' NaT is not
    found = as_whole(instant)
    return found if found is not None and -(2**63) <= found < 2**63 else None
