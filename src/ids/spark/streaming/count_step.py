"""Count windows on a stream: rows wait until the watermark has passed them, then have their rank.

    micro-batch ─▶ not late ─┬─▶ before the watermark: settled ─▶ emits, and a tail of each key
    held rows ───────────────┘─▶ at or after it: held back

What is settled is final: no row that may still come stands before it. So the emits are those of a
batch over all rows before the watermark, however they were split into micro-batches. Rows in the
state are written and read by Spark; the driver sees the emits alone.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from ids.errors import ScriptError
from ids.model.scale import Scale
from ids.model.table import Kind
from ids.model.window import CountWindow
from ids.plan import SelectPlan
from ids.spark.counting import answer_fields, given_rows, measure_columns, orders_of
from ids.spark.evaluating import nameless, output_names
from ids.spark.fitting import Reach, fit_scales
from ids.spark.frames import Frame
from ids.spark.mapping import mapped
from ids.spark.panes import COUNT
from ids.spark.ranking import order
from ids.spark.replaying import TASK, Replay
from ids.spark.rows import FAULT, TIME, Ready, key, survey_columns, surveyed
from ids.spark.sources import ORIGIN, with_origin
from ids.spark.streaming.ahead import AHEAD, Ahead, with_waiting
from ids.spark.streaming.emits import emit_schema
from ids.spark.streaming.intake import intake
from ids.spark.streaming.step import Batch, Counts, Faults, Outcome
from ids.spark.streaming.tailing import EMIT, HELD, KIND, RANK, TAIL, Tailing
from ids.spark.streaming.widening import farther
from ids.spark.stretches import halo_of
from ids.state.checkpoint import load, save

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CountStep"]

_STATE = "state"
_ROWS = "rows"
_TASK_ROWS = 200_000
_PLACE = ("file", "start", "row")


@dataclass(frozen=True, slots=True)
class _Known:
    """What is remembered besides rows.

    last       the last event time of any sound row, µs
    watermark  µs; None before the first row
    held       rows in the state
    reaches    (largest, smallest but 0) magnitude of each measure
    lowest     an exponent that the last bit of any value of a measure is at or above
    """

    last: int | None
    watermark: int | None
    held: int
    reaches: list[Reach | None]
    lowest: list[int | None]


class CountStep:
    """The step of a query with a count window (see ``Step``)."""

    def __init__(self, plan: SelectPlan, frame: Frame, spark: SparkSession) -> None:
        assert isinstance(plan.window, CountWindow)
        event_time = frame.columns[plan.order_by[0]]
        if event_time.kind not in (Kind.TIME, None):
            raise ScriptError(
                f"a stream needs a timestamp to order by, {plan.order_by[0]!r} is none",
                hint="order by the event time, or run the script on files without a stream",
            )
        self._plan, self._columns, self._spark = nameless(plan), frame.columns, spark
        self._reach = halo_of(plan.window)
        self._schema = emit_schema(plan, frame)

    @property
    def schema(self) -> pa.Schema:
        """Keys, ``emit_at``, ``n``, then the items."""
        return self._schema

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        """Settle what the watermark has passed, and speak for it; two jobs."""
        data = _numbered(with_origin(batch.data), batch.number)
        data = with_waiting(data, self._columns, batch.before)
        before = self._known(batch)
        ahead = Ahead(self._plan.order_by[0], batch.max_ahead, before.last, before.watermark)
        rows, counts, known = ahead.admit(
            intake(self._plan, self._columns, data),
            batch.fresh,
            lambda rows: self._seen(rows, before, batch.lateness),
        )
        if counts.bad or counts.ahead:
            on_faults(rows, counts.bad)
        fitted = fit_scales(self._plan, rows.sound().data, known.reaches, known.lowest)
        known.lowest[:] = [one.lowest for one in fitted]
        scales = tuple(one.scale for one in fitted)
        if known.watermark is None:
            self._save(batch.fresh, known, 0)
            return Outcome(self.schema.empty_table(), counts, None, 0)
        size = before.held + counts.taken
        self._advanced(batch, rows.sound(), before, known, scales, size)
        emits = self._spoken(_kept(batch.fresh, EMIT))
        held = sum(_rows_in(_kept(batch.fresh, kind)) for kind in (TAIL, HELD))
        self._save(batch.fresh, known, held)
        return Outcome(emits, counts, known.watermark, held)

    def _advanced(
        self,
        batch: Batch,
        rows: Ready,
        before: _Known,
        known: _Known,
        scales: tuple[Scale | None, ...],
        size: int,
    ) -> None:
        """The job that writes emits, tail and held rows into the new snapshot, each by its kind."""
        pool = self._pool(batch, rows, before.watermark)
        plain = [T.StructField(field.name, field.dataType) for field in pool.schema]
        row = T.StructType([*plain, T.StructField(RANK, T.LongType())])
        whole = T.StructType(
            [T.StructField(KIND, T.IntegerType()), *row, *answer_fields(self._plan)]
        )
        settled = pool.filter(f"{order(0)} < {known.watermark}L")
        settled = settled.withColumn(RANK, F.lit(None).cast("bigint"))
        tail = self._read(batch.before, TAIL, row)
        if tail is not None:
            settled = settled.unionByName(tail)
        carried = (*rows.keys, *orders_of(self._plan, rows), ORIGIN)
        replay = Replay(self._plan, tuple(rows.keys), carried, measure_columns(rows), scales, ())
        tailing = Tailing(replay, self._reach, to_arrow_schema(whole))
        told = mapped(self._ordered(settled, rows, size), tailing, whole)
        held = pool.filter(f"{order(0)} >= {known.watermark}L")
        lacking = [field for field in whole.fields if field.name not in pool.columns]
        nulls = [F.lit(None).cast(field.dataType).alias(field.name) for field in lacking[1:]]
        every = told.unionByName(held.select(F.lit(HELD).alias(KIND), *pool.columns, *nulls))
        every.write.partitionBy(KIND).parquet(str(batch.fresh / _ROWS))

    def _ordered(self, settled: DataFrame, rows: Ready, size: int) -> DataFrame:
        """Whole keys in tasks of their own, in window order."""
        tasks = max(1, -(-size // _TASK_ROWS)) if rows.keys else 1
        number = f"pmod(xxhash64({', '.join(rows.keys)}), {tasks}L)" if rows.keys else "0"
        by = [F.col(n).asc_nulls_first() for n in (*rows.keys, *orders_of(self._plan, rows))]
        tasked = settled.withColumn(TASK, F.expr(f"cast({number} as int)"))
        return tasked.repartitionById(tasks, TASK).sortWithinPartitions(*by, ORIGIN)

    def _spoken(self, folder: Path) -> pa.Table:
        """The emits of a snapshot in the making, in the order of the stream; they leave it."""
        if not folder.exists():
            return self.schema.empty_table()
        table = ds.dataset(folder, format="parquet").to_table()
        shutil.rmtree(folder)
        orders = [order(n) for n in range(len(self._plan.order_by))]
        place = {f"{ORIGIN}.{n}": pc.struct_field(table.column(ORIGIN), n) for n in _PLACE}
        sorting = pa.table({**{name: table.column(name) for name in orders}, **place})
        by = [(name, "ascending", "at_start") for name in sorting.column_names]
        table = table.take(pc.sort_indices(sorting, sort_keys=by))
        names = [key(n) for n in range(len(self._plan.partition_by))]
        names += [order(0), COUNT, *output_names(self._plan)]
        columns = [table.column(n).cast(f.type) for n, f in zip(names, self.schema, strict=True)]
        return pa.table(columns, schema=self.schema)

    def _known(self, batch: Batch) -> _Known:
        if batch.before is None:
            nothing: list[Any] = [None] * len(self._plan.measures)
            return _Known(None, None, 0, nothing, list(nothing))
        facts, _ = load(batch.before / _STATE)
        reaches = [None if reach is None else tuple(reach) for reach in facts["reaches"]]
        return _Known(facts["last"], facts["watermark"], facts["held"], reaches, facts["lowest"])

    def _save(self, folder: Path, known: _Known, held: int) -> None:
        facts = {
            "last": known.last,
            "watermark": known.watermark,
            "held": held,
            "reaches": known.reaches,
            "lowest": known.lowest,
        }
        save(folder / _STATE, facts, {})

    def _seen(
        self, rows: Ready, before: _Known, lateness: int
    ) -> tuple[Counts, int | None, _Known]:
        """One job over the micro-batch: what came, and how far the watermark moves."""
        late = "false" if before.watermark is None else f"{TIME} < {before.watermark}L"
        counted = [
            F.expr(f"count_if({FAULT} IS NULL AND {late})").alias("ids_late"),
            F.expr(f"count_if({AHEAD})").alias("ids_ahead"),
        ]
        found = rows.data.agg(*survey_columns(self._plan, rows), *counted).first()
        assert found is not None
        now = surveyed(self._plan, found.asDict())
        last = max((t for t in (before.last, now.last) if t is not None), default=None)
        watermark = before.watermark
        if last is not None:
            watermark = max(last - lateness, last - lateness if watermark is None else watermark)
        reaches = [
            farther(a, b if b is not None and b[0] else None)
            for a, b in zip(before.reaches, now.reaches, strict=True)
        ]
        ahead = found["ids_ahead"]
        counts = Counts(now.rows, found["ids_late"], now.faults - ahead, ahead)
        return counts, last, _Known(last, watermark, before.held, reaches, list(before.lowest))

    def _pool(self, batch: Batch, rows: Ready, watermark: int | None) -> DataFrame:
        """Rows that are not settled yet: those held back, and the new ones that are not late."""
        fresh = given_rows(self._plan, rows)
        if watermark is not None:
            fresh = fresh.filter(f"{order(0)} >= {watermark}L")
        held = self._read(batch.before, HELD, fresh.schema)
        return fresh if held is None else fresh.unionByName(held)

    def _read(self, folder: Path | None, kind: int, schema: T.StructType) -> DataFrame | None:
        if folder is None or not _kept(folder, kind).exists():
            return None
        return self._spark.read.schema(schema).parquet(str(_kept(folder, kind)))


def _kept(folder: Path, kind: int) -> Path:
    """Where a snapshot has its rows of a kind; nowhere if there are none."""
    return folder / _ROWS / f"{KIND}={kind}"


def _rows_in(folder: Path) -> int:
    return int(ds.dataset(folder, format="parquet").count_rows()) if folder.exists() else 0


def _numbered(data: DataFrame, number: int) -> DataFrame:
    """Origins that say which micro-batch, where there is no file to say where a row stood."""
    start = f"if({ORIGIN}.file = '', {number}L, {ORIGIN}.start)"
    named = f"named_struct('file', {ORIGIN}.file, 'start', {start}, 'row', {ORIGIN}.row)"
    return data.withColumn(ORIGIN, F.expr(named))
