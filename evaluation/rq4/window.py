"""A window of values, questions about it, their exact answers, and what samples must show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np
import numpy.typing as npt

from ids.games import GAMES, Moments, attribute

__all__ = ["Window"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Window:
    """Values, predicates by their condition, each row's stratum, and the exact moments."""

    value: Floats
    holds: dict[str, Booleans]
    stratum: Integers
    moments: Moments

    @classmethod
    def of(cls, value: Floats, holds: dict[str, Booleans], stratum: Integers) -> Window:
        """With the moments of these values."""
        total = fsum(value)
        mean = total / len(value)
        central = [fsum((value - mean) ** d) for d in range(3)]
        return cls(value, holds, stratum, Moments.of(float(len(value)), total, mean, central))

    def worth(self, game: str) -> float:
        """The aggregate that is explained."""
        return float(GAMES[game].worth(self.moments))

    def exact(self, game: str, holds: Booleans) -> float:
        """The attribution itself."""
        own = self.value[holds]
        count, central = len(self.value), self.moments.central
        deviation = [
            [[((own - self.moments.mean) ** d).sum() - len(own) / count * central[d]]]
            for d in (1, 2)
        ]
        sums = np.array([[float(len(own))]]), np.array([[own.sum()]]), np.array(deviation)
        return float(attribute(GAMES[game], self.moments, *sums).value[0, 0])

    @cached_property
    def squares(self) -> float:
        """Σ y²."""
        return fsum(self.value**2)

    @cached_property
    def largest(self) -> float:
        """The largest |y|: M in Eq. 6."""
        return float(np.abs(self.value).max())

    @cached_property
    def _order(self) -> Integers:
        return np.argsort(self.value, kind="stable")

    def divided(self, extremes: int) -> tuple[Integers, Integers]:
        """The rows of the least and of the largest values, so many of each; and the rest."""
        order, last = self._order, len(self.value) - extremes
        return np.concatenate([order[:extremes], order[last:]]), order[extremes:last]

    def deviation(self, game: str, name: str, r: int, extremes: int, replacement: bool) -> float:
        """The standard deviation of the estimate from r rows, from the whole population."""
        rest = self.divided(extremes)[1]
        g = self._own(game, self.holds[name])[rest]
        left = 1.0 if replacement else 1.0 - r / len(g)
        return len(g) * float(np.std(g, ddof=1)) * float(np.sqrt(left / r))

    def _own(self, game: str, holds: Booleans) -> Floats:
        """Each row's own part of the attribution."""
        count, z = len(self.value), self.value - self.moments.mean
        own = np.full(count, self.worth(game) / count)
        for d, slope in enumerate(GAMES[game].slopes(self.moments), 1):
            own += float(slope) * (z**d - self.moments.central[d] / count)
        return np.where(holds, own, 0.0)
