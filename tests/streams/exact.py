"""Aggregates and attributions of a large window in exact integers, quick enough for 10,000 rows."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tests.oracles.shapley import lift_factor

__all__ = ["GAMES", "Answer", "Whole", "wholes"]

GAMES = ("AVG", "VAR_POP", "VAR_SAMP")

_lambda = cache(lift_factor)


class Answer(NamedTuple):
    value: Fraction
    share: Fraction
    lift: Fraction

    @property
    def size(self) -> Fraction:
        return abs(self.share) + abs(self.lift)


def wholes(values: Iterable[float]) -> tuple[list[int], int]:
    """The values as integers, and the exponent of their unit: exact."""
    exact = [float(v).as_integer_ratio() for v in values]
    bits = max((d.bit_length() - 1 for _, d in exact), default=0)
    return [n << (bits - d.bit_length() + 1) for n, d in exact], -bits


class Whole:
    """A window of N rows with N, A and B kept as integers."""

    def __init__(self, values: npt.NDArray[np.float64]) -> None:
        self.rows, exponent = wholes(values.tolist())
        self.unit = Fraction(2) ** exponent
        self.N = len(self.rows)
        self.A = sum(self.rows)
        self.spread = Fraction(self.N * sum(q * q for q in self.rows) - self.A**2, self.N)

    def worth(self, game: str) -> Fraction:
        if game == "AVG":
            return self.unit * Fraction(self.A, self.N)
        rows = self.N if game == "VAR_POP" else self.N - 1
        return self.unit**2 * self.spread / rows if rows else Fraction(0)

    def attribute(self, game: str, members: npt.NDArray[np.bool_]) -> Answer:
        own = [q for q, taken in zip(self.rows, members.tolist(), strict=True) if taken]
        m, A_P = len(own), sum(own)
        if game == "AVG":
            deviation = self.unit * (A_P - Fraction(m * self.A, self.N))
        else:
            mean = Fraction(self.A, self.N)
            D_P = sum(q * q for q in own) - 2 * mean * A_P + mean * mean * m
            deviation = self.unit**2 * (D_P - m * self.spread / self.N)
        share = Fraction(m, self.N) * self.worth(game)
        lift = _lambda(game, self.N) * deviation
        return Answer(share + lift, share, lift)
