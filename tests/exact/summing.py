"""Exact sums of rows, and a slow evaluation of the closed forms as a reference."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ids.exact import Parts, Sums, split

__all__ = ["central", "fitted", "stacked", "sums_of"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def fitted(values: Floats, degree: int = 2) -> Parts:
    sizes = np.abs(values[values != 0])
    return Parts.fit(sizes.max(initial=0.0), sizes.min(initial=np.inf), degree)


def sums_of(values: Floats, parts: Parts) -> Sums:
    """Return the sums of all values, each as an array of one window."""
    first, second = split(values, parts)
    total = [np.array([part.sum()]) for part in first], [np.array([part.sum()]) for part in second]
    return Sums(np.array([len(values)]), *total)


def stacked(many: list[Sums]) -> Sums:
    """Combine windows with the same parts into arrays."""
    return Sums(
        np.concatenate([each.count for each in many]),
        [np.concatenate(level) for level in zip(*(each.first for each in many), strict=True)],
        [np.concatenate(level) for level in zip(*(each.second for each in many), strict=True)],
    )


def central(values: Floats, held: Bools) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Return (mean, Σ (y - mean)², deviation_1, deviation_2), computed in rationals."""
    rows = [Fraction(float(v)) for v in values]
    count = max(len(rows), 1)
    mean = sum(rows, Fraction(0)) / count
    spread = sum(((y - mean) ** 2 for y in rows), Fraction(0))
    own = [y - mean for y, holds in zip(rows, held, strict=True) if holds]
    second = sum((y**2 for y in own), Fraction(0)) - spread * len(own) / count
    return mean, spread, sum(own, Fraction(0)), second
