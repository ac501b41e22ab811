"""A game whose players are groups of rows: what it is worth, and its Shapley values by counting.

A group is there whole or not at all. With one row a group, it is the tuple game that IDS plays;
with more, it is another game (the metagame), and its Shapley values are other numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Aggregate = Literal["AVG", "VAR_POP"]
Floats = npt.NDArray[np.float64]
Coalitions = npt.NDArray[Any]
"""[coalitions, players], 1 where a player takes part."""

_MOST = 20  # players whose coalitions are enumerated


@dataclass(frozen=True)
class GroupGame:
    """AVG or VAR_POP of the rows of those groups that take part; nothing is worth 0.

    count, total, square   float64[players]: the rows of each group, Σ y and Σ y² (for a variance,
                           of values less the window's mean, which changes no variance)

    >>> game = GroupGame.of_rows("AVG", np.array([1.0, 3.0, 8.0]), np.array([0, 0, 1]), 2)
    >>> game(np.array([[1, 0], [0, 1], [1, 1]])).tolist(), game.shapley().tolist()
    ([2.0, 8.0, 4.0], [-1.0, 5.0])
    """

    aggregate: Aggregate
    count: Floats
    total: Floats
    square: Floats

    @classmethod
    def of_rows(
        cls, aggregate: Aggregate, y: Floats, group: npt.NDArray[np.intp], groups: int
    ) -> GroupGame:
        """One pass over the window; row i belongs to ``group[i]``."""
        values = _centred(aggregate, y)
        count: Floats = np.bincount(group, minlength=groups).astype(np.float64)
        total: Floats = np.bincount(group, values, groups).astype(np.float64, copy=False)
        square: Floats = np.bincount(group, values * values, groups).astype(np.float64, copy=False)
        return cls(aggregate, count, total, square)

    @classmethod
    def of_tuples(cls, aggregate: Aggregate, y: Floats) -> GroupGame:
        """Each row is a player: the game of which IDS gives the values."""
        values = _centred(aggregate, y)
        return cls(aggregate, np.ones(len(y)), values, values * values)

    @property
    def players(self) -> int:
        """How many groups there are."""
        return len(self.count)

    def __call__(self, coalitions: Coalitions) -> Floats:
        """The worth of each coalition."""
        there = np.atleast_2d(coalitions).astype(np.float64, copy=False)
        rows = np.maximum(there @ self.count, 1.0)  # without rows the sums are 0, too
        mean: Floats = (there @ self.total) / rows
        if self.aggregate == "AVG":
            return mean
        variance: Floats = (there @ self.square) / rows - mean * mean
        return variance

    def shapley(self) -> Floats:
        """Exact, from the worth of all 2^players coalitions."""
        players = self.players
        if players > _MOST:
            raise ValueError(f"2^{players} coalitions are too many to count")
        members = (np.arange(1 << players)[:, None] >> np.arange(players)[::-1]) & 1
        worth = self(members).reshape((2,) * players)  # player i is axis i
        size = members.sum(axis=1).reshape((2,) * players)
        chance = np.array([1.0 / (players * comb(players - 1, s)) for s in range(players)])
        values = np.empty(players)
        for i in range(players):
            gain = np.take(worth, 1, i) - np.take(worth, 0, i)
            values[i] = np.sum(chance[np.take(size, 0, i)] * gain)
        return values


def _centred(aggregate: Aggregate, y: Floats) -> Floats:
    """Squares of values far from 0 would lose the digits that a variance is made of."""
    return y - y.mean() if aggregate == "VAR_POP" else y
