"""Time windows on a stream: panes are written once, and windows are worked out where they lie.

    rows ─▶ watched ─▶ not late ─▶ (key, pane) sums ─▶ a piece of the store
    windows at the last instant + panes that come - panes that go ─▶ emits

An instant has its emits once the watermark has passed it, and they are those a batch over all rows
would give, to the last bit, however the rows were split into micro-batches. All of it happens in
Spark, but for a few sums: the driver sees counts, times and the range of values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.exact import Parts
from ids.model import ItemKind, TimeWindow
from ids.plan import SelectPlan
from ids.query import with_moments
from ids.spark.cell_columns import Cells, cells_of, groupable_columns
from ids.spark.expression_sql import Typed, quoted
from ids.spark.frame import Frame, mapped
from ids.spark.spark_evaluate import Layout, exact_names, named_output, nameless, output_fields
from ids.spark.spark_prepare import (
    AHEAD,
    COUNT,
    FAULT,
    INSTANT,
    TIME,
    Faults,
    Ready,
    measure,
    ready,
)
from ids.spark.stream_ahead import LATE, WAITING, Ahead, newest, with_late, with_waiting
from ids.spark.stream_batch import Batch, Counts, Emits, Outcome, emit_schema
from ids.spark.stream_panes import (
    PANES,
    WINDOWS,
    PaneStore,
    PaneWindows,
    Span,
    ValueRange,
    both_ranges,
    is_few,
    widened,
)
from ids.spark.stream_retained import Keeper, Sampler, Turn
from ids.spark.stream_revision import Begins, Revision
from ids.spark.stream_store import Piece
from ids.spark.time_windows import panes

# The number of a task, in its first row: a counter of Spark's has it in the bits from 33 on.
_TASK, _TASK_OF = "ids_task", "spark_partition_id()"
_FIRST = f"monotonically_increasing_id() = shiftleft(cast({_TASK_OF} as bigint), 33)"
# Spark adds up what is observed in every run of a task, and runs one again, after a shuffle too,
# when the worker that has its output is lost.
_RUNS = {"runs": f"count({_TASK})", "tasks": f"size(collect_set({_TASK}))"}
_FEW_VALUES = 1_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pass over a micro-batch tells besides its panes.

    last    the last event time of a sound row, µs
    ranges  of each measure, (largest, smallest but 0) magnitude; None: nothing but 0
    raw     columns with few values, which are cheap to group by as they are
    """

    counts: Counts
    last: int | None
    ranges: tuple[ValueRange | None, ...]
    raw: tuple[str, ...]


