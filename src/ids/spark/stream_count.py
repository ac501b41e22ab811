"""Count windows on a stream: rows are held back until the watermark passes them, then ranked.

    micro-batch ─▶ not late ─▶ log ─┬─▶ before the watermark: settled ─┬─▶ emits
    tail of each key ───────────────┼──────────────────────────────────┘
                                    └─▶ at or after it: held back

A row is settled once the watermark has passed it: no more rows can arrive before it, so its rank
(its position among the rows of its key) is final. The emits therefore equal those of a batch query
over all rows before the watermark, however the rows are split into micro-batches. Spark reads and
writes the rows; the driver sees only counts, times and the range of values.

Rows are stored in pieces, which are directories of Parquet files that one batch has written:

    log    the rows that are not late, settled or held back; one piece per batch
    tails  the last rows of each key with their ranks, which later windows may still contain; keys
           are hashed into buckets, with one piece per bucket

Once the log contains many settled rows, they are folded (merged) into the tails. Only the buckets
with keys of these rows are rewritten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.errors import ScriptError
from ids.model import FIRST_INSTANT, CountWindow, Kind, Scale
from ids.plan import SelectPlan
from ids.spark.cell_columns import TRUTH_BITS, packed_truths, truth_column, truth_columns
from ids.spark.count_windows import (
    answered_tasks,
    emit_output,
    fit_scales,
    given_rows,
    positions_of,
    tasked_rows,
)
from ids.spark.expression_sql import Typed
from ids.spark.frame import ORIGIN, Frame, mapped, whole_partition, with_origin
from ids.spark.rank import (
    OLD,
    RANK,
    Bounds,
    Buckets,
    Division,
    divide,
    halo_of,
    key_bucket,
    order,
    power_of_two,
    stream_order,
)
from ids.spark.spark_evaluate import nameless
from ids.spark.spark_prepare import (
    AHEAD,
    CONTENT,
    FAULT,
    Faults,
    Ready,
    measure,
    ready,
    survey_columns,
    surveyed,
)
from ids.spark.stream_batch import (
    LATE,
    WAITING,
    Ahead,
    Batch,
    Counts,
    Emits,
    Outcome,
    emit_schema,
    newest,
    with_late,
    with_waiting,
)
from ids.spark.stream_checkpoint import Revision
from ids.spark.stream_panes import ValueRange, both_ranges
from ids.spark.stream_store import Piece, Store, alike

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tailing:
    """Selects the last rows of each key, with their RANK, from a task's rows in window order.

    keys     the key columns
    columns  the columns of a row, including RANK
    tasks    as in ``Replay``
    halo     how many of a key's last rows later windows may contain
    sampled  whether items are sampled, for which identical rows are numbered
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    tasks: tuple[Bounds | None, ...]
    halo: int
    sampled: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return whole_partition(batches, lambda rows: self._tail(rows).select(self.columns))

    def _tail(self, rows: pa.Table) -> pa.Table:
        starts, base, _ = positions_of(rows, self.keys, self.tasks)
        sizes = np.diff(starts)
        position = np.arange(rows.num_rows) - np.repeat(starts[:-1], sizes)
        rank = pa.array(position + np.repeat(base, sizes))
        ranked = rows.set_column(rows.column_names.index(RANK), RANK, rank)
        first = np.maximum(sizes - self.halo, 0)
        if self.sampled:
            first = _whole_alike(np.array(rows.column(CONTENT)), starts, first)
        return ranked.filter(pa.array(position >= np.repeat(first, sizes)))


def _whole_alike(content: Rows, starts: Rows, first: Rows) -> Rows:
    """Return where each key's tail begins, so that it includes every copy of an identical row.

    Sampling numbers identical rows to distinguish them. They have the same event time, so the tail
    becomes only a little longer.
    """
    sizes = np.diff(starts)
    _, earliest, which = np.unique(content, return_index=True, return_inverse=True)
    position = np.arange(len(content)) - np.repeat(starts[:-1], sizes)
    since = np.maximum(earliest[which] - np.repeat(starts[:-1], sizes), 0)
    inside = position >= np.repeat(first, sizes)
    found: Rows = np.minimum.reduceat(np.where(inside, since, len(content)), starts[:-1])
    return found


