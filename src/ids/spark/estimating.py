"""A partition of pane samples and emits to estimates, through the in-process kernels.

Runs in Spark's Python workers, whole stretches at a time. Nothing here looks at a single row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ids.engine.answers import Answers
from ids.engine.moments import moment_items
from ids.engine.rows import Measure
from ids.engine.sampled import Population, estimated
from ids.engine.stretch import item_columns
from ids.games import Attributed
from ids.plan import SelectPlan
from ids.spark.contents import PRIORITY
from ids.spark.evaluating import item_names
from ids.spark.panes import COUNT
from ids.spark.replaying import BATCH, key_starts, measure_of
from ids.spark.rows import measure
from ids.spark.windows import INSTANT
from ids.spark.words import atoms_of

__all__ = ["AT", "IS_EMIT", "STRETCH", "Estimating"]

AT = "ids_at"
STRETCH = "ids_stretch"
IS_EMIT = "ids_is_emit"

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Estimating:
    """Rows of pane samples and emits, stretch by stretch, to emits; called with Arrow batches.

    keys      the key columns
    measured  the measures that have values
    width     panes of a window
    length    panes of a stretch
    """

    plan: SelectPlan
    keys: tuple[str, ...]
    measured: tuple[int, ...]
    width: int
    length: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [batch for batch in batches if batch.num_rows]
        if held:
            both = pa.Table.from_batches(held).combine_chunks()
            yield from self._answered(both).to_batches(max_chunksize=BATCH)

    def _answered(self, both: pa.Table) -> pa.Table:
        """The emits of some whole stretches."""
        starts = key_starts([both.column(name) for name in (*self.keys, STRETCH)], both.num_rows)
        group = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        places = self._places(both, group)
        is_emit = both.column(IS_EMIT).to_numpy()
        emitted, sampled = np.flatnonzero(is_emit), np.flatnonzero(~is_emit)
        sampled = _each_once(sampled, places, both.column(PRIORITY))
        emits, rows = both.take(pa.array(emitted)), both.take(pa.array(sampled))
        at = places[emitted]
        population = self._population(rows, places[sampled], at, emits)
        continues = np.zeros(len(at), np.bool_)
        continues[1:] = (at[1:] == at[:-1] + 1) & (group[emitted][1:] == group[emitted][:-1])
        found = estimated(self.plan, population, self._exact(emits))
        columns = {name: emits.column(name) for name in self.keys}
        columns |= {INSTANT: emits.column(AT), COUNT: emits.column(COUNT)}
        for item in self.plan.items:
            if item.name in found:
                columns |= item_columns(item, found[item.name], continues)
            else:
                columns |= {name: emits.column(name) for name in item_names(item)}
        own = emits.column(AT).to_numpy() // self.length == emits.column(STRETCH).to_numpy()
        return pa.table(columns).filter(pa.array(own))

    def _places(self, both: pa.Table, group: Integers) -> Integers:
        """Panes and instants on one line, group by group, with room before each for its reach."""
        at, stretch = (both.column(name).to_numpy() for name in (AT, STRETCH))
        room = self.length + 2 * self.width + 2
        places: Integers = group * room + (at - stretch * self.length) + self.width + 1
        return places

    def _population(
        self, rows: pa.Table, panes: Integers, at: Integers, emits: pa.Table
    ) -> Population:
        atoms, held = atoms_of(rows, len(self.plan.predicates))
        measures: list[Measure | None] = [
            measure_of(rows.column(measure(n))) if n in self.measured else None
            for n in range(len(self.plan.measures))
        ]
        return Population(
            np.array(rows.column(PRIORITY)),
            atoms,
            held,
            measures,
            np.searchsorted(panes, at, side="right"),
            np.searchsorted(panes, at - self.width, side="right"),
            emits.column(COUNT).to_numpy(),
        )

    def _exact(self, emits: pa.Table) -> Answers:
        """The exact answers and moments that came along with the emits."""
        answers = Answers.empty()
        for item in moment_items(self.plan):
            column = emits.column(item.name)
            missing = column.is_null().to_numpy()
            answers.worths[item.game.name, item.measure] = (_doubles(column), missing)
        for item in self.plan.sampled:
            assert item.predicate is not None
            key = (item.game.name, item.measure, item.predicate)
            parts = ("value", *(part.lower() for part in item.parts))
            named = zip(parts, item_names(item), strict=True)
            found = {part: _doubles(emits.column(name)) for part, name in named}
            nothing = Attributed(*(np.zeros(0) for _ in Attributed._fields))
            answers.attributions[key] = answers.attributions.get(key, nothing)._replace(**found)
        return answers


def _doubles(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    return np.ascontiguousarray(pc.fill_null(column, 0.0).to_numpy())


def _each_once(rows: Integers, places: Integers, priority: pa.ChunkedArray) -> Integers:
    """Rows by pane, each once: one may be both of the sample and an extreme."""
    keys = priority.fill_null(0).to_numpy()[rows]
    order = np.lexsort((keys, places[rows]))
    keys, panes = keys[order], places[rows][order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (keys[1:] != keys[:-1]) | (panes[1:] != panes[:-1])
    return rows[order[fresh]]
