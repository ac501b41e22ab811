"""Time windows on a stream: one Spark job a micro-batch, whose panes are added to those before.

    micro-batch ─▶ panes of the rows that are not late ─▶ windows the watermark has passed

An instant has its emits once the watermark has passed it, and they are those a batch over all rows
would give, to the last bit, however the rows were split into micro-batches.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ids.engine.moments import with_moments
from ids.exact import Parts
from ids.model.window import TimeWindow
from ids.plan import SelectPlan
from ids.spark.evaluating import nameless, output_names
from ids.spark.frames import Frame, Typed
from ids.spark.panes import COUNT
from ids.spark.rows import Ready, key
from ids.spark.streaming.ahead import Ahead, with_waiting
from ids.spark.streaming.answering import answer_columns
from ids.spark.streaming.collecting import Collector, Seen, arrow_type
from ids.spark.streaming.emits import emit_schema
from ids.spark.streaming.intake import intake
from ids.spark.streaming.pane_table import Panes
from ids.spark.streaming.retained.keeping import Keeper, Turn
from ids.spark.streaming.sampling import Sampler
from ids.spark.streaming.standing import instants, standing
from ids.spark.streaming.step import Batch, Counts, Faults, Outcome
from ids.spark.streaming.time_state import TimeState
from ids.spark.streaming.widening import farther, widened
from ids.spark.windows import INSTANT

__all__ = ["TimeStep"]

_INTEGER_BITS = 63


class TimeStep:
    """The step of a query with a time window (see ``Step``)."""

    def __init__(
        self,
        plan: SelectPlan,
        frame: Frame,
        keeper: Keeper | None = None,
        sampler: Sampler | None = None,
    ) -> None:
        assert isinstance(plan.window, TimeWindow)
        assert plan.window.slide is not None
        self._schema = emit_schema(plan, frame)
        self._plan, self._columns = nameless(plan), frame.columns
        self._exact = with_moments(self._plan)
        self._slide, self._width = plan.window.slide, plan.window.duration // plan.window.slide
        self._keys = [frame.columns[name] for name in plan.partition_by]
        self._collector = Collector(plan, frame)
        self._keepers = [each for each in (keeper, sampler) if each is not None]
        self._sampler = sampler

    @property
    def schema(self) -> pa.Schema:
        """Keys, ``emit_at``, ``n``, then the items."""
        return self._schema

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        """Add the micro-batch's panes, and speak for every instant the watermark has passed."""
        every = intake(
            self._plan, self._columns, with_waiting(batch.data, self._columns, batch.before)
        )
        before = self._state(batch, every)
        ahead = Ahead(self._plan.order_by[0], batch.max_ahead, before.last, before.passed)
        rows, counts, (state, panes) = ahead.admit(
            every, batch.fresh, lambda rows: self._taken(rows, before)
        )
        if counts.bad or counts.ahead:
            on_faults(rows, counts.bad)
        merged = state.panes.merged(panes)
        newest = None if state.last is None else state.last - batch.lateness
        passed = _latest(state.passed, newest)
        state = replace(state, passed=passed, panes=merged)
        since, until = self._due(state)
        spoken = until if until > since else state.spoken
        turn = Turn(batch.number, rows, counts.taken, before.last, before.passed, spoken)
        emits = self._emits(state, since, until, turn, batch)
        if spoken is not None:
            merged = merged.take(merged.pane > spoken - self._width)
        after = replace(state, spoken=spoken, panes=merged)
        after.save(batch.fresh)
        for keeper in self._keepers:
            keeper.keep(turn, batch.before, batch.fresh)
        return Outcome(emits, counts, passed, len(after.panes))

    def _state(self, batch: Batch, rows: Ready) -> TimeState:
        if batch.before is not None:
            return TimeState.load(self._plan, batch.before)
        parts = [self._first_parts(n, typed) for n, typed in enumerate(rows.measures)]
        return TimeState.first(self._plan, parts, [arrow_type(typed) for typed in self._keys])

    def _first_parts(self, number: int, typed: Typed | None) -> Parts:
        """Integers have a reach by their type; doubles show theirs when they come."""
        degree = self._plan.degrees[number]
        if typed is None:
            return Parts(0, 0, 0)
        return Parts.for_integers(_INTEGER_BITS, degree) if typed.whole else Parts.fit(0, 0, degree)

    def _taken(
        self, rows: Ready, state: TimeState
    ) -> tuple[Counts, int | None, tuple[TimeState, Panes]]:
        """The state with parts that hold the batch's values, and the batch's panes under them."""
        if state.raw is None:
            seen = self._collector.survey(rows)
            if not seen.counts.taken:
                empty = Panes.empty([column.type for column in state.panes.keys], 0)
                none = replace(empty, sums=state.panes.sums[:, :0])
                return seen.counts, state.last, (state, none)
            state = replace(self._reached(state, seen), raw=seen.raw)
        while True:
            panes, seen = self._collector.collect(rows, state)
            reached = self._reached(state, seen)
            if reached.layout == state.layout:
                return seen.counts, reached.last, (reached, panes)
            # values that lie beyond the parts have come: once more, with parts that hold them
            state = reached

    def _reached(self, state: TimeState, seen: Seen) -> TimeState:
        reaches, parts = [], []
        for number, (before, now) in enumerate(zip(state.reaches, seen.reaches, strict=True)):
            reach, held = farther(before, now), state.layout.parts[number]
            if reach is not None and reach != before:
                held = widened(held, before, reach, self._plan.degrees[number])
            reaches.append(reach)
            parts.append(held)
        reached = replace(state.with_parts(self._plan, parts), reaches=tuple(reaches))
        return replace(reached, atoms=seen.atoms, last=_latest(state.last, seen.last))

    def _due(self, state: TimeState) -> tuple[int, int]:
        """Instants (in slides) after the first, up to the second, are to have their emits now."""
        if state.passed is None:
            return 0, 0
        # rows at the watermark itself may still come
        until = (state.passed - 1) // self._slide
        since = state.spoken
        if since is None:
            since = int(state.panes.pane.min(initial=until + 1)) - 1
        return since, until

    def _emits(
        self, state: TimeState, since: int, until: int, turn: Turn, batch: Batch
    ) -> pa.Table:
        """The emits of every instant after ``since`` up to ``until``."""
        if until <= since:
            return self.schema.empty_table()
        table = self._answers(state, since, until)
        if self._sampler is not None and table.num_rows:
            table = self._sampler.estimated(turn, batch.before, table, since, until)
        names = [*(key(n) for n in range(len(self._keys))), INSTANT, COUNT]
        columns = [table.column(name) for name in (*names, *output_names(self._plan))]
        at = len(self._keys)
        columns[at] = pc.multiply(columns[at], self._slide)
        fields = zip(columns, self.schema, strict=True)
        return pa.table([column.cast(field.type) for column, field in fields], schema=self.schema)

    def _answers(self, state: TimeState, since: int, until: int) -> pa.Table:
        """The exact answers at these instants, and at those before that estimates look back at."""
        # SHAPLEY_DELTA looks back by an instant
        windows = standing(state.panes, self._width, since, until)
        first = since + 1 - (0 if self._sampler is None else self._sampler.reach)
        spoken = instants(windows, first, until)
        chosen = pa.array(windows.row[spoken.window])
        columns = {key(n): column.take(chosen) for n, column in enumerate(state.panes.keys)}
        columns[INSTANT] = pa.array(spoken.instant)
        sizes = windows.sums[state.layout.sums.index(COUNT)]
        columns[COUNT] = pa.array(sizes[spoken.window])
        return pa.table(columns | answer_columns(self._exact, state.layout, windows, spoken))


def _latest(*times: int | None) -> int | None:
    return max((time for time in times if time is not None), default=None)
