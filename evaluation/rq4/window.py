"""A window of a workload: its values, what is asked about it, and what samples of it must show."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np
import pyarrow as pa

from evaluation.bench import equality, frequent, plain, where
from evaluation.step import Subject
from ids.games import GAMES, Moments

# The share of rows that equalities should hold on, about: the nearest there is, each one once.
SHARES = (0.5, 0.2, 0.1, 0.05, 0.01, 0.002)
MOST = 300  # values looked at of an attribute that has thousands: rarer ones are much alike
LEAST = 20  # rows: of fewer, most samples hold none, and nothing is learnt
RARE = 0.022  # of which (1 - RARE)**100 = 10.5 % of the samples of 100 rows hold none: the paper's


@dataclass(frozen=True)
class Window:
    """Values, predicates by their condition, and each row's stratum."""

    value: np.ndarray
    holds: dict[str, np.ndarray]
    stratum: np.ndarray

    @classmethod
    def of_events(cls, events: pa.Table, subject: Subject, **holds: np.ndarray) -> Window:
        """All these events; their strata are the values of the subject's first attribute."""
        value = events[subject.value].to_numpy().astype(np.float64)
        by = plain(events[subject.attributes[0]]).dictionary_encode(null_encoding="encode")
        stratum = by.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return cls(value, holds or conditions(events, subject), stratum)

    @cached_property
    def moments(self) -> Moments:
        """Exact up to the last bits."""
        total = fsum(self.value)
        mean = total / len(self.value)
        central = [fsum((self.value - mean) ** d) for d in range(3)]
        return Moments.of(float(len(self.value)), total, mean, central)

    def worth(self, game: str) -> float:
        """The aggregate that is explained."""
        return float(GAMES[game].worth(self.moments))

    def exact(self, game: str, name: str) -> float:
        """The attribution itself."""
        return float(self._own(game, name).sum())

    def divided(self, extremes: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the least and of the largest values, so many of each; and the rest."""
        order, last = self._order, len(self.value) - extremes
        return np.concatenate([order[:extremes], order[last:]]), order[extremes:last]

    def deviation(self, game: str, name: str, r: int, extremes: int, replacement: bool) -> float:
        """The standard deviation of the estimate from r rows, from the whole population."""
        own = self._own(game, name)[self.divided(extremes)[1]]
        left = 1.0 if replacement else 1.0 - r / len(own)
        return len(own) * float(np.std(own, ddof=1)) * float(np.sqrt(left / r))

    @cached_property
    def strata(self) -> list[np.ndarray]:
        """The rows of each stratum."""
        order = np.argsort(self.stratum, kind="stable")
        return np.split(order, np.cumsum(np.unique(self.stratum, return_counts=True)[1])[:-1])

    @cached_property
    def _order(self) -> np.ndarray:
        return np.argsort(self.value, kind="stable")

    def _own(self, game: str, name: str) -> np.ndarray:
        """Each row's own part of the attribution."""
        count, z = len(self.value), self.value - self.moments.mean
        own = np.full(count, self.worth(game) / count)
        for d, slope in enumerate(GAMES[game].slopes(self.moments), 1):
            own += float(slope) * (z**d - self.moments.central[d] / count)
        return np.where(self.holds[name], own, 0.0)


def conditions(events: pa.Table, subject: Subject) -> dict[str, np.ndarray]:
    """Equalities from common to rare, then ranges of the measure; each as SQL would say it."""
    found: dict[str, np.ndarray] = {}
    for attribute in subject.attributes:
        found |= equalities(events, attribute)
    chosen: dict[str, np.ndarray] = {}
    for share in SHARES:
        name = min(found, key=lambda each: abs(np.log(found[each].mean() / share)))
        chosen[name] = found.pop(name)
    common = dict(sorted(chosen.items(), key=lambda pair: -pair[1].mean()))
    name, y = subject.value, events[subject.value].to_numpy()
    low, middle, median, high = (np.quantile(y, q, method="lower") for q in (0.1, 0.25, 0.5, 0.95))
    return common | {
        f"{name} > {high}": y > high,
        f"{name} BETWEEN {middle} AND {median}": (y >= middle) & (y <= median),
        f"{name} < {low}": y < low,
    }


def aligned(events: pa.Table, subject: Subject) -> tuple[str, np.ndarray]:
    """The part of a rare stratum, by another attribute, whose share is nearest to the paper's."""
    first, *others = subject.attributes
    even = 1.0 / len(plain(events[first]).unique())
    found: dict[str, np.ndarray] = {}
    for stratum, rows in equalities(events, first).items():
        for other in others if rows.mean() < even else ():
            for name, holds in equalities(events, other).items():
                both = rows & holds
                if 0 < both.sum() < rows.sum():  # of a whole stratum COUNT would be exact
                    found[f"{stratum} AND {name}"] = both
    name = min(found, key=lambda each: abs(found[each].mean() - RARE))
    return name, found[name]


def equalities(events: pa.Table, attribute: str, most: int = MOST) -> dict[str, np.ndarray]:
    """The conditions ``attribute = value`` of the values that enough rows have, common first."""
    column = plain(events[attribute])
    enough = [value for value, rows in frequent(events, attribute)[:most] if rows >= LEAST]
    return {equality(attribute, value): where(column, value) for value in enough}
