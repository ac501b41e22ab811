"""Count windows on a stream: rows wait until the watermark has passed them, then have their rank.

    micro-batch ─▶ not late ─▶ log ─┬─▶ before the watermark: settled ─┬─▶ emits
    tail of each key ───────────────┼──────────────────────────────────┘
                                    └─▶ at or after it: held back

What is settled is final: no row that may still come stands before it. So the emits are those of a
batch over all rows before the watermark, however they were split into micro-batches. Rows are
written and read by Spark; the driver sees counts, times and how far values reach.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.errors import ScriptError
from ids.model.scale import Scale
from ids.model.table import FIRST_INSTANT, Kind
from ids.model.window import CountWindow
from ids.plan import SelectPlan
from ids.spark.counting import answered_tasks, emit_output, given_rows, stream_order
from ids.spark.evaluating import nameless
from ids.spark.fitting import Reach, fit_scales
from ids.spark.frames import Frame
from ids.spark.ranking import order
from ids.spark.rows import FAULT, TIME, Ready, measure, survey_columns, surveyed
from ids.spark.sources import ORIGIN, with_origin
from ids.spark.streaming.ahead import AHEAD, WAITING, Ahead, with_waiting
from ids.spark.streaming.emits import Emits, emit_schema
from ids.spark.streaming.intake import intake
from ids.spark.streaming.row_store import ROWS, TAILS, Pool, RowStore
from ids.spark.streaming.step import Batch, Counts, Faults, Outcome
from ids.spark.streaming.store import Piece
from ids.spark.streaming.widening import farther

__all__ = ["CountStep"]

_LATE = "ids_late"


@dataclass(frozen=True, slots=True)
class _Known:
    """What is remembered besides rows.

    last       the last event time of any sound row, µs
    watermark  µs; None before the first row
    reaches    (largest, smallest but 0) magnitude of each measure
    lowest     an exponent that the last bit of any value of a measure is at or above
    folded     see ``RowStore``
    buckets    see ``RowStore``
    """

    last: int | None
    watermark: int | None
    reaches: list[Reach | None]
    lowest: list[int | None]
    folded: int = FIRST_INSTANT
    buckets: int = 1


class CountStep:
    """The step of a query with a count window (see ``Step``)."""

    def __init__(self, plan: SelectPlan, frame: Frame) -> None:
        assert isinstance(plan.window, CountWindow)
        event_time = frame.columns[plan.order_by[0]]
        if event_time.kind not in (Kind.TIME, None):
            raise ScriptError(
                f"a stream needs a timestamp to order by, {plan.order_by[0]!r} is none",
                hint="order by the event time, or run the script on files without a stream",
            )
        self._named, self._plan, self._columns = plan, nameless(plan), frame.columns
        self._schema = emit_schema(plan, frame)

    @property
    def schema(self) -> pa.Schema:
        """Keys, ``emit_at``, ``n``, then the items."""
        return self._schema

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        """Write the micro-batch's rows, and speak for those that the watermark has passed."""
        data = _numbered(with_origin(batch.data), batch.number)
        given = with_waiting(replace(batch, data=data), self._columns)
        before = self._known(batch)
        ahead = Ahead(self._plan.order_by[0], batch.max_ahead, before.last, before.watermark)
        rows, counts, (known, fresh, row), waiting = ahead.admit(
            batch,
            intake(self._plan, self._columns, given),
            lambda rows: self._taken(rows, before, batch),
        )
        if counts.bad or counts.ahead:
            on_faults(rows, counts.bad)
        fitted = fit_scales(self._plan, rows.sound().data, known.reaches, known.lowest)
        known = replace(known, lowest=[one.lowest for one in fitted])
        log, tails = (tuple(batch.pieces(kind)) for kind in (ROWS, TAILS))
        keys, place = tuple(rows.keys), (known.folded, known.buckets)
        store = RowStore(batch.store, batch.number, self._plan, keys, row, log, tails, *place)
        if batch.revision is not None:
            store = store.revised(batch.revision)
        store = replace(store, log=(*store.log, *fresh))
        emits = None
        if known.watermark is not None:
            since = FIRST_INSTANT if before.watermark is None else before.watermark
            pool = store.pool(since, known.watermark)
            if pool is not None:
                emits = self._emits(rows, pool, tuple(one.scale for one in fitted))
                if store.is_due(known.watermark):
                    store = store.fold(known.watermark, pool.division)
            store = store.compact()
        known = replace(known, folded=store.folded, buckets=store.buckets)
        pieces = {ROWS: list(store.log), TAILS: list(store.tails), WAITING: waiting}
        return Outcome(emits, counts, known.watermark, asdict(known), pieces)

    def _emits(self, rows: Ready, pool: Pool, scales: tuple[Scale | None, ...]) -> Emits:
        """The emits of the settled rows, every task's in the order of the stream."""
        ranked = pool.division.emits()
        answers = answered_tasks(self._plan, rows, pool.data, ranked, scales, near=True)
        if not rows.keys:
            # tasks are stretches, one after another
            return Emits(emit_output(self._named, rows, answers), self.schema)
        by = tuple(stream_order(self._plan, answers))
        data = emit_output(self._named, rows, answers.sortWithinPartitions(*by))
        return Emits(data, self.schema, by if len(ranked.bounds) > 1 else ())

    def _known(self, batch: Batch) -> _Known:
        if batch.facts is None:
            nothing: list[Any] = [None] * len(self._plan.measures)
            return _Known(None, None, nothing, list(nothing))
        reaches = [None if reach is None else tuple(reach) for reach in batch.facts["reaches"]]
        known, revision = _Known(**batch.facts | {"reaches": reaches}), batch.revision
        if revision is None:
            return known
        held = [revision.measure(number) for number in range(len(self._plan.measures))]
        return replace(
            known,
            reaches=[None if old is None else known.reaches[old] for old in held],
            lowest=[None if old is None else known.lowest[old] for old in held],
        )

    def _taken(
        self, rows: Ready, before: _Known, batch: Batch
    ) -> tuple[Counts, int | None, tuple[_Known, list[Piece], T.StructType]]:
        """Write the rows that are not late; what came, and how far the watermark moves."""
        watched = [
            *survey_columns(self._plan, rows),
            F.expr(f"count_if({_LATE})").alias("ids_late"),
            F.expr(f"count_if({AHEAD})").alias("ids_ahead"),
        ]
        timed, watching = self._timed(rows, before.watermark), Observation()
        sound = timed.observe(watching, *watched).filter(f"{FAULT} IS NULL AND NOT {_LATE}")
        given = given_rows(self._plan, replace(rows, data=sound))
        # a number, be it of a column of NULLs
        given = given.withColumn(order(0), F.col(order(0)).cast("bigint"))
        # a file for each core at most, however many partitions a source has
        given = given.coalesce(given.sparkSession.sparkContext.defaultParallelism)
        piece = batch.store.write(given, batch.number, ROWS, panes=order(0))
        # a plan that turns out empty forgets what it has watched
        found = watching.get if piece.rows else timed.agg(*watched).collect()[0].asDict()
        now = surveyed(self._plan, found)
        ahead = found["ids_ahead"]
        counts = Counts(now.rows, found["ids_late"], now.faults - ahead, ahead)
        if piece.rows != counts.taken:
            raise batch.store.lacking(piece.name, piece.rows, counts.taken)
        last = max((t for t in (before.last, now.last) if t is not None), default=None)
        passed = (before.watermark, None if last is None else last - batch.lateness)
        watermark = max((t for t in passed if t is not None), default=None)
        reaches = [
            farther(a, b if b is not None and b[0] else None)
            for a, b in zip(before.reaches, now.reaches, strict=True)
        ]
        known = replace(before, last=last, watermark=watermark, reaches=reaches)
        row = T.StructType([T.StructField(field.name, field.dataType) for field in given.schema])
        return counts, last, (known, [piece] if piece.rows else [], row)

    def _timed(self, rows: Ready, watermark: int | None) -> DataFrame:
        """The columns that are needed, and whether a row is late."""
        late = "false" if watermark is None else f"({FAULT} IS NULL AND {TIME} < {watermark}L)"
        made = [TIME, FAULT, AHEAD, ORIGIN, *rows.keys]
        made += [measure(number) for number, typed in enumerate(rows.measures) if typed]
        own = [self._columns[name].text for name in self._plan.columns]
        return rows.data.selectExpr(*own, *made, f"{late} AS {_LATE}")


def _numbered(data: DataFrame, number: int) -> DataFrame:
    """Origins that say which micro-batch, where there is no file to say where a row stood."""
    start = f"if({ORIGIN}.file = '', {number}L, {ORIGIN}.start)"
    named = f"named_struct('file', {ORIGIN}.file, 'start', {start}, 'row', {ORIGIN}.row)"
    return data.withColumn(ORIGIN, F.expr(named))
