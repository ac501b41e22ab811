"""Numbers as a reader wants them: three figures, a power of ten where it helps, the unit behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from evaluation.repeated import Repeated

__all__ = [
    "FORMATS",
    "bytes_",
    "duration",
    "interval",
    "number",
    "percent",
    "power",
    "shown",
    "times",
]

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DASH = "–"


def number(value: float | None, figures: int = 3) -> str:
    """With so many figures: ``0``, ``1,234``, ``0.0123``, ``1.2×10⁻¹⁵``.

    >>> number(1234.56), number(0.01234), number(3.1e-16), number(7)
    ('1,235', '0.0123', '3.10×10⁻¹⁶', '7')
    """
    if value is None:
        return _DASH
    if value == 0:
        return "0"
    if not isfinite(value):
        return str(value)
    place = int(f"{value:.{figures - 1}e}".partition("e")[2])  # of the rounded value: 9.999 is 10.0
    if place < -4 or place > 8:
        return power(value, figures)
    if float(value).is_integer() and place < 9:
        return f"{value:,.0f}".replace("-", "−")
    return f"{value:,.{max(0, figures - 1 - place)}f}".replace("-", "−")


def power(value: float | None, figures: int = 2) -> str:
    """Always with a power of ten.

    >>> power(4.3e5), power(0.0)
    ('4.3×10⁵', '0')
    """
    if value is None:
        return _DASH
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{figures - 1}e}".split("e")
    return f"{mantissa.replace('-', '−')}×10{str(int(exponent)).translate(_RAISED)}"


def times(value: float | None, figures: int = 3) -> str:
    """A ratio.

    >>> times(2.0)
    '2 ×'
    """
    return _DASH if value is None else f"{number(value, figures)} ×"


def percent(value: float | None, figures: int = 3) -> str:
    """A share.

    >>> percent(0.05)
    '5 %'
    """
    if value is None:
        return _DASH
    scaled = 100 * value
    near = round(scaled)
    return f"{number(near if abs(scaled - near) < 1e-9 else scaled, figures)} %"


def interval(value: Repeated, figures: int = 3) -> str:
    """The mean, and half its 95 % t-interval to the same place.

    >>> interval(Repeated((1.0, 1.0))), interval(Repeated((4.5, 4.504)))
    ('1', '4.50 ± 0.03')
    """
    mean, half = number(value.mean, figures), value.half_width
    if not half:
        return mean
    alike = f"{half:,.{len(mean.partition('.')[2])}f}"
    if "×" in mean or value.mean.is_integer() or not alike.strip("0.,"):
        alike = number(half, 2)
    return f"{mean} ± {alike}"


def duration(seconds: float | None, figures: int = 3) -> str:
    """In the unit that fits.

    >>> duration(0.0000123), duration(90.0)
    ('12.3 µs', '90 s')
    """
    if seconds is None:
        return _DASH
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= scale:
            return f"{number(seconds / scale, figures)} {unit}"
    return f"{number(seconds / 1e-9, figures)} ns"


def bytes_(count: float | None, figures: int = 3) -> str:
    """In the unit that fits.

    >>> bytes_(312), bytes_(32 * 1024 * 1024)
    ('312 B', '32 MiB')
    """
    if count is None:
        return _DASH
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(count) >= scale:
            return f"{number(count / scale, figures)} {unit}"
    return f"{number(count, figures)} B"


FORMATS: dict[str, Callable[..., str]] = {
    "number": number,
    "power": power,
    "times": times,
    "percent": percent,
    "interval": number,
    "duration": duration,
    "bytes": bytes_,
}


def shown(value: Any, spec: str = "") -> str:
    """A value in a format, which may end in how many figures it has; text stays as it is.

    >>> shown(0.05, "percent"), shown(1234.5, "power3"), shown(Repeated((4.5, 4.504))), shown(None)
    ('5 %', '1.23×10³', '4.50 ± 0.03', '–')
    """
    if value is None:
        return _DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    name, figures = re.fullmatch(r"([a-z]*)(\d?)", spec).groups()  # type: ignore[union-attr]
    given = {"figures": int(figures)} if figures else {}
    if isinstance(value, Repeated):
        if name in ("", "interval"):
            return interval(value, **given)
        value = value.mean
    if name == "text" or not isinstance(value, int | float):
        return str(value)
    return FORMATS[name or "number"](value, **given)
