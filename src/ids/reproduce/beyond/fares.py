"""Exact answers for fares, slow and obvious: fractions, and no state at all."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

__all__ = ["average", "average_part", "harmonic", "variance"]

_BITS = 256  # of a harmonic number, after the point: far below the last bit of any double


def average(fares: Sequence[float]) -> Fraction:
    """The mean, exactly."""
    return sum(map(Fraction, fares), Fraction()) / len(fares)


def variance(fares: Sequence[float]) -> Fraction:
    """The variance of the whole population, exactly."""
    mean = average(fares)
    return sum(((Fraction(fare) - mean) ** 2 for fare in fares), Fraction()) / len(fares)


def harmonic(n: int) -> Fraction:
    """1 + 1/2 + … + 1/n, each term cut at 2⁻²⁵⁶.

    >>> abs(harmonic(3) - Fraction(11, 6)) < Fraction(1, 2**250)
    True
    """
    return Fraction(sum((1 << _BITS) // k for k in range(1, n + 1)), 1 << _BITS)


def average_part(fares: Sequence[float], inside: Sequence[bool]) -> Fraction:
    """The Shapley value of the rows inside, of AVG over all of them, straight from its orders.

    A row that comes first brings its own fare y. One that comes after s others, whose mean is on
    average that of all the others, moves the mean by (y - that) / (s + 1). All places are equally
    likely, so each row has (y + (y - mean of the others) · (H(N) - 1)) / N.
    """
    n, total = len(fares), sum(map(Fraction, fares), Fraction())
    mine = [Fraction(fare) for fare, counts in zip(fares, inside, strict=True) if counts]
    if n == 1:
        return sum(mine, Fraction())
    others = sum(((total - fare) / (n - 1) for fare in mine), Fraction())
    own = sum(mine, Fraction())
    return (own + (own - others) * (harmonic(n) - 1)) / n
