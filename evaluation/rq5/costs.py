"""What one promotion and one demotion cost, over the size of the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

import pyarrow as pa

import ids
from evaluation.engines import registered
from evaluation.repeated import Repeated
from evaluation.step import Row

__all__ = ["Promotable", "costs"]

_NAME = "one_more"
_ROUNDS = 5  # of a repetition, which is their median


@dataclass
class Promotable:
    """A full window with some predicates registered, and one more to promote and demote."""

    engine: ids.Engine
    condition: str
    up: list[float] = field(default_factory=list)
    down: list[float] = field(default_factory=list)

    @classmethod
    def of(
        cls, events: pa.Table, value: str, rows: int, known: Sequence[str], condition: str
    ) -> Promotable:
        """A window of the last ``rows``; promoting and demoting is checked once, and warm."""
        conditions = {f"known_{number}": one for number, one in enumerate(known)}
        engine = registered(ids.Engine(ids.CountWindow(rows), value), conditions)
        engine.ingest(events.slice(0, rows))
        scanned, atoms = engine.attribute("AVG", condition), engine.atoms
        engine.register(_NAME, condition)
        looked_up = engine.attribute("AVG", _NAME)
        if (scanned[:3], scanned.touched > 0, looked_up.touched) != (looked_up[:3], True, 0):
            raise AssertionError(f"{condition} is another answer once it is promoted")
        engine.drop(_NAME)
        if engine.atoms != atoms:
            raise AssertionError(f"{condition} left atoms behind when it was demoted")
        return cls(engine, condition)

    def once(self, clock: Callable[[], float]) -> None:
        """One repetition: up and down a few times, the medians of both kept."""
        up, down = [], []
        for _ in range(_ROUNDS):
            start = clock()
            self.engine.register(_NAME, self.condition)
            middle = clock()
            self.engine.drop(_NAME)
            up.append(middle - start)
            down.append(clock() - middle)
        self.up.append(median(up))
        self.down.append(median(down))

    def row(self) -> Row:
        """As findings: seconds."""
        return {
            "window": self.engine.rows,
            "atoms": self.engine.atoms,
            "promotion": Repeated.of(self.up),
            "promotion_a_tuple": Repeated.of(self.up).scaled(1 / self.engine.rows),
            "demotion": Repeated.of(self.down),
        }


def costs(
    windows: Sequence[Promotable], repetitions: int, clock: Callable[[], float] = perf_counter
) -> list[Row]:
    """Windows of several sizes, taking turns."""
    for _ in range(repetitions):
        for window in windows:
            window.once(clock)
    return [window.row() for window in windows]