class Collector:
    """Writes the panes of a query's micro-batches, and tells what it saw on the way."""

    def __init__(self, plan: SelectPlan, frame: Frame) -> None:
        assert isinstance(plan.window, TimeWindow)
        assert plan.window.slide is not None
        self._plan, self._columns = plan, frame.columns
        self._wordy = groupable_columns(plan.predicates, frame.columns)
        self._known: dict[tuple[str, ...], Cells] = {}

    def survey(self, rows: Ready, watermark: int | None = None) -> Seen:
        """What there is to see, without panes; one job without a shuffle."""
        watched = self._watched(rows)
        for number, name in enumerate(self._wordy):
            text = self._columns[name].text
            watched.append(F.approx_count_distinct(F.expr(text)).alias(f"words{number}"))
        (found,) = with_late(self._plan, rows, watermark).agg(*watched).toArrow().to_pylist()
        return self._seen(found)

    def collect(
        self,
        rows: Ready,
        watermark: int | None,
        raw: tuple[str, ...],
        sums: PaneStore,
    ) -> tuple[Piece, Seen]:
        """Write the panes of the rows that are not late."""
        watching = Observation()
        timed = with_late(self._plan, rows, watermark).selectExpr(
            "*", f"if({_FIRST}, {_TASK_OF}, NULL) {_TASK}"
        )
        runs = [F.expr(text).alias(name) for name, text in _RUNS.items()]
        data = timed.observe(watching, *self._watched(rows), *runs)
        # here a stage of generated code ends: what follows does not know the watermark, so that
        # the next batch finds it compiled
        data = data.filter(F.expr(f"{FAULT} IS NULL AND NOT {LATE}"))
        sound = replace(rows, data=data.withColumns(self._inside(rows, sums.layout)))
        piece = sums.write(panes(self._plan, sound, self._cells(raw), sums.layout))
        # a plan that turns out empty forgets what it has watched
        found = watching.get if piece.rows else {"runs": 1, "tasks": 0}
        once = found["runs"] == found["tasks"]
        seen = self._seen(found) if once else self.survey(rows, watermark)
        if piece.total != seen.counts.taken:
            raise sums.store.lacking(piece.name, piece.total, seen.counts.taken)
        return piece, seen

    def _cells(self, raw: tuple[str, ...]) -> Cells:
        if raw not in self._known:
            self._known[raw] = cells_of(self._plan.predicates, self._columns, raw)
        return self._known[raw]

    def _watched(self, rows: Ready) -> list[Column]:
        columns = {
            "rows": "count(*)",
            "bad": f"count_if({FAULT} IS NOT NULL AND NOT {AHEAD})",
            "ahead": f"count_if({AHEAD})",
            "late": f"count_if({LATE})",
            "last": f"max(if({FAULT} IS NULL, {TIME}, NULL))",
        }
        for number in self._measured(rows):
            value = f"if({FAULT} IS NULL AND {measure(number)} != 0, abs({measure(number)}), NULL)"
            columns[f"largest{number}"] = f"max({value})"
            columns[f"smallest{number}"] = f"min({value})"
        return [F.expr(f"{text} AS {name}") for name, text in columns.items()]

    def _measured(self, rows: Ready) -> list[int]:
        """Measures of doubles that are summed."""
        return [
            number
            for number, typed in enumerate(rows.measures)
            if typed is not None and not typed.whole and self._plan.degrees[number]
        ]

    def _inside(self, rows: Ready, layout: Layout) -> dict[str, Column]:
        """Doubles beyond their parts as 0: they are seen, and the job is run again for them."""
        guarded = {}
        for number in self._measured(rows):
            name, unit = measure(number), 2.0 ** -layout.parts[number].exponent
            inside = f"abs({name} * double('{unit!r}')) < 1.0D"
            guarded[name] = F.expr(f"if({inside} OR {name} IS NULL, {name}, 0.0D)")
        return guarded

    def _seen(self, found: dict[str, Any]) -> Seen:
        ranges = []
        for number in range(len(self._plan.measures)):
            largest = found.get(f"largest{number}")
            ranges.append(largest and (largest, found[f"smallest{number}"]))
        raw = [n for k, n in enumerate(self._wordy) if found.get(f"words{k}", 0) <= _FEW_VALUES]
        counts = Counts(found["rows"], found["late"], found["bad"], found["ahead"])
        return Seen(counts, found["last"], tuple(ranges), tuple(raw))


_INTEGER_BITS = 63
_TASK_ROWS, _MOST_TASK_ROWS = 100_000, 400_000  # of sums, in one task
# Windows are written down when they are made of so many panes, or of others so far back.
_MANY, _FAR = 8, 4
_FEW_EMITS = 100_000


@dataclass(frozen=True, slots=True)
class _Known:
    """What is remembered besides sums.

    parts          of each measure, under which new panes are written
    ranges         of the values of each measure so far; None: nothing but 0
    raw            columns to group by as they are; None until rows were seen
    last           the last event time, µs
    watermark      µs: it never goes back, whatever the lateness is after a restart
    emitted_until  instants up to this one (in slides) have had their emits
    windows_at     the instant (in slides) whose windows are written down; None: none are
    begins         of sums that older scripts did not keep
    """

    parts: tuple[Parts, ...]
    ranges: tuple[ValueRange | None, ...]
    raw: tuple[str, ...] | None = None
    last: int | None = None
    watermark: int | None = None
    emitted_until: int | None = None
    windows_at: int | None = None
    begins: Begins = field(default_factory=Begins)

    def facts(self) -> dict[str, Any]:
        """As a manifest has them; floats to the last bit."""
        kept = {name: getattr(self, own) for name, own in _STORED.items()}
        ranges = [known and [value.hex() for value in known] for known in self.ranges]
        return kept | {"reaches": ranges}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> _Known:
        """From what ``facts`` gave."""
        kept = {own: facts[name] for name, own in _STORED.items()}
        kept["parts"] = tuple(Parts(*each) for each in kept["parts"])
        ranges = [known and tuple(map(float.fromhex, known)) for known in kept["ranges"]]
        kept["raw"] = None if kept["raw"] is None else tuple(kept["raw"])
        return cls(**kept | {"ranges": tuple(ranges), "begins": Begins.of(kept["begins"])})


