"""Time windows on a stream: each batch writes its panes, and emits the windows that are due.

A pane contains the sums over the rows of one slide. A piece is a directory of Parquet files that
one batch has written.

    rows ─▶ statistics ─▶ not late ─▶ sums by key and pane ─▶ a piece
    windows at the last instant + panes that enter - panes that expire ─▶ emits

Emits of an instant are written once the watermark has passed it. They equal those of a batch query
over all rows, to the last bit, however the rows are split into micro-batches. The driver sees only
counts, times and the range of values, unless there are so few sums that it computes the emits
itself.

APPROXIMATE items and questions (``ids.spark.ask``) require retained rows, which ``Keeper`` stores:

    valid rows, not late ─▶ panes that have not expired ─▶ a piece ─▶ estimates

Estimates use only panes before the watermark. No more rows can arrive in these, so the sample
contains the same rows as in a batch query over all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.exact import Parts
from ids.model import ItemKind
from ids.plan import SelectPlan
from ids.query import with_moments
from ids.spark.expression_sql import Typed, quoted
from ids.spark.frame import Frame, mapped
from ids.spark.spark_approximate import estimated_windows
from ids.spark.spark_evaluate import exact_names, named_output, nameless, output_fields
from ids.spark.spark_prepare import (
    COUNT,
    FAULT,
    INSTANT,
    PANE,
    TIME,
    Faults,
    Ready,
    pane_of,
    ready,
    slide_and_width,
)
from ids.spark.stream_batch import (
    WAITING,
    Ahead,
    Batch,
    Counts,
    Emits,
    Outcome,
    emit_schema,
    newest,
    with_waiting,
)
from ids.spark.stream_checkpoint import Begins, Revision
from ids.spark.stream_panes import (
    PANES,
    WINDOWS,
    Collector,
    PaneStore,
    PaneWindows,
    Seen,
    Span,
    ValueRange,
    both_ranges,
    is_few,
    widened,
)
from ids.spark.stream_question import RETAINED, KeptRows
from ids.spark.stream_store import Piece, Store, alike

_INTEGER_BITS = 63
_TASK_ROWS, _MOST_TASK_ROWS = 100_000, 400_000  # rows of sums in one task
# Windows are stored when they span this many panes, or this many slides after they were last.
_MANY, _FAR = 8, 4
_FEW_EMITS = 100_000

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


@dataclass(frozen=True, slots=True)
class _Known:
    """The state of the step, apart from the stored sums.

    parts          the parts of each measure, for new panes
    ranges         the range of each measure's values so far; None: all values are 0
    raw            the columns to group by directly; None until the first rows arrive
    last           the last event time, µs
    watermark      µs; it never decreases, even if the lateness changes at a restart
    emitted_until  instants up to this one (in slides) have been emitted
    windows_at     the instant (in slides) of the stored windows; None: none are stored
    begins         sums added at a restart that are not complete yet
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
        """Return the state as JSON values for a manifest, with floats exact to the last bit."""
        kept = {name: getattr(self, own) for name, own in _STORED.items()}
        ranges = [known and [value.hex() for value in known] for known in self.ranges]
        return kept | {"reaches": ranges}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> _Known:
        """Restore the state from the values that ``facts`` returned."""
        kept = {own: facts[name] for name, own in _STORED.items()}
        kept["parts"] = tuple(Parts(*each) for each in kept["parts"])
        ranges = [known and tuple(map(float.fromhex, known)) for known in kept["ranges"]]
        kept["raw"] = None if kept["raw"] is None else tuple(kept["raw"])
        return cls(**kept | {"ranges": tuple(ranges), "begins": Begins.of(kept["begins"])})


class _Due(NamedTuple):
    """The sums of the windows that are due.

    held     the sums: a table in the driver, or a DataFrame that is partitioned by key
    work     computes the emits from the sums
    windows  the pieces of stored windows after this batch
    few      whether there are few enough emits to collect them in the driver
    """

    held: DataFrame | pa.Table
    work: PaneWindows
    windows: list[Piece]
    few: bool


