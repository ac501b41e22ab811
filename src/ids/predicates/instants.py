"""Instants as text, which is read as Spark reads it, and as microseconds since 1970 UTC."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import numpy as np

from ids.model.whole import as_whole

Instant = int | datetime | np.datetime64

__all__ = ["Instant", "microseconds_of", "parse_instant", "to_microseconds"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS = 290_000  # either side of 1970, in microseconds of 64 bits
_INSTANT = re.compile(
    r"""\s*(?P<year>\d{4})
    (?:-(?P<month>\d{1,2})
    (?:-(?P<day>\d{1,2})
    (?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2})
    (?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?)?
    \s*(?P<zone>Z|UTC|[+-]\d{1,2}(?::?\d{2})?)?
    )?)?)?\s*""",
    re.VERBOSE | re.ASCII,
)


def parse_instant(text: str) -> datetime | None:
    """The instant a text names (UTC when it names no zone), or None when it names none.

    >>> parse_instant("2024-03-01 12:30+02:00")
    datetime.datetime(2024, 3, 1, 10, 30, tzinfo=datetime.timezone.utc)
    >>> parse_instant("yesterday") is None
    True
    """
    match = _INSTANT.fullmatch(text)
    if match is None:
        return None
    part = match.groupdict()
    fraction = (part["fraction"] or "")[:6].ljust(6, "0")
    try:
        local = datetime(
            int(part["year"]),
            int(part["month"] or 1),
            int(part["day"] or 1),
            int(part["hour"] or 0),
            int(part["minute"] or 0),
            int(part["second"] or 0),
            int(fraction),
            tzinfo=_zone(part["zone"]),
        )
        return local.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _zone(text: str | None) -> timezone:
    if text is None or text in ("Z", "UTC"):
        return UTC
    digits = text[1:].replace(":", "")
    hours, minutes = (digits, "0") if len(digits) <= 2 else (digits[:-2], digits[-2:])
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(-offset if text[0] == "-" else offset)


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
