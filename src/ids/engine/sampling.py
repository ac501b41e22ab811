"""The sample beside the summaries: it follows every slide, for answers that may be estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ids.engine.incoming import Incoming, Schema
from ids.engine.rows import Measure, evaluate_measure
from ids.model.sampling import Sampling, extremes_of
from ids.model.table import Table
from ids.model.window import CountWindow, TimeWindow
from ids.state.retained import TIME, Retained
from ids.state.sample import SEQUENCE, Drawing, WindowSample
from ids.state.sliding import Array

__all__ = ["STRATUM", "Sampler", "draw_from"]

STRATUM = "stratum"

Words = npt.NDArray[np.int64]


class Sampler:
    """A WindowSample and the arrival numbers it goes by.

    The retained window keeps each row's number and stratum, so that expiry can say which left.
    """

    def __init__(
        self, schema: Schema, sampling: Sampling, window: CountWindow | TimeWindow
    ) -> None:
        self.sampling = sampling
        self.schema = schema
        self.arrived = 0
        self.sample = WindowSample(schema.kinds, len(schema.measures), sampling, window)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows that may still be drawn."""
        return self.sample.nbytes

    def looks_at(self, size: int) -> int:
        """How many rows a question to a sample of that size looks at, about."""
        parts = max(1, self.sample.parts)
        return size * parts + 2 * min(self.sampling.taken_whole, extremes_of(size))

    def columns(self, table: Table) -> dict[str, Array]:
        """What the retained window keeps of rows for the sample's sake."""
        numbers = np.arange(self.arrived, self.arrived + table.rows, dtype=np.int64)
        return {SEQUENCE: numbers, STRATUM: self.sample.strata_of(table)}

    def refuse(self, incoming: Incoming) -> None:
        """Before anything changes: rows that no sample can take in are refused."""
        self.sample.refuse(incoming.table, incoming.times)

    def enter(self, incoming: Incoming, sequence: Words) -> None:
        """Rows came in."""
        self.arrived += len(sequence)
        self._enter(incoming.table, incoming.measures, incoming.times, sequence)

    def _enter(
        self, table: Table, measures: Sequence[Measure], times: Words | None, sequence: Words
    ) -> None:
        values = [measure.values for measure in measures]
        players = [measure.players for measure in measures]
        self.sample.enter(table, values, players, times, sequence)

    def expire(self, retained: Retained, left: Array) -> None:
        """Rows of these strata left at the front; what is retained now is what is inside."""
        oldest = None
        if len(retained):
            rows = retained.rows
            time = int(rows[TIME].view(np.int64)[0]) if TIME in rows else 0
            oldest = time, int(rows[SEQUENCE].view(np.int64)[0])
        self.sample.expire(oldest, left.view(np.int32))

    def redraw(self, retained: Retained) -> None:
        """Rows left from the middle: draw anew from those inside, under the numbers they have."""
        self.sample.clear()
        if len(retained):
            table = retained.table()
            measures = [evaluate_measure(m, table) for m in self.schema.measures]
            times = retained.rows[TIME].view(np.int64) if TIME in retained.rows else None
            self._enter(table, measures, times, retained.rows[SEQUENCE].view(np.int64))

    def facts(self) -> dict[str, Any]:
        """What a checkpoint holds of it as JSON; ``arrays`` are the rest."""
        return {"arrived": self.arrived, "sample": self.sample.facts()}

    def arrays(self) -> dict[str, Array]:
        """What a checkpoint holds of it as arrays."""
        return self.sample.arrays()

    def adopt(self, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Go on from such facts and arrays."""
        self.arrived = facts["arrived"]
        self.sample.adopt(facts["sample"], arrays)


def draw_from(retained: Retained, schema: Schema, sampling: Sampling, measure: int) -> Drawing:
    """A sample drawn on the spot from the rows inside, where none of that size is kept."""
    table = retained.table()
    window = CountWindow(max(1, table.rows))
    sampler = Sampler(schema, replace(sampling, strata=(), replacement=False), window)
    numbers = np.arange(table.rows, dtype=np.int64)
    if SEQUENCE in retained.rows:
        numbers = retained.rows[SEQUENCE].view(np.int64)
    if table.rows:
        measures = tuple(evaluate_measure(m, table) for m in schema.measures)
        sampler.enter(Incoming(table, measures, None, None, 0), numbers)
    return sampler.sample.drawn(measure)