class Keeper:
    """Retains the rows of a query's window, in pieces of kind ``name``."""

    def __init__(self, plan: SelectPlan, frame: Frame, script: str, name: str = RETAINED) -> None:
        self.name = name
        self._texts = [typed.text for typed in frame.columns.values()]
        columns = {
            name: replace(typed, text=f"c{number}")
            for number, (name, typed) in enumerate(frame.columns.items())
        }
        unsupported = dict(frame.unsupported)
        self._nothing = KeptRows(columns, unsupported, *slide_and_width(plan), script)

    def keep(
        self, batch: Batch, rows: Ready, fresh: int, before: _Known, emitted_until: int | None
    ) -> tuple[dict[str, Any], list[Piece]]:
        """Store those rows of a batch that are valid and not late, ``fresh`` in number.

        Returns the values for the manifest and the pieces after the batch. ``before`` is the state
        before the batch; ``emitted_until`` is the last instant emitted when the batch ends.
        """
        kept = self._known(batch, before.last)
        # Only rows that expired before this batch are dropped; samples of its emits use the others.
        pieces = [
            piece
            for piece in kept.pieces_of(batch.before, self.name)
            if kept.expired is None or piece.last > kept.expired
        ]
        if fresh:
            pieces.append(self._written(batch, rows, fresh, before.watermark))
        pieces = self._merged(kept, pieces, batch)
        return replace(kept, emitted_until=emitted_until).facts(), pieces

    def _known(self, batch: Batch, last: int | None) -> KeptRows:
        """Return a description of the rows stored so far with the same columns."""
        facts, nothing = batch.facts or {}, self._nothing
        known = KeptRows.of(facts[self.name]) if self.name in facts else None
        if known is not None and known.columns == nothing.columns:
            return replace(known, unsupported=nothing.unsupported, script=nothing.script)
        if last is None:
            return nothing
        return replace(nothing, since=-(-last // nothing.slide), begun=batch.number)

    def _written(self, batch: Batch, rows: Ready, fresh: int, watermark: int | None) -> Piece:
        """Write those rows of the batch that are valid and not late."""
        sound = f"{FAULT} IS NULL"
        if watermark is not None:
            sound += f" AND {TIME} >= {watermark}L"
        named = [f"{text} AS c{number}" for number, text in enumerate(self._texts)]
        pane = f"{pane_of(self._nothing.slide)} AS {PANE}"
        data = rows.data.filter(sound).selectExpr(pane, *named)
        piece = batch.store.write(data, batch.number, self.name, panes=PANE)
        if piece.rows != fresh:
            raise batch.store.lacking(piece.name, piece.rows, fresh)
        return piece

    def _merged(self, kept: KeptRows, pieces: Sequence[Piece], batch: Batch) -> list[Piece]:
        """Merge small pieces if there are enough of them, and return all pieces."""
        chosen = alike(pieces)
        if not chosen:
            return list(pieces)
        rows = kept.read(batch.store, chosen)
        if kept.expired is not None:
            rows = rows.filter(F.col(PANE) > kept.expired)
        name = f"{self.name}-merged"
        merged = batch.store.write(rows.coalesce(1), batch.number, name, panes=PANE)
        others = [piece for piece in pieces if piece not in chosen]
        return [merged, *others] if merged.rows else others


class Sampler(Keeper):
    """Retains the columns that a query reads, and estimates its APPROXIMATE items from them."""

    def __init__(self, plan: SelectPlan, frame: Frame, script: str) -> None:
        self._plan, (_, self._width) = nameless(plan), slide_and_width(plan)
        read = {name: frame.columns[name] for name in sorted(plan.columns)}
        super().__init__(plan, Frame(frame.data, read, {}), script, "sampled")

    @property
    def back(self) -> int:
        """How many instants before an emit are needed to estimate it: 1 for SHAPLEY_DELTA."""
        return int(any(item.kind is ItemKind.DELTA for item in self._plan.sampled))

    def begin(self, facts: Mapping[str, Any]) -> int | None:
        """Return the first instant whose window is fully retained; None if all windows are."""
        since = KeptRows.of(dict(facts)).since
        return None if since is None else since + self._width

    def estimated(
        self,
        store: Store,
        facts: Mapping[str, Any],
        pieces: Sequence[Piece],
        answers: DataFrame,
        since: int,
        until: int,
    ) -> DataFrame:
        """Return the emits after instant ``since`` up to ``until``, with sampled items estimated.

        ``keep`` returned ``facts`` and ``pieces``. ``answers`` contains the exact values and the
        moments at these instants, and at ``back`` instants before them.
        """
        kept = KeptRows.of(dict(facts))
        first = since + 1 - self.back - self._width + 1
        some = [piece for piece in pieces if piece.last >= first and piece.first <= until]
        data = kept.read(store, some).filter(F.col(PANE).between(first, until))
        rows = ready(self._plan, Frame(data, kept.columns, kept.unsupported))
        emits = estimated_windows(self._plan, rows, answers).filter(F.col(INSTANT) > since)
        keys = [F.col(name).asc_nulls_first() for name in rows.keys]
        return emits.orderBy(INSTANT, *keys)


class TimeStep:
    """The step of a query with a time window (see ``Step``)."""

    def __init__(self, plan: SelectPlan, frame: Frame, script: str, retain: bool) -> None:
        self.schema = emit_schema(plan, frame)
        self._plan, self._inner, self._columns = plan, nameless(plan), frame.columns
        self._exact = with_moments(self._inner)
        self._slide, self._width = slide_and_width(plan)
        # 1 if an emit also needs the window one slide before it, else 0
        self._back = int(any(item.kind is ItemKind.DELTA for item in plan.items))
        self._collector = Collector(plan, frame)
        self._keeper = Keeper(plan, frame, script) if retain else None
        self._sampler = Sampler(plan, frame, script) if plan.sampled else None

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        """Write the micro-batch's panes, and return the emits of instants before the watermark."""
        data = with_waiting(batch, self._columns)
        every = ready(self._inner, Frame(data, self._columns, {}))
        before = self._known(batch, every)
        ahead = Ahead(self._inner.order_by[0], batch.max_ahead, before.last, before.watermark)
        rows, counts, (known, fresh), waiting = ahead.admit(
            batch, every, on_faults, lambda rows: self._taken(rows, before, batch)
        )
        reached = None if known.last is None else known.last - batch.lateness
        known = replace(known, watermark=newest(known.watermark, reached))
        sums = self._sums(batch, rows, known)
        panes, windows = self._carried(batch, sums)
        panes += fresh
        since, until = self._due(known, panes)
        due = until > since
        emitted = until if due else known.emitted_until
        facts: dict[str, Any] = {}
        pieces, emits = {WAITING: waiting}, None
        for keeper in (self._keeper, self._sampler):
            if keeper is not None:
                facts[keeper.name], pieces[keeper.name] = keeper.keep(
                    batch, rows, counts.taken, before, emitted
                )
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
        """Return the sums for the windows after instant ``since`` up to ``until``.

        Windows are stored once computing them requires many older panes. If only one instant is due
        and no item needs the previous window, the sums are first added up to one row per key. If
        there are few sums, the driver reads them without a Spark job.
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
        """Compute the emits from the sums that are due: in the driver if these are a table."""
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
        """Return the state renumbered for a changed script; ``first`` has parts for new sums."""
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
        """Return the pieces of panes and windows that previous batches have stored."""
        panes, windows = batch.pieces(PANES), batch.pieces(WINDOWS)
        if batch.revision is None or not batch.revision.moves:
            return panes, windows
        kinds = (panes, PANES), (windows, WINDOWS)
        panes, windows = (sums.revised(some, kind, batch.revision) for some, kind in kinds)
        return panes, windows

    def _beginnings(self, known: _Known, facts: dict[str, Any], since: int) -> dict[str, int]:
        """Return the first non-NULL instant of each column that is NULL just after ``since``."""
        found = {}
        for item in self._inner.items:
            begins = [known.begins.begin(item.measure, item.predicate, item.game.degree)]
            if item.approximate is not None and self._sampler is not None:
                begins.append(self._sampler.begin(facts[self._sampler.name]))
            begin = max((one for one in begins if one is not None), default=since)
            # SHAPLEY_DELTA also needs the window one slide before
            begin += item.kind is ItemKind.DELTA
            if begin > since + 1:
                for one in output_fields(replace(self._inner, items=(item,))):
                    found[one.name] = begin
        return found

    def _named(self, answers: pa.Table, rows: Ready, begins: dict[str, int]) -> pa.Table:
        """Return a table's columns under their output names, like ``named_output`` on Spark."""
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
            [c.cast(f.type) for c, f in zip(columns, self.schema, strict=True)],
            schema=self.schema,
        )

    def _first_parts(self, number: int, typed: Typed | None) -> Parts:
        """Return the parts of a measure before any value is known.

        Those of an integer measure cover all integers; those of a double measure are chosen later.
        """
        degree = self._inner.degrees[number]
        if typed is None:
            return Parts(0, 0, 0)
        return Parts.for_integers(_INTEGER_BITS, degree) if typed.whole else Parts.fit(0, 0, degree)

    def _taken(
        self, rows: Ready, known: _Known, batch: Batch
    ) -> tuple[Counts, int | None, tuple[_Known, list[Piece]]]:
        """Write the batch's panes, with parts that cover its values."""
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
            # the parts do not cover all values, so repeat with parts that do
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
        """Return ``since`` and ``until``: instants after the first, up to the second, are due."""
        if known.watermark is None:
            return 0, 0
        # more rows with the watermark's event time may still arrive
        until = (known.watermark - 1) // self._slide
        since = known.emitted_until
        if since is None:
            since = min((piece.first for piece in panes), default=until + 1) - 1
        return since, until


def _tasks(size: int, session: SparkSession) -> int:
    """Return the number of tasks for ``size`` rows of sums.

    If it exceeds the number of cores, it is a multiple of that number.
    """
    cores = session.sparkContext.defaultParallelism
    few = -(-size // _TASK_ROWS)
    return max(1, few) if few <= cores else cores * -(-size // (cores * _MOST_TASK_ROWS))
