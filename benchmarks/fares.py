"""A window of taxi fares, questions about it, and their exact answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np
import numpy.typing as npt

from benchmarks.taxi import taxi
from ids.games import GAMES, Moments, attribute

__all__ = ["Window", "repeated"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """Fares, predicates (the rarest last), where each trip began, and the exact moments."""

    value: Floats
    holds: dict[str, npt.NDArray[np.bool_]]
    moments: Moments
    place: Integers

    @classmethod
    def of_taxi(cls, rows: int) -> Window:
        """The first trips, and ten questions from common to rare."""
        trips = taxi(rows)
        column = {name: trips[name].to_numpy(zero_copy_only=False) for name in trips.column_names}
        value = column["fare_amount"].astype(np.float64)
        pick_up, distance = column["PULocationID"], column["trip_distance"]
        places, counts = np.unique(pick_up, return_counts=True)
        # the first place that two trips in all began at: about one in 100,000
        rare = places[counts == 2][0]
        common = places[np.argsort(-counts)]
        holds = {
            "payment_type = 1": column["payment_type"] == 1,
            "payment_type = 2": column["payment_type"] == 2,
            "trip_distance > 10": distance > 10,
            "trip_distance BETWEEN 1 AND 2": (distance >= 1) & (distance <= 2),
            "trip_distance < 0.2": distance < 0.2,
            **{f"PULocationID = {p}": pick_up == p for p in common[[0, 4, 60, 120]]},
            f"PULocationID = {rare}": pick_up == rare,
        }
        return cls(value, holds, _moments(value), pick_up.astype(np.int64))

    def exact(self, game: str, holds: npt.NDArray[np.bool_]) -> float:
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
    def _order(self) -> Integers:
        return np.argsort(self.value, kind="stable")

    def divided(self, extremes: int) -> tuple[Integers, Integers]:
        """The rows of the least and of the largest fares, so many of each; and the rest."""
        order, last = self._order, len(self.value) - extremes
        return np.concatenate([order[:extremes], order[last:]]), order[extremes:last]

    def deviation(self, game: str, name: str, r: int, extremes: int, replacement: bool) -> float:
        """The standard deviation of the estimate from r rows, from the whole population."""
        rest = self.divided(extremes)[1]
        g = self._own(game, self.holds[name])[rest]
        left = 1.0 if replacement else 1.0 - r / len(g)
        return len(g) * float(np.std(g, ddof=1)) * float(np.sqrt(left / r))

    def _own(self, game: str, holds: npt.NDArray[np.bool_]) -> Floats:
        """Each row's own part of the attribution."""
        count, z = len(self.value), self.value - self.moments.mean
        own = np.full(count, float(GAMES[game].worth(self.moments)) / count)
        for d, slope in enumerate(GAMES[game].slopes(self.moments), 1):
            own += float(slope) * (z**d - self.moments.central[d] / count)
        return np.where(holds, own, 0.0)


def repeated(moments: Moments, times: int) -> Moments:
    """The same window many times, one for each trial."""
    return Moments(
        np.full(times, float(moments.players)),
        np.full(times, float(moments.total)),
        np.full(times, float(moments.mean)),
        np.repeat(moments.central.reshape(-1, 1), times, axis=1),
    )


def _moments(value: Floats) -> Moments:
    total = fsum(value)
    mean = total / len(value)
    central = [fsum((value - mean) ** d) for d in range(3)]
    return Moments.of(float(len(value)), total, mean, central)
