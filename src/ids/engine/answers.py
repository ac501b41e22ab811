"""What a continuous query has computed, until it is asked for by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ids.engine.arrow import room
from ids.estimates import Estimates
from ids.games import Attributed
from ids.plan import PlannedItem

__all__ = ["Answers"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(slots=True)
class Answers:
    """Worths by (game, measure), attributions by (game, measure, predicate).

    counts   rows in the window at each emit, where the path that answered knows them already
    sampled  by name, the items that are answered from samples, a window an emit
    """

    worths: dict[tuple[str, int], tuple[Floats, Bools]]
    attributions: dict[tuple[str, int, int], Attributed]
    counts: npt.NDArray[np.int64] | None = None
    sampled: dict[str, Estimates] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> Answers:
        """Nothing yet."""
        return cls({}, {})

    @classmethod
    def room_for(cls, items: Sequence[PlannedItem], measure: int, emits: int) -> Answers:
        """Arrays for the items over one measure, to be filled."""
        answers = cls.empty()
        for item in items:
            name = item.game.name
            if (name, measure) not in answers.worths:
                answers.worths[name, measure] = (room(emits), np.zeros(emits, np.bool_))
            if item.predicate is not None:
                key = (name, measure, item.predicate)
                if key not in answers.attributions:
                    answers.attributions[key] = Attributed(room(emits), room(emits), room(emits))
        return answers

    def place(self, other: Answers, chosen: Bools) -> None:
        """Fill in what was answered at the ``chosen`` emits alone."""
        for key, pair in other.worths.items():
            for whole, part in zip(self.worths[key], pair, strict=True):
                whole[chosen] = part
        for name, attributed in other.attributions.items():
            for whole, part in zip(self.attributions[name], attributed, strict=True):
                whole[chosen] = part

    def __or__(self, other: Answers) -> Answers:
        counts = self.counts if other.counts is None else other.counts
        return Answers(
            self.worths | other.worths,
            self.attributions | other.attributions,
            counts,
            self.sampled | other.sampled,
        )

    def aggregate(self, item: PlannedItem) -> tuple[Floats, Bools]:
        """The aggregate itself, and where it is NULL."""
        return self.worths[item.game.name, item.measure]

    def attributed(self, item: PlannedItem) -> Attributed:
        """The item's value, share and lift."""
        assert item.predicate is not None
        return self.attributions[item.game.name, item.measure, item.predicate]