class _Due(NamedTuple):
    """Sums for windows that are to have their emits.

    held     a table of this process, or rows that are divided among tasks by their keys
    work     what is to be done with them
    windows  those that are written down
    few      whether the emits may come to this process
    """

    held: DataFrame | pa.Table
    work: PaneWindows
    windows: list[Piece]
    few: bool


# names in a manifest of format 2
_STORED = {
    "parts": "parts",
    "reaches": "ranges",
    "raw": "raw",
    "last": "last",
    "passed": "watermark",
    "spoken": "emitted_until",
    "stands": "windows_at",
    "begins": "begins",
}


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
        # whether an emit looks back at the window one slide before
        self._back = int(any(item.kind is ItemKind.DELTA for item in plan.items))
        self._collector = Collector(plan, frame)
        self._keeper, self._sampler = keeper, sampler

    @property
    def schema(self) -> pa.Schema:
        """Keys, ``emit_at``, ``n``, then the items."""
        return self._schema

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        """Write the micro-batch's panes, and emit at every instant the watermark has passed."""
        data = with_waiting(batch, self._columns)
        every = ready(self._inner, Frame(data, self._columns, {}))
        before = self._known(batch, every)
        ahead = Ahead(self._inner.order_by[0], batch.max_ahead, before.last, before.watermark)
        rows, counts, (known, fresh), waiting = ahead.admit(
            batch, every, lambda rows: self._taken(rows, before, batch)
        )
        if counts.bad or counts.ahead:
            on_faults(rows, counts.bad)
        reached = None if known.last is None else known.last - batch.lateness
        known = replace(known, watermark=newest(known.watermark, reached))
        sums = self._sums(batch, rows, known)
        panes, windows = self._carried(batch, sums)
        panes += fresh
        since, until = self._due(known, panes)
        due = until > since
        emitted = until if due else known.emitted_until
        turn = Turn(batch, rows, counts.taken, before.last, before.watermark, emitted)
        facts: dict[str, Any] = {}
        pieces, emits = {WAITING: waiting}, None
        for keeper in (self._keeper, self._sampler):
            if keeper is not None:
                facts[keeper.name], pieces[keeper.name] = keeper.keep(turn)
        if due:
            found = self._due_sums(sums, rows, known, panes, windows, since, until)
            emits = self._emits(sums, rows, known, found, facts, pieces)
            if found.windows is not windows:
                windows, known = found.windows, replace(known, windows_at=until)
        known = replace(known, emitted_until=emitted)
        if emitted is not None:
            known = replace(known, begins=known.begins.after(emitted))
            oldest = (emitted if known.windows_at is None else known.windows_at) - self._width
            panes = [piece for piece in panes if piece.last > oldest]
        pieces |= {PANES: sums.compact(panes), WINDOWS: windows}
        return Outcome(emits, counts, known.watermark, known.facts() | facts, pieces)

    def _due_sums(
        self,
        sums: PaneStore,
        rows: Ready,
        known: _Known,
        panes: list[Piece],
        windows: list[Piece],
        since: int,
        until: int,
    ) -> _Due:
        """The sums for the windows after one instant up to another.

        Windows are written down once they are made of panes that lie far back. If one instant is
        due and no item looks back, the sums of each key are added up first: a row is a window
        then. A few sums are a table of this process, which takes no Spark job.
        """
        written = known.windows_at
        start = since + 1 - self._back - self._width if written is None else written
        span = Span(start, until, self._width)
        ranges = span.ranges(bool(windows))
        inside = [p for p in panes if any(p.last > a and p.first <= b for a, b in ranges)]
        size = sum(piece.rows for piece in (*inside, *windows))
        few = is_few([*inside, *windows]) and (until - since) * size <= _FEW_EMITS
        tasks = _tasks(size, rows.data.sparkSession) if rows.keys else 1
        held = sums.spanned(inside, windows, span, in_driver=few and self._sampler is None)
        added = until == since + 1 and not self._back
        if added:
            held = sums.final(held, span, tasks)
        if until - start >= (_MANY if written is None else _FAR):
            ends = held if added else sums.final(held, span, tasks)
            windows = [sums.write_windows(ends, until)]
            if added and isinstance(held, DataFrame):
                held = sums.read(windows)
        if isinstance(held, DataFrame) and not added:
            held = held.repartition(tasks, *sums.key_names) if tasks > 1 else held.coalesce(1)
        back = 0 if self._sampler is None else self._sampler.back
        span = Span(since, until, self._width) if added else span
        plan, keys = self._exact, tuple(sums.key_names)
        work = PaneWindows(plan, sums.layout, keys, span, since, back, added)
        return _Due(held, work, windows, few)

    def _emits(
        self,
        sums: PaneStore,
        rows: Ready,
        known: _Known,
        due: _Due,
        facts: dict[str, Any],
        pieces: dict[str, list[Piece]],
    ) -> Emits:
        """The emits of sums that are due, by Spark's workers unless they are a table."""
        held, work, since, until = due.held, due.work, due.work.since, due.work.span.until
        begins = self._beginnings(known, facts, since)
        if isinstance(held, pa.Table):
            return Emits(self._named(work.emits(held), rows, begins), self.schema, few=True)
        longs = [T.StructField(name, T.LongType()) for name in (INSTANT, COUNT)]
        doubles = [T.StructField(name, T.DoubleType()) for name in exact_names(self._exact)]
        answers = mapped(held, work, T.StructType([*sums.keys, *longs, *doubles]))
        if self._sampler is not None:
            own, kept = facts[self._sampler.name], pieces[self._sampler.name]
            answers = self._sampler.estimated(sums.store, own, kept, answers, since, until)
        for name, begin in begins.items():
            answers = answers.withColumn(name, F.expr(f"if({INSTANT} >= {begin}L, {name}, NULL)"))
        instant = f"timestamp_micros({INSTANT} * {self._slide}L)"
        data = named_output(self._plan, answers, rows.keys, instant)
        names = [] if self._sampler is not None else ["emit_at", *self._plan.partition_by]
        order = tuple(F.col(quoted(name)).asc_nulls_first() for name in names)
        return Emits(data, self.schema, order if rows.keys else (), due.few)

    def _known(self, batch: Batch, rows: Ready) -> _Known:
        first = [self._first_parts(n, typed) for n, typed in enumerate(rows.measures)]
        if batch.facts is None:
            return _Known(tuple(first), (None,) * len(first))
        known, revision = _Known.of(batch.facts), batch.revision
        if revision is None or not revision.moves:
            return known
        return self._revised(known, revision, first, batch.pieces(PANES))

    def _revised(
        self, known: _Known, revision: Revision, first: list[Parts], panes: list[Piece]
    ) -> _Known:
        """What is known under the numbers of another script; ``first`` are parts for new sums."""
        parts: list[Parts] = list(first)
        ranges: list[ValueRange | None] = [None] * len(first)
        for number, degree in enumerate(self._inner.degrees):
            source = revision.source(number, None, 1) if degree else None
            if source is not None:
                held, ranges[number] = known.parts[source[0]], known.ranges[source[0]]
                parts[number] = held._replace(squares=2 * held.levels if degree > 1 else 0)
        last = max((piece.last for piece in panes), default=None)
        begins = known.begins.revised(revision, None if last is None else last + self._width)
        return replace(known, parts=tuple(parts), ranges=tuple(ranges), raw=None, begins=begins)

    def _carried(self, batch: Batch, sums: PaneStore) -> tuple[list[Piece], list[Piece]]:
        """The panes and the windows of the batches before."""
        panes, windows = batch.pieces(PANES), batch.pieces(WINDOWS)
        if batch.revision is None or not batch.revision.moves:
            return panes, windows
        kinds = (panes, PANES), (windows, WINDOWS)
        panes, windows = (sums.revised(some, kind, batch.revision) for some, kind in kinds)
        return panes, windows

    def _beginnings(self, known: _Known, facts: dict[str, Any], since: int) -> dict[str, int]:
        """The first instant of columns whose windows are not whole at once after ``since``."""
        found = {}
        for item in self._inner.items:
            begins = [known.begins.begin(item.measure, item.predicate, item.game.degree)]
            if item.approximate is not None and self._sampler is not None:
                begins.append(self._sampler.begin(facts[self._sampler.name]))
            begin = max((one for one in begins if one is not None), default=since)
            # a change looks back at the window one slide before
            begin += item.kind is ItemKind.DELTA
            if begin > since + 1:
                for one in output_fields(replace(self._inner, items=(item,))):
                    found[one.name] = begin
        return found

    def _named(self, answers: pa.Table, rows: Ready, begins: dict[str, int]) -> pa.Table:
        """What ``named_output`` gives, of a table of this process."""
        instant = answers.column(INSTANT)
        times = pc.multiply(instant, self._slide)
        columns = [*(answers.column(key) for key in rows.keys), times, answers.column(COUNT)]
        for name in exact_names(self._inner):
            column = answers.column(name)
            if name in begins:
                whole = pc.greater_equal(instant, begins[name])
                column = pc.if_else(whole, column, pa.scalar(None, column.type))
            columns.append(column)
        return pa.table(
            [c.cast(f.type) for c, f in zip(columns, self._schema, strict=True)],
            schema=self._schema,
        )

    def _first_parts(self, number: int, typed: Typed | None) -> Parts:
        """Integers have a range by their type; doubles show theirs when they come."""
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
            known = replace(self._widened(known, seen), raw=seen.raw)
        while True:
            sums = self._sums(batch, rows, known)
            piece, seen = self._collector.collect(rows, known.watermark, known.raw or (), sums)
            wider = self._widened(known, seen)
            if wider.parts == known.parts:
                fresh = [piece] if piece.rows else []
                return seen.counts, wider.last, (wider, fresh)
            # values that lie beyond the parts have come: once more, with parts that hold them
            known = wider

    def _widened(self, known: _Known, seen: Seen) -> _Known:
        ranges, parts = [], []
        for number, (before, now) in enumerate(zip(known.ranges, seen.ranges, strict=True)):
            both, held = both_ranges(before, now), known.parts[number]
            if both is not None and both != before:
                held = widened(held, before, both, self._inner.degrees[number])
            ranges.append(both)
            parts.append(held)
        last = newest(known.last, seen.last)
        return replace(known, parts=tuple(parts), ranges=tuple(ranges), last=last)

    def _sums(self, batch: Batch, rows: Ready, known: _Known) -> PaneStore:
        keys = tuple(rows.data.schema[name] for name in rows.keys)
        return PaneStore(batch.store, batch.number, self._inner, keys, known.parts)

    def _due(self, known: _Known, panes: list[Piece]) -> tuple[int, int]:
        """Instants (in slides) after the first, up to the second, are to have their emits now."""
        if known.watermark is None:
            return 0, 0
        # rows at the watermark itself may still come
        until = (known.watermark - 1) // self._slide
        since = known.emitted_until
        if since is None:
            since = min((piece.first for piece in panes), default=until + 1) - 1
        return since, until


def _tasks(size: int, session: SparkSession) -> int:
    """As many tasks as are worth it; beyond the number of cores, a multiple of it."""
    cores = session.sparkContext.defaultParallelism
    few = -(-size // _TASK_ROWS)
    return max(1, few) if few <= cores else cores * -(-size // (cores * _MOST_TASK_ROWS))
