"""Time windows on a stream: panes are written once, and windows are worked out where they lie.

    micro-batch ─▶ panes of the rows that are not late ─▶ a piece of the store
    windows at the last instant + panes that come - panes that go ─▶ emits

An instant has its emits once the watermark has passed it, and they are those a batch over all rows
would give, to the last bit, however the rows were split into micro-batches. All of it happens in
Spark; the driver sees counts, times and how far values reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.engine.moments import with_moments
from ids.exact import Parts
from ids.model.query import ItemKind
from ids.model.window import TimeWindow
from ids.plan import SelectPlan
from ids.spark.batch import named_output
from ids.spark.evaluating import exact_names, nameless, output_fields
from ids.spark.frames import Frame, Typed, quoted
from ids.spark.mapping import mapped
from ids.spark.panes import COUNT
from ids.spark.rows import Ready
from ids.spark.streaming.ahead import WAITING, Ahead, with_waiting
from ids.spark.streaming.collecting import Collector, Seen
from ids.spark.streaming.emits import Emits, emit_schema
from ids.spark.streaming.intake import intake
from ids.spark.streaming.pane_store import PANES, WINDOWS, PaneStore
from ids.spark.streaming.pane_windows import PaneWindows, Span
from ids.spark.streaming.retained.keeping import Keeper, Turn
from ids.spark.streaming.revision import Begins, Revision
from ids.spark.streaming.sampling import Sampler
from ids.spark.streaming.step import Batch, Counts, Faults, Outcome
from ids.spark.streaming.store import Piece
from ids.spark.streaming.widening import Reach, farther, widened
from ids.spark.windows import INSTANT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["TimeStep"]

_INTEGER_BITS = 63
_TASK_ROWS, _MOST_TASK_ROWS = 100_000, 400_000  # of sums, in one task
# Windows are written down when they are made of so many panes, or of others so far back.
_MANY, _FAR = 8, 4


@dataclass(frozen=True, slots=True)
class _Known:
    """What is remembered besides sums.

    parts    of each measure, under which new panes are written
    reaches  how far the values of each measure have reached; None: nothing but 0
    raw      columns to group by as they are; None until rows were seen
    last     the last event time, µs
    passed   the watermark, µs: it never goes back, whatever the lateness is after a restart
    spoken   instants up to this one (in slides) have had their emits
    stands   the instant (in slides) whose windows are written down; None: none are
    begins   of sums that older scripts did not keep
    """

    parts: tuple[Parts, ...]
    reaches: tuple[Reach | None, ...]
    raw: tuple[str, ...] | None = None
    last: int | None = None
    passed: int | None = None
    spoken: int | None = None
    stands: int | None = None
    begins: Begins = field(default_factory=Begins)

    def facts(self) -> dict[str, Any]:
        """As JSON has them; floats to the last bit."""
        reaches = [reach and [value.hex() for value in reach] for reach in self.reaches]
        names = ("raw", "last", "passed", "spoken", "stands", "begins")
        kept = {name: getattr(self, name) for name in names}
        return {"parts": self.parts, "reaches": reaches, **kept}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> _Known:
        """From what ``facts`` gave."""
        reaches = [reach and tuple(map(float.fromhex, reach)) for reach in facts["reaches"]]
        raw = None if facts["raw"] is None else tuple(facts["raw"])
        parts = tuple(Parts(*each) for each in facts["parts"])
        begins = Begins.of(facts["begins"])
        return cls(
            **facts | {"parts": parts, "reaches": tuple(reaches), "raw": raw, "begins": begins}
        )


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
        self._plan, self._inner, self._columns = plan, nameless(plan), frame.columns
        self._exact = with_moments(self._inner)
        self._slide, self._width = plan.window.slide, plan.window.duration // plan.window.slide
        self._collector = Collector(plan, frame)
        self._keeper, self._sampler = keeper, sampler

    @property
    def schema(self) -> pa.Schema:
        """Keys, ``emit_at``, ``n``, then the items."""
        return self._schema

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        """Write the micro-batch's panes, and speak for every instant the watermark has passed."""
        every = intake(self._inner, self._columns, with_waiting(batch, self._columns))
        before = self._known(batch, every)
        ahead = Ahead(self._inner.order_by[0], batch.max_ahead, before.last, before.passed)
        rows, counts, (known, fresh), waiting = ahead.admit(
            batch, every, lambda rows: self._taken(rows, before, batch)
        )
        if counts.bad or counts.ahead:
            on_faults(rows, counts.bad)
        newest = None if known.last is None else known.last - batch.lateness
        known = replace(known, passed=_latest(known.passed, newest))
        carried, windows = self._carried(batch, rows, known)
        panes = [*carried, *fresh]
        since, until = self._due(known, panes)
        due = until > since
        spoken = until if due else known.spoken
        turn = Turn(batch, rows, counts.taken, before.last, before.passed, spoken)
        facts: dict[str, Any] = {}
        pieces, emits = {WAITING: waiting}, None
        for keeper in (self._keeper, self._sampler):
            if keeper is not None:
                facts[keeper.name], pieces[keeper.name] = keeper.keep(turn)
        sums = self._sums(batch, rows, known)
        if due:
            start = since - self._width if known.stands is None else known.stands
            span = Span(start, until, self._width)
            ranges = span.ranges(bool(windows))
            inside = [p for p in panes if any(p.last > a and p.first <= b for a, b in ranges)]
            spanned = sums.spanned(inside, windows, span)
            size = sum(piece.rows for piece in (*inside, *windows))
            cores = rows.data.sparkSession.sparkContext.defaultParallelism
            tasks = _tasks(size, cores) if rows.keys else 1
            answers = self._answers(spanned, sums, tasks, span, since)
            if self._sampler is not None:
                name = self._sampler.name
                answers = self._sampler.estimated(
                    batch.store, facts[name], pieces[name], answers, since, until
                )
            if blank := self._blanks(known, facts, since):
                answers = answers.withColumns(blank)
            instant = f"timestamp_micros({INSTANT} * {self._slide}L)"
            data = named_output(self._plan, answers, rows.keys, instant)
            order = self._order if tasks > 1 else ()
            emits = Emits(data, self.schema, order, (until - since) * max(1, size))
            if until - start >= (_MANY if known.stands is None else _FAR):
                windows = [sums.stand(spanned, span)]
                known = replace(known, stands=until)
        known = replace(known, spoken=spoken)
        if spoken is not None:
            known = replace(known, begins=known.begins.after(spoken))
            oldest = (spoken if known.stands is None else known.stands) - self._width
            panes = [piece for piece in panes if piece.last > oldest]
        pieces |= {PANES: sums.compact(panes), WINDOWS: windows}
        return Outcome(emits, counts, known.passed, known.facts() | facts, pieces)

    def _known(self, batch: Batch, rows: Ready) -> _Known:
        first = [self._first_parts(n, typed) for n, typed in enumerate(rows.measures)]
        if batch.facts is None:
            return _Known(tuple(first), (None,) * len(first))
        # a sampler's and a keeper's lie beside them
        own = {each.name: batch.facts[each.name] for each in fields(_Known)}
        known, revision = _Known.of(own), batch.revision
        if revision is None or not revision.moves:
            return known
        return self._revised(known, revision, first, batch.pieces(PANES))

    def _revised(
        self, known: _Known, revision: Revision, first: list[Parts], panes: list[Piece]
    ) -> _Known:
        """What is known under the numbers of another script; ``first`` are parts for new sums."""
        parts: list[Parts] = list(first)
        reaches: list[Reach | None] = [None] * len(first)
        for number, degree in enumerate(self._inner.degrees):
            source = revision.source(number, None, 1) if degree else None
            if source is not None:
                held, reaches[number] = known.parts[source[0]], known.reaches[source[0]]
                parts[number] = held._replace(squares=2 * held.levels if degree > 1 else 0)
        last = max((piece.last for piece in panes), default=None)
        begins = known.begins.revised(revision, None if last is None else last + self._width)
        return replace(known, parts=tuple(parts), reaches=tuple(reaches), raw=None, begins=begins)

    def _carried(self, batch: Batch, rows: Ready, known: _Known) -> tuple[list[Piece], list[Piece]]:
        """The panes and the windows of the batches before."""
        kinds, revision = (PANES, WINDOWS), batch.revision
        if revision is None or not revision.moves:
            panes, windows = (batch.pieces(kind) for kind in kinds)
        else:
            sums = self._sums(batch, rows, known)
            panes, windows = (sums.revised(batch.pieces(k), k, revision) for k in kinds)
        return panes, windows

    def _blanks(self, known: _Known, facts: dict[str, Any], since: int) -> dict[str, Column]:
        """The columns of items whose windows are not whole at some instants after ``since``."""
        blank = {}
        for item in self._inner.items:
            begins = [known.begins.begin(item.measure, item.predicate, item.game.degree)]
            if item.approximate is not None and self._sampler is not None:
                begins.append(self._sampler.begin(facts[self._sampler.name]))
            begin = max((one for one in begins if one is not None), default=since)
            # a change looks back at the window one slide before
            begin += item.kind is ItemKind.DELTA
            if begin > since + 1:
                for one in output_fields(replace(self._inner, items=(item,))):
                    blank[one.name] = F.expr(f"if({INSTANT} >= {begin}L, {one.name}, NULL)")
        return blank

    def _first_parts(self, number: int, typed: Typed | None) -> Parts:
        """Integers have a reach by their type; doubles show theirs when they come."""
        degree = self._inner.degrees[number]
        if typed is None:
            return Parts(0, 0, 0)
        return Parts.for_integers(_INTEGER_BITS, degree) if typed.whole else Parts.fit(0, 0, degree)

    def _taken(
        self, rows: Ready, known: _Known, batch: Batch
    ) -> tuple[Counts, int | None, tuple[_Known, list[Piece]]]:
        """What is known with parts that hold the batch's values, and its panes under them."""
        if known.raw is None:
            seen = self._collector.survey(rows)
            if not seen.counts.taken:
                return seen.counts, known.last, (known, [])
            known = replace(self._reached(known, seen), raw=seen.raw)
        while True:
            sums = self._sums(batch, rows, known)
            piece, seen = self._collector.collect(rows, known.passed, known.raw or (), sums)
            reached = self._reached(known, seen)
            if reached.parts == known.parts:
                fresh = [piece] if piece.rows else []
                return seen.counts, reached.last, (reached, fresh)
            # values that lie beyond the parts have come: once more, with parts that hold them
            known = reached

    def _reached(self, known: _Known, seen: Seen) -> _Known:
        reaches, parts = [], []
        for number, (before, now) in enumerate(zip(known.reaches, seen.reaches, strict=True)):
            reach, held = farther(before, now), known.parts[number]
            if reach is not None and reach != before:
                held = widened(held, before, reach, self._inner.degrees[number])
            reaches.append(reach)
            parts.append(held)
        last = _latest(known.last, seen.last)
        return replace(known, parts=tuple(parts), reaches=tuple(reaches), last=last)

    def _sums(self, batch: Batch, rows: Ready, known: _Known) -> PaneStore:
        keys = tuple(rows.data.schema[name] for name in rows.keys)
        return PaneStore(batch.store, batch.number, self._inner, keys, known.parts)

    def _due(self, known: _Known, panes: list[Piece]) -> tuple[int, int]:
        """Instants (in slides) after the first, up to the second, are to have their emits now."""
        if known.passed is None:
            return 0, 0
        # rows at the watermark itself may still come
        until = (known.passed - 1) // self._slide
        since = known.spoken
        if since is None:
            since = min((piece.first for piece in panes), default=until + 1) - 1
        return since, until

    def _answers(
        self, spanned: DataFrame, sums: PaneStore, tasks: int, span: Span, since: int
    ) -> DataFrame:
        """The exact answers at these instants, and at those before that estimates look back at."""
        keys = [field.name for field in sums.keys]
        reach = 0 if self._sampler is None else self._sampler.reach
        work = PaneWindows(self._exact, sums.layout, tuple(keys), span, since, reach)
        longs = [T.StructField(name, T.LongType()) for name in (INSTANT, COUNT)]
        answers = [T.StructField(name, T.DoubleType()) for name in exact_names(self._exact)]
        schema = T.StructType([*sums.keys, *longs, *answers])
        divided = spanned.repartition(tasks, *keys) if tasks > 1 else spanned.coalesce(1)
        return mapped(divided, work, schema)

    @property
    def _order(self) -> tuple[Column, ...]:
        names = ["emit_at", *self._plan.partition_by]
        return tuple(F.col(quoted(name)).asc_nulls_first() for name in names)


def _tasks(size: int, cores: int) -> int:
    """As many tasks as are worth it; beyond the number of cores, a multiple of it."""
    few = -(-size // _TASK_ROWS)
    return max(1, few) if few <= cores else cores * -(-size // (cores * _MOST_TASK_ROWS))


def _latest(*times: int | None) -> int | None:
    return max((time for time in times if time is not None), default=None)
