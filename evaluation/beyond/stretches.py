"""The taxi days in stretches to be read side by side: months, or of a single month its weeks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from statistics import fmean
from typing import Any

__all__ = ["NAMES", "Stretch", "stretches"]

NAMES = ("Manhattan", "Queens", "Brooklyn", "Bronx", "elsewhere")
_WEEK = 7


@dataclass(frozen=True)
class Stretch:
    """Some days of trips: the mean of their weekly averages, and each borough's part of it.

    Parts are means of parts over the same windows, so they add up to the average.
    """

    label: str
    average: float
    parts: dict[str, float]


def stretches(rows: Sequence[dict[str, Any]]) -> list[Stretch]:
    """By month where there are several; else windows that do not overlap, a week each."""
    days = sorted(rows, key=lambda row: str(row["day"]))
    months: dict[str, list[dict[str, Any]]] = {}
    for row in days:
        months.setdefault(f"{date.fromisoformat(row['day']):%b %Y}", []).append(row)
    if len(months) > 1:
        return [_stretch(label, among) for label, among in months.items()]
    weeks = days[::_WEEK]
    return [_stretch(f"{date.fromisoformat(row['day']):%-d %b %Y}", [row]) for row in weeks]


def _stretch(label: str, rows: Sequence[dict[str, Any]]) -> Stretch:
    parts = {name: fmean(row[name.lower()] for row in rows) for name in NAMES}
    return Stretch(label, fmean(row["average"] for row in rows), parts)
