"""Numbers as a reader wants them: three figures, a power of ten where it helps, the unit behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

from evaluation.repeated import Repeated

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
_BYTES = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "B": 1}


def number(value: float, figures: int = 3) -> str:
    """With so many figures: 0, 1,235, 0.0123, 3.10×10⁻¹⁶."""
    if value == 0 or not isfinite(value):
        return f"{value:.0f}"
    place = int(f"{value:.{figures - 1}e}".partition("e")[2])  # of the rounded value: 9.999 is 10.0
    if place < -4 or place > 8:
        return power(value, figures)
    decimals = 0 if float(value).is_integer() else max(0, figures - 1 - place)
    return f"{value:,.{decimals}f}".replace("-", "−")


def power(value: float, figures: int = 2) -> str:
    """Always with a power of ten: 4.3×10⁵."""
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.{figures - 1}e}".split("e")
    return f"{mantissa.replace('-', '−')}×10{str(int(exponent)).translate(_RAISED)}"


def interval(value: Repeated, figures: int = 3) -> str:
    """The mean, and half its 95 % t-interval to the same place: 4.50 ± 0.03."""
    mean, half = number(value.mean, figures), value.half_width
    if not half:
        return mean
    alike = f"{half:,.{len(mean.partition('.')[2])}f}"
    if "×" in mean or value.mean.is_integer() or not alike.strip("0.,"):
        alike = number(half, 2)
    return f"{mean} ± {alike}"


def _percent(value: float, figures: int = 3) -> str:
    near = round(100 * value)
    return f"{number(near if abs(100 * value - near) < 1e-9 else 100 * value, figures)} %"


def _in_unit(units: Mapping[str, float]) -> Callable[..., str]:
    def spelled(value: float, figures: int = 3) -> str:
        fits = [unit for unit in units if abs(value) >= units[unit]] or list(units)[-1:]
        return f"{number(value / units[fits[0]], figures)} {fits[0]}"

    return spelled


FORMATS: dict[str, Callable[..., str]] = {
    "number": number,
    "power": power,
    "times": lambda value, figures=3: f"{number(value, figures)} ×",
    "percent": _percent,
    "interval": number,
    "duration": _in_unit(_SECONDS),
    "bytes": _in_unit(_BYTES),
}


def shown(value: Any, spec: str = "") -> str:
    """A value in a format, which may end in how many figures it has; text stays as it is."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    name = spec.rstrip("0123456789")
    given = {"figures": int(spec[len(name) :])} if spec != name else {}
    if isinstance(value, Repeated):
        if name in ("", "interval"):
            return interval(value, **given)
        value = value.mean
    if name == "text" or not isinstance(value, int | float):
        return str(value)
    return FORMATS[name or "number"](value, **given)