ROWS, TAILS = "rows", "tails"
_RANGES = "reaches"  # in a manifest of format 2

_OF_KEYS = "ids_bucket"
_HELD = -1  # the bucket number of rows that are held back
_BUCKET_ROWS = 200_000  # rows of tails in one bucket
_UNFOLDED = 2**14  # settled rows that may stay in the log, where each batch rereads them
_TASK_ROWS: int | None = None  # new rows per task; None: the default of a batch


class Pool(NamedTuple):
    """Newly settled rows, and the earlier rows that their windows contain.

    data      the rows, with the columns RANK and OLD
    division  how the rows are divided among tasks
    """

    data: DataFrame
    division: Division


@dataclass(frozen=True, slots=True)
class RowStore:
    """Reads and writes the stored rows of one query.

    number   the number of the batch
    keys     the key columns
    row      the columns of a row, including the keys
    log      the pieces of the log
    tails    the pieces of the tails, one per bucket
    folded   rows before this time (µs) have been folded into the tails
    buckets  the number of buckets
    """

    store: Store
    number: int
    plan: SelectPlan
    keys: tuple[str, ...]
    row: T.StructType
    log: tuple[Piece, ...]
    tails: tuple[Piece, ...]
    folded: int
    buckets: int

    def revised(self, revision: Revision) -> RowStore:
        """Rewrite the stored rows for a script that changed at a restart."""
        old, new = revision.old, revision.new
        if (old.measures, old.predicates) == (new.measures, new.predicates):
            return self
        log = self._renumbered(self.log, self.row, revision)
        tails = self._renumbered(self.tails, self._ranked_row, revision)
        tails = tails.withColumn(_OF_KEYS, self._bucket(self.buckets))
        pieces = self.store.write_by(tails, self.number, f"{TAILS}-revised", _OF_KEYS)
        return replace(
            self,
            log=(self._moved(log, f"{ROWS}-revised", self.log),) if self.log else (),
            tails=_of_buckets(pieces),
        )

    def pool(self, since: int, until: int) -> Pool | None:
        """Return the settled rows in [since, until), or None if there are none."""
        pieces = self._between(since, until) if until > since else []
        if not pieces:
            return None
        fresh, tails, new = self._rows(since, until), self.tails, _size(pieces)
        if self.buckets > 1:
            counts = self._counts(fresh)
            tails, new = self._of(counts), sum(counts.values())
            if not new:
                return None
        old, known = self._remembered(tails, since), _size(tails) + self._unfolded(since)
        if self.buckets > 1 and new * self._halo < known:
            # most of these keys have no new rows
            old, known = _of_keys(old, fresh, self.keys), new * self._halo
        data = old.unionByName(_marked(fresh, old=False))
        ordered = self._order_buckets(until)
        division = divide(self.plan, data, self.keys, ordered, known + new, new, _TASK_ROWS)
        return Pool(data, division)

    def is_due(self, until: int) -> bool:
        """Return whether the log has enough rows before ``until`` to fold them into the tails."""
        return self._unfolded(until) >= max(_UNFOLDED, _size(self.tails) // 4)

    def fold(self, until: int, division: Division) -> RowStore:
        """Fold all rows before ``until`` into the tails; ``division`` comes from ``pool``.

        If most rows of a piece are settled, those held back are moved to a separate piece.
        """
        wanted = power_of_two(-(-_size(self.tails) // _BUCKET_ROWS)) if self.keys else 1
        buckets = max(self.buckets, wanted)
        tails = self.tails
        if buckets == self.buckets > 1:
            tails = self._of(self._counts(self._rows(self.folded, until)))
        size = _size(tails) + self._unfolded(until)
        found = self._tails(self._remembered(tails, until), size, division, buckets)
        stale = [p for p in self.log if p.first < until <= p.last and 2 * until > p.first + p.last]
        held = self.store.read(stale, self.row).filter(f"{order(0)} >= {until}L")
        held = held.coalesce(max(1, -(-_size(stale) // _BUCKET_ROWS)))
        held = _marked(held, old=False).drop(OLD).withColumn(_OF_KEYS, F.lit(_HELD))
        pieces = self.store.write_by(found.unionByName(held), self.number, TAILS, _OF_KEYS)
        log = [p for p in self.log if p.last >= until and p not in stale]
        if _HELD in pieces:
            last = max(piece.last for piece in stale)
            log.append(replace(pieces.pop(_HELD), first=until, last=last))
        kept = [piece for piece in self.tails if piece not in tails]
        kept += _of_buckets(pieces)
        return replace(self, log=tuple(log), tails=tuple(kept), folded=until, buckets=buckets)

    def compact(self) -> RowStore:
        """Merge small pieces of the log if there are enough of them."""
        chosen = alike(self.log)
        if not chosen:
            return self
        merged = self._moved(self.store.read(chosen, self.row), f"{ROWS}-merged", chosen)
        others = [piece for piece in self.log if piece not in chosen]
        return replace(self, log=(merged, *others))

    @property
    def _halo(self) -> int:
        assert isinstance(self.plan.window, CountWindow)
        return halo_of(self.plan.window)

    @property
    def _ranked_row(self) -> T.StructType:
        return T.StructType([*self.row, T.StructField(RANK, T.LongType())])

    def _moved(self, rows: DataFrame, kind: str, pieces: Sequence[Piece]) -> Piece:
        """Write ``rows``, which were read from ``pieces`` of the log, as one piece."""
        size = _size(pieces)
        rows = rows.coalesce(max(1, -(-size // _BUCKET_ROWS)))
        moved = self.store.write(rows, self.number, kind, panes=order(0))
        if moved.rows != size:
            raise self.store.lacking(moved.name, moved.rows, size)
        return moved

    def _renumbered(
        self, pieces: Sequence[Piece], row: T.StructType, revision: Revision
    ) -> DataFrame:
        """Read rows stored by the previous script, with measures and predicates renumbered."""
        old, new = revision.old, revision.new
        held = {n: old.measures.index(text) for n, text in enumerate(new.measures) if text != "*"}
        bits = [old.predicates.index(text) for text in new.predicates]
        truths = [f"getbit({truth_column(n // TRUTH_BITS)}, {n % TRUTH_BITS}) = 1" for n in bits]
        numbered = {*map(measure, held), *truth_columns(len(bits))}
        same = [field for field in row if field.name not in numbered]
        fields = [T.StructField(measure(n), T.DoubleType()) for n in set(held.values())]
        fields += [T.StructField(name, T.LongType()) for name in truth_columns(len(old.predicates))]
        measures = [f"{measure(was)} AS {measure(n)}" for n, was in held.items()]
        rows = self.store.read(pieces, T.StructType([*same, *fields]))
        return rows.selectExpr(*(field.name for field in same), *measures, *packed_truths(truths))

    def _between(self, low: int, high: int) -> list[Piece]:
        return [piece for piece in self.log if piece.first < high and piece.last >= low]

    def _rows(self, low: int, high: int) -> DataFrame:
        """Read the rows of the log in [low, high)."""
        data = self.store.read(self._between(low, high), self.row)
        return data.filter(f"{order(0)} >= {low}L AND {order(0)} < {high}L")

    def _remembered(self, tails: Sequence[Piece], until: int) -> DataFrame:
        """Read these tails, and the rows of the log before ``until`` that are not folded yet."""
        ranked = self.store.read(tails, self._ranked_row).withColumn(OLD, F.lit(True))
        if until <= self.folded:
            return ranked
        return ranked.unionByName(_marked(self._rows(self.folded, until), old=True))

    def _unfolded(self, until: int) -> int:
        """Estimate how many rows of the log before ``until`` are not folded yet."""
        rows = 0
        for piece in self._between(self.folded, until):
            inside = min(piece.last + 1, until) - max(piece.first, self.folded)
            rows += -(-piece.rows * inside // (piece.last + 1 - piece.first))
        return rows

    def _counts(self, rows: DataFrame) -> dict[int, int]:
        """Count the rows in each bucket."""
        bucket = F.expr(key_bucket(self.keys, self.buckets))
        return {int(row[0]): row[1] for row in rows.groupBy(bucket).count().collect()}

    def _of(self, buckets: Collection[int]) -> tuple[Piece, ...]:
        return tuple(piece for piece in self.tails if piece.facts["bucket"] in buckets)

    def _order_buckets(self, until: int) -> Buckets:
        """Return intervals of event time for the rows not folded yet.

        Older rows are all in the first interval.
        """
        pieces = self._between(self.folded, until)
        low = max(min(piece.first for piece in pieces), self.folded)
        high = min(max(piece.last for piece in pieces), until - 1)
        return Buckets.between(Typed(f"greatest({order(0)}, {low}L)", Kind.TIME), low, high)

    def _tails(self, rows: DataFrame, size: int, division: Division, buckets: int) -> DataFrame:
        """Select the tails from about ``size`` rows, and add the bucket of each row."""
        ranked, columns = division.tails(size), tuple(self._ranked_row.names)
        sampled = bool(self.plan.sampled)
        work = Tailing(self.keys, columns, ranked.bounds, self._halo, sampled)
        tasked = tasked_rows(self.plan, rows, self.keys, ranked, near=True)
        return mapped(tasked, work, self._ranked_row).withColumn(_OF_KEYS, self._bucket(buckets))

    def _bucket(self, buckets: int) -> Column:
        return F.expr(f"cast({key_bucket(self.keys, buckets)} as int)")


def _size(pieces: Sequence[Piece]) -> int:
    return sum(piece.rows for piece in pieces)


def _of_buckets(pieces: Mapping[int, Piece]) -> tuple[Piece, ...]:
    """Return the pieces of the tails, each with its bucket number among its facts."""
    return tuple(replace(piece, facts={"bucket": bucket}) for bucket, piece in pieces.items())


def _marked(rows: DataFrame, *, old: bool) -> DataFrame:
    """Add the columns RANK (NULL, because it is not known yet) and OLD to rows of the log."""
    return rows.withColumns({RANK: F.lit(None).cast("bigint"), OLD: F.lit(old)})


def _of_keys(rows: DataFrame, others: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the rows whose key also occurs in ``others``."""
    wanted = others.select(*(F.col(key).alias(f"{key}_wanted") for key in keys))
    same = [F.col(key).eqNullSafe(F.col(f"{key}_wanted")) for key in keys]
    return rows.join(wanted, same, "left_semi")


@dataclass(frozen=True, slots=True)
class _Known:
    """The state of the step, apart from the stored rows.

    last       the last event time of any valid row, µs
    watermark  µs; None before the first row
    ranges     the (largest, smallest nonzero) magnitude of each measure
    lowest     the exponent of the lowest bit set in any value of each measure
    folded     see ``RowStore``
    buckets    see ``RowStore``
    """

    last: int | None
    watermark: int | None
    ranges: list[ValueRange | None]
    lowest: list[int | None]
    folded: int = FIRST_INSTANT
    buckets: int = 1

    def facts(self) -> dict[str, Any]:
        """Return the state as JSON values, for a manifest."""
        facts = asdict(self)
        return facts | {_RANGES: facts.pop("ranges")}

    @classmethod
    def of(cls, facts: dict[str, Any]) -> _Known:
        """Restore the state from the values that ``facts`` returned."""
        kept = dict(facts)
        ranges = [known and tuple(known) for known in kept.pop(_RANGES)]
        return cls(**kept, ranges=ranges)


class CountStep:
    """The step of a query with a count window (see ``Step``)."""

    def __init__(self, plan: SelectPlan, frame: Frame) -> None:
        assert isinstance(plan.window, CountWindow)
        event_time = frame.columns[plan.order_by[0]]
        if event_time.kind not in (Kind.TIME, None):
            raise ScriptError(
                f"a stream requires ORDER BY a timestamp, and {plan.order_by[0]!r} is not one",
                hint="order by the event time, or run the script as a batch",
            )
        self._named, self._plan, self._columns = plan, nameless(plan), frame.columns
        self.schema = emit_schema(plan, frame)

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        """Store the micro-batch's rows, and return the emits of newly settled rows."""
        data = _numbered(with_origin(batch.data), batch.number)
        given = with_waiting(replace(batch, data=data), self._columns)
        before = self._known(batch)
        ahead = Ahead(self._plan.order_by[0], batch.max_ahead, before.last, before.watermark)
        rows, counts, (known, fresh, row), waiting = ahead.admit(
            batch,
            ready(self._plan, Frame(given, self._columns, {})),
            on_faults,
            lambda rows: self._taken(rows, before, batch),
        )
        fitted = fit_scales(self._plan, rows.sound().data, known.ranges, known.lowest)
        known = replace(known, lowest=[one.lowest for one in fitted])
        log, tails = (tuple(batch.pieces(kind)) for kind in (ROWS, TAILS))
        keys, folded = tuple(rows.keys), (known.folded, known.buckets)
        store = RowStore(batch.store, batch.number, self._plan, keys, row, log, tails, *folded)
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
        return Outcome(emits, counts, known.watermark, known.facts(), pieces)

    def _emits(self, rows: Ready, pool: Pool, scales: tuple[Scale | None, ...]) -> Emits:
        """Return the emits of newly settled rows, sorted within each task."""
        ranked = pool.division.emits()
        answers = answered_tasks(self._plan, rows, pool.data, ranked, scales, near=True)
        if not rows.keys:
            # tasks are consecutive intervals
            return Emits(emit_output(self._named, rows, answers), self.schema)
        by = tuple(stream_order(self._plan, answers))
        data = emit_output(self._named, rows, answers.sortWithinPartitions(*by))
        return Emits(data, self.schema, by if len(ranked.bounds) > 1 else ())

    def _known(self, batch: Batch) -> _Known:
        if batch.facts is None:
            nothing: list[Any] = [None] * len(self._plan.measures)
            return _Known(None, None, nothing, list(nothing))
        known, revision = _Known.of(batch.facts), batch.revision
        if revision is None:
            return known
        held = [revision.measure(number) for number in range(len(self._plan.measures))]
        return replace(
            known,
            ranges=[None if old is None else known.ranges[old] for old in held],
            lowest=[None if old is None else known.lowest[old] for old in held],
        )

    def _taken(
        self, rows: Ready, before: _Known, batch: Batch
    ) -> tuple[Counts, int | None, tuple[_Known, list[Piece], T.StructType]]:
        """Store the valid rows that are not late, and advance the watermark."""
        watched = [
            *survey_columns(self._plan, rows),
            F.expr(f"count_if({LATE})").alias("ids_late"),
            F.expr(f"count_if({AHEAD})").alias("ids_ahead"),
        ]
        timed, watching = with_late(self._plan, rows, before.watermark, ORIGIN), Observation()
        sound = timed.observe(watching, *watched).filter(f"{FAULT} IS NULL AND NOT {LATE}")
        given = given_rows(self._plan, replace(rows, data=sound))
        # a column that contains only NULL becomes numeric, too
        given = given.withColumn(order(0), F.col(order(0)).cast("bigint"))
        # at most one file per core, for any number of partitions
        given = given.coalesce(given.sparkSession.sparkContext.defaultParallelism)
        piece = batch.store.write(given, batch.number, ROWS, panes=order(0))
        # Spark drops the observation from a plan that turns out to be empty
        found = watching.get if piece.rows else timed.agg(*watched).collect()[0].asDict()
        now = surveyed(self._plan, found)
        ahead = found["ids_ahead"]
        counts = Counts(now.rows, found["ids_late"], now.faults - ahead, ahead)
        if piece.rows != counts.taken:
            raise batch.store.lacking(piece.name, piece.rows, counts.taken)
        last = newest(before.last, now.last)
        watermark = newest(before.watermark, None if last is None else last - batch.lateness)
        ranges = [
            both_ranges(a, b if b is not None and b[0] else None)
            for a, b in zip(before.ranges, now.ranges, strict=True)
        ]
        known = replace(before, last=last, watermark=watermark, ranges=ranges)
        row = T.StructType([T.StructField(field.name, field.dataType) for field in given.schema])
        return counts, last, (known, [piece] if piece.rows else [], row)


def _numbered(data: DataFrame, number: int) -> DataFrame:
    """For rows that do not come from a file, put the micro-batch's number into the origin."""
    start = f"if({ORIGIN}.file = '', {number}L, {ORIGIN}.start)"
    named = f"named_struct('file', {ORIGIN}.file, 'start', {start}, 'row', {ORIGIN}.row)"
    return data.withColumn(ORIGIN, F.expr(named))
