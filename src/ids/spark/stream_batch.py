"""Process the micro-batches of a stream so that a crash neither loses nor duplicates rows.

A manifest is a small file that describes the state of the stream after a batch. It lists the
pieces, which are directories of Parquet files that one batch has written (``stream_store``).

    manifest i-1 ─▶ step ─▶ bad rows, emits (under names that depend only on i) ─▶ manifest i

Spark records the offsets of batch i before the batch begins, and its completion after manifest i
is written. If a batch is retried, there are two cases: its manifest already exists, and nothing is
left to do; or it starts from the same manifest with the same rows and rewrites the same files.

Each kind of window is a ``Step``, which turns a ``Batch`` into an ``Outcome``. Rows far ahead of
the others in event time would advance the watermark too far. ``Ahead`` prevents that:

    at most max_ahead after the newest row so far ─▶ accepted
    after a longer gap, and many rows ────────────▶ accepted: the stream has moved on
    after a longer gap, and very few rows ────────▶ set aside: their event times are probably wrong
    after a longer gap, and the only row ─────────▶ held back until the next micro-batch
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from threading import Event, Lock
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from ids.errors import CheckpointError, IdsError, SinkError, StateError
from ids.model import Kind, span
from ids.plan import SelectPlan
from ids.spark.expression_sql import Typed, spell
from ids.spark.failures import translated
from ids.spark.frame import ORIGIN, Frame
from ids.spark.kafka_topic import MALFORMED
from ids.spark.spark_bad_rows import StreamBadRows, refuse
from ids.spark.spark_evaluate import output_fields
from ids.spark.spark_prepare import AHEAD, FAULT, TIME, Faults, Ready, measure
from ids.spark.stream_checkpoint import Revision, Script, StreamProgress, Totals
from ids.spark.stream_output import Output
from ids.spark.stream_store import Manifest, Piece, Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

WAITING = "waiting"
LATE = "ids_late"

_NAME = "ids"

_OBSERVED = (
    *("rows", "late", "bad", "ahead", "emits"),
    *("state_rows", "state_bytes", "state_files"),
)

_QUERY = "sql.streaming.queryId"  # the local property with the query of a thread
_UTC = pa.timestamp("us", "UTC")
_TYPES = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}

_FEW = 1_000  # a gap is accepted if at least one row in this many is beyond it
_BUCKETS = 2**20
_LEAST, _MOST = -(2**63) + 1, 2**63 - 1
_ADDED = (ORIGIN, MALFORMED)
_OWN = "column "  # prefix of the table's own columns, which may be named like those added

Found = TypeVar("Found")
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Counts:
    """Row counts of a micro-batch, after WHERE.

    rows     all rows, except one that is held back
    late     valid rows older than the watermark before the batch, which are dropped
    bad      rows that cannot be in any window, such as those without an event time
    ahead    valid rows too far ahead of the others, which are set aside
    waiting  1 if a row far ahead of the others is held back until the next micro-batch
    """

    rows: int
    late: int
    bad: int
    ahead: int = 0
    waiting: int = 0

    @property
    def taken(self) -> int:
        """The number of accepted rows: neither late nor bad nor too far ahead."""
        return self.rows - self.late - self.bad - self.ahead


@dataclass(frozen=True, slots=True)
class Batch:
    """A micro-batch, the state before it, and the store for the state after it.

    number     Spark's batch id
    data       the rows as read from the source
    lateness   µs
    before     manifest of the previous batch; None for the first batch
    store      where the state is written
    max_ahead  how far ahead of the others a row may be, µs; None: unlimited
    script     the part of the stream's script that may change between starts
    """

    number: int
    data: DataFrame
    lateness: int
    before: Manifest | None
    store: Store
    max_ahead: int | None = None
    script: Script | None = None

    @property
    def revision(self) -> Revision | None:
        """The change from the previous batch's script to this one; None for the first batch."""
        if self.before is None or self.script is None:
            return None
        return Revision(Script.read(self.before.facts["script"]), self.script)

    @property
    def facts(self) -> dict[str, Any] | None:
        """The values that the step stored after the previous batch; None for the first batch."""
        return None if self.before is None else self.before.facts["step"]

    def pieces(self, kind: str) -> list[Piece]:
        """Return the pieces of this kind that the previous batch's manifest lists."""
        return [] if self.before is None else self.before.of(kind)


class Cap(NamedTuple):
    """The latest accepted event time; newer rows are set aside, or a single one is held back."""

    limit: int
    waits: bool = False


class Group(NamedTuple):
    """Rows with no gap longer than max_ahead between them.

    rows         number of rows
    first, last  event times of the oldest and the newest
    busiest      highest number of rows in one interval of length max_ahead
    """

    rows: int
    first: int
    last: int
    busiest: int


def cap_of(newest: int | None, near: int, groups: Sequence[Group], max_ahead: int) -> Cap:
    """Decide up to which event time the rows of a micro-batch are accepted.

    ``near`` is the number of rows that are not ahead, ``newest`` the newest event time of these
    and of all rows so far; ``groups`` are the other rows, ordered by time. A group is accepted,
    along with all groups before it, if it has at least two rows and at least a thousandth of the
    rows in the busiest interval before it.
    """
    crowd = near
    for group in groups:
        follows = newest is not None and group.first - newest <= max_ahead
        if follows or (group.rows > 1 and group.rows * _FEW >= crowd):
            newest, near = group.last, near + group.rows
        crowd = max(crowd, group.busiest)
    limit = _LEAST if newest is None else newest
    if near or not groups:
        return Cap(limit)
    # The batch consists of single rows, far apart: each is accepted once a newer one arrives.
    return Cap(groups[-2].last if len(groups) > 1 else limit, waits=True)


def groups_of(rows: Integers, first: Integers, last: Integers, max_ahead: int) -> list[Group]:
    """Combine intervals into groups with no gap longer than ``max_ahead`` inside.

    The arrays contain, for each interval, its row count and its first and last event times.
    """
    order = np.argsort(first)
    rows, first, last = rows[order], first[order], last[order]
    starts = np.append(0, 1 + np.flatnonzero(first[1:] - last[:-1] > max_ahead))
    ends = np.append(starts[1:], len(rows)) - 1
    busiest = np.maximum.reduceat(rows, starts)
    columns = np.add.reduceat(rows, starts), first[starts], last[ends], busiest
    return [Group(*values) for values in zip(*(c.tolist() for c in columns), strict=True)]


@dataclass(frozen=True, slots=True)
class Ahead:
    """Decides which rows of a micro-batch are too far ahead of the others.

    name       the event time column
    max_ahead  µs; None: unlimited
    front      the newest event time accepted before the batch, µs
    watermark  the watermark before the batch, µs
    """

    name: str
    max_ahead: int | None
    front: int | None
    watermark: int | None

    def admit(
        self,
        batch: Batch,
        rows: Ready,
        on_faults: Faults,
        take: Callable[[Ready], tuple[Counts, int | None, Found]],
    ) -> tuple[Ready, Counts, Found, list[Piece]]:
        """Pass the rows that are not too far ahead to ``take``.

        The other rows are marked with a fault, or a single one is held back. ``take`` returns
        the counts, the newest event time so far and a result. ``on_faults`` is called if there are
        bad rows or rows ahead. The last value returned is a list with the piece that stores the
        row held back, if there is one.
        """
        limit, last, waiting = self._limit(), _MOST, list[Piece]()
        taken = self._capped(rows, Cap(_MOST))
        # Rows are rarely ahead, so accept all of them, and check further only if one may be ahead.
        if limit > _LEAST:
            counts, newest_time, found = take(taken)
            last = _LEAST if newest_time is None else newest_time
        if last > limit:
            cap = self._settled(rows, limit)
            if limit == _LEAST or last > cap.limit:
                taken = self._capped(rows, cap)
                counts, _, found = take(taken)
                if cap.waits:
                    counts, waiting = replace(counts, waiting=1), [_keep(batch, rows, cap)]
        if counts.bad or counts.ahead:
            on_faults(taken, counts.bad)
        return taken, counts, found, waiting

    def _limit(self) -> int:
        """Return the event time up to which rows are always accepted."""
        if self.max_ahead is None:
            return _MOST
        return _LEAST if self.front is None else self.front + self.max_ahead

    def _settled(self, rows: Ready, limit: int) -> Cap:
        """Determine the cap from the rows of the batch, in one or two Spark jobs."""
        assert self.max_ahead is not None
        late = "" if self.watermark is None else f" AND {TIME} >= {self.watermark}L"
        sound = rows.data.filter(f"{FAULT} IS NULL{late}")
        near, far = f"{TIME} <= {limit}L", f"{TIME} > {limit}L"
        seen = [f"count_if({near})", f"max(if({near}, {TIME}, NULL))"]
        seen += [f"count_if({far})", f"min(if({far}, {TIME}, NULL))", f"max({TIME})"]
        ((count, near_last, many, first, last),) = sound.agg(*map(F.expr, seen)).collect()
        front = newest(self.front, near_last)
        if not many:
            return cap_of(front, count, [], self.max_ahead)
        if last - first <= self.max_ahead:
            return cap_of(front, count, [Group(many, first, last, many)], self.max_ahead)
        width = max(self.max_ahead, (last - first) // _BUCKETS)
        intervals = sound.filter(far).groupBy(F.expr(f"({TIME} - {first}L) DIV {width}L"))
        table = intervals.agg(F.count("*"), F.min(TIME), F.max(TIME)).toArrow()
        counted, firsts, lasts = (column.to_numpy() for column in table.columns[1:])
        groups = groups_of(counted, firsts, lasts, self.max_ahead)
        return cap_of(front, count, groups, self.max_ahead)

    def _capped(self, rows: Ready, cap: Cap) -> Ready:
        """Mark rows beyond the cap with a fault, or drop the one that is held back."""
        if cap.waits:
            taken = rows.data.filter(f"NOT {_beyond(cap)}")
            return replace(rows, data=taken.withColumn(AHEAD, F.lit(False)))
        distance = span(self.max_ahead or 0)
        reason = spell(f"event time {self.name!r} more than {distance} ahead of the others")
        fault = F.expr(f"if({_beyond(cap)}, {reason}, {FAULT})")
        marked = {AHEAD: F.expr(_beyond(cap)), FAULT: fault}
        return replace(rows, data=rows.data.withColumns(marked))


def newest(*times: int | None) -> int | None:
    """Return the newest of the times that are not None; None if there is none."""
    return max((time for time in times if time is not None), default=None)


def with_late(plan: SelectPlan, rows: Ready, watermark: int | None, *more: str) -> DataFrame:
    """Select the columns the plan needs and those in ``more``, and add the LATE column."""
    late = "false" if watermark is None else f"({FAULT} IS NULL AND {TIME} < {watermark}L)"
    made = [TIME, FAULT, AHEAD, *more, *rows.keys]
    made += [measure(number) for number, typed in enumerate(rows.measures) if typed]
    own = [rows.columns[name].text for name in plan.columns]
    return rows.data.selectExpr(*own, *made, f"{late} AS {LATE}")


def with_waiting(batch: Batch, columns: Mapping[str, Typed]) -> DataFrame:
    """Return the rows of a micro-batch, with the row that the previous batch held back."""
    data, pieces = batch.data, batch.pieces(WAITING)
    if not pieces:
        return data
    # columns may have been added or removed since that row was stored
    texts = {_OWN + name: typed.text for name, typed in columns.items()}
    texts |= {name: name for name in _ADDED if name in data.columns}
    known = {
        held: texts[name] for held, name in pieces[0].facts["columns"].items() if name in texts
    }
    fields = [T.StructField(held, data.schema[text].dataType) for held, text in known.items()]
    row = batch.store.read(pieces, T.StructType(fields)).toDF(*known.values())
    return data.unionByName(row, allowMissingColumns=True)


def _keep(batch: Batch, rows: Ready, cap: Cap) -> Piece:
    """Store the row that is held back, with its columns renamed to ``c0``, ``c1``, …"""
    own = {_OWN + name: typed.text for name, typed in rows.columns.items() if typed.kind}
    own |= {name: name for name in _ADDED if name in rows.data.columns}
    held = {f"c{number}": name for number, name in enumerate(own)}
    row = rows.data.filter(_beyond(cap)).selectExpr(*own.values()).toDF(*held)
    return batch.store.write(row, batch.number, WAITING, columns=held)


def _beyond(cap: Cap) -> str:
    return f"({FAULT} IS NULL AND {TIME} > {cap.limit}L)"


class Emits(NamedTuple):
    """The emits of a micro-batch: a table, or a DataFrame to be computed exactly once.

    data    a sorted table, or a DataFrame with sorted partitions
    schema  keys, ``emit_at``, ``n``, then the items
    order   columns to sort all partitions by; empty if they are in order already
    few     whether there are few enough emits to collect them in the driver
    """

    data: DataFrame | pa.Table
    schema: pa.Schema
    order: tuple[Column, ...] = ()
    few: bool = False

    def ordered(self, session: SparkSession) -> DataFrame:
        """Return all emits in order, as a DataFrame."""
        if isinstance(self.data, pa.Table):
            return session.createDataFrame(self.data)
        return self._sorted(self.data)

    def fetched(self) -> pa.Table:
        """Return all emits in order, as a table."""
        if isinstance(self.data, pa.Table):
            return self.data
        return self._sorted(self.data).toArrow().cast(self.schema)

    def _sorted(self, data: DataFrame) -> DataFrame:
        """Sort in a single partition; a sort over several would compute the emits twice."""
        return data.repartition(1).sortWithinPartitions(*self.order) if self.order else data


def emit_schema(plan: SelectPlan, frame: Frame) -> pa.Schema:
    """Return the schema of the emits: keys, ``emit_at``, ``n``, then the items."""
    keys = []
    for name in plan.partition_by:
        typed = frame.columns[name]
        type_ = _UTC if typed.kind is Kind.TIME else _TYPES.get(typed.type, pa.bool_())
        keys.append((name, type_))
    items = to_arrow_schema(T.StructType(output_fields(plan)))
    return pa.schema([*keys, ("emit_at", _UTC), ("n", pa.int64()), *items])


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a micro-batch.

    emits      None if nothing is due
    watermark  the last event time minus the lateness, µs; None before the first row
    facts      the values that the step stores in the manifest
    pieces     the pieces that the step needs in later batches, by kind
    """

    emits: Emits | None
    counts: Counts
    watermark: int | None
    facts: dict[str, Any]
    pieces: dict[str, list[Piece]] = field(default_factory=dict)


class Step(Protocol):
    """Processes the micro-batches of a query with one kind of window.

    A row is late if its event time is before the watermark of the previous batches. Rows strictly
    before the watermark are settled: no more rows can arrive among them. Rows at the watermark are
    not, because more rows with the same time may arrive. A step keeps no state except what its
    outcome lists, so a retried batch starts from the same state.
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns of the emits."""
        ...

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        """Process a micro-batch.

        ``on_faults`` raises an error if there are bad rows, or stores bad rows and rows ahead.
        """
        ...


class Reporter:
    """Adds the counts of each batch to the progress that Spark reports to query listeners.

    Spark can report aggregates that it computes row by row (``observe``), but these counts are
    known only at the end of a batch. So the plan observes constants, whose values are replaced at
    the end of each batch.
    """

    def __init__(self) -> None:
        longs = [T.StructField(name, T.LongType()) for name in _OBSERVED]
        self._schema = T.StructType([*longs, T.StructField("watermark", T.TimestampType())])
        self._session: Any = None
        self._held: Any = None

    def watched(self, data: DataFrame) -> DataFrame:
        """Return the streaming DataFrame, with the counts among its observed metrics."""
        self._session = data.sparkSession
        # Spark evaluates this aggregate while planning the query, so it costs nothing per row.
        nothing = F.expr("count(NULL)")
        longs = [nothing.alias(name) for name in _OBSERVED]
        return data.observe(_NAME, *longs, F.timestamp_micros(nothing).alias("watermark"))

    def report(self, manifest: Manifest, counts: Counts, emits: int) -> None:
        """Replace the observed constants. Must be called in the thread that runs the batch.

        This relies on Spark internals; in a Spark version where they differ, nothing is reported.
        """
        with suppress(Py4JError, AttributeError, TypeError):
            node = self._node()
            field = node.getClass().getDeclaredField("accumulator")
            field.setAccessible(True)
            came = [counts.rows, counts.late, counts.bad, counts.ahead, emits]
            held = [manifest.rows, manifest.bytes, manifest.files, manifest.facts["watermark"]]
            field.set(node, self._filled(field, [*came, *held]))

    def _node(self) -> Any:
        """Return the node of the current batch's plan that observes the counts."""
        query_id = self._session.sparkContext.getLocalProperty(_QUERY)
        query = self._session._jsparkSession.streams().get(query_id)
        sql = self._session._jvm.org.apache.spark.sql
        helper = getattr(getattr(sql.execution, "CollectMetricsExec$"), "MODULE$")
        plans = [query.streamingQuery().lastExecution().executedPlan()]
        while plans:
            plan = plans.pop()
            if plan.nodeName() == "CollectMetrics" and plan.name() == _NAME:
                return plan
            children = helper.allChildren(plan)
            plans += [children.apply(number) for number in range(children.size())]
        raise AttributeError(f"no plan node observes {_NAME}")

    def _filled(self, field: Any, seen: list[int | None]) -> Any:
        """Return an accumulator of the same class as the plan's, with these values."""
        if self._held is None:
            columns = [F.max(name).alias(name) for name in self._schema.names]
            own = self._session.createDataFrame([], self._schema).observe(_NAME, *columns)
            plan = own._jdf.queryExecution().executedPlan()
            plan.accumulatorId()  # created on the first call
            self._held = field.get(plan), own._jdf.schema()
        accumulator, schema = self._held
        catalyst = self._session._jvm.org.apache.spark.sql.catalyst
        row = catalyst.expressions.SpecificInternalRow(schema)
        for number, value in enumerate(seen):
            if value is None:
                row.setNullAt(number)
            else:
                row.setLong(number, value)
        accumulator.reset()
        accumulator.add(row)
        return accumulator


class Batches:
    """The function that Spark calls with each micro-batch."""

    def __init__(
        self,
        step: Step,
        check: Callable[[], None],
        store: Store,
        output: Output,
        lateness: int,
        max_ahead: int | None,
        bad_rows: StreamBadRows | None,
        on_progress: Callable[[StreamProgress], None] | None,
        script: Script | None = None,
    ) -> None:
        self._step, self._check = step, check
        self._store, self._output = store, output
        self._lateness, self._max_ahead = lateness, max_ahead
        self._bad_rows, self._on_progress = bad_rows, on_progress
        self._script, self._reporter = script, Reporter()
        self._busy = Lock()
        self._ended = Event()
        self.failure: BaseException | None = None
        self.progress = self._resumed()

    def __call__(self, data: DataFrame, number: int) -> None:
        """Process batch ``number``."""
        with self._busy:
            if self._ended.is_set():
                # returning would let Spark record the batch as completed
                raise StateError("the stream was stopped; start it again to continue")
            try:
                with self._store.faults_as_altered(), translated():
                    self._take(data, number)
            except BaseException as error:
                self.failure = error
                # after an exception of any other type, the JVM would wait forever for a response
                raise StateError("the micro-batch failed") from error
        if self._on_progress is not None:
            self._on_progress(self.progress)

    def watched(self, data: DataFrame) -> DataFrame:
        """Return the streaming DataFrame, with the counts of its batches in Spark's progress."""
        return self._reporter.watched(data)

    def end(self) -> None:
        """Stop accepting batches, and return when the current one has finished."""
        self._ended.set()
        with self._busy:
            pass

    def _resumed(self) -> StreamProgress:
        """Return the progress stored in the last manifest, and undo any output written after it."""
        latest = self._store.begin()
        if latest is None:
            self._output.rewind(None, {})
            return StreamProgress()
        self._output.rewind(latest.batch, latest.facts["output"])
        return StreamProgress.of(latest)

    def _take(self, data: DataFrame, number: int) -> None:
        started = perf_counter()
        before = self._store.latest()
        latest = None if before is None else before.batch
        if number == latest:
            return  # the process died before Spark recorded the batch as completed
        if number != (0 if latest is None else latest + 1):
            raise CheckpointError(
                f"the checkpoint is inconsistent: Spark is at batch {number}, the last manifest is "
                f"{latest}; restore the whole checkpoint from a backup, or start with a new one"
            )
        self._check()
        # Spark's copy of the user's session for this query
        self._store.session = data.sparkSession
        data.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        batch = Batch(
            number, data, self._lateness, before, self._store, self._max_ahead, self._script
        )
        outcome = self._step.advance(batch, lambda rows, faults: self._faulty(rows, faults, number))
        if self._bad_rows is not None and not (outcome.counts.bad or outcome.counts.ahead):
            self._bad_rows.forget(number)
        so_far = Totals() if before is None else Totals(**before.facts["totals"])
        written: dict[str, Any] = {} if before is None else before.facts["output"]
        emits = 0
        if outcome.emits is not None:
            emits, written = self._written(outcome.emits, number, written)
        facts = {
            "output": written,
            "totals": asdict(so_far.plus(outcome.counts, emits)),
            "rows": outcome.counts.rows,
            "watermark": outcome.watermark,
            "waiting": outcome.counts.waiting,
            "seconds": perf_counter() - started,
            "at": time(),
            "step": outcome.facts,
            "script": self._script and self._script.facts(),
        }
        manifest = Manifest(number, facts, outcome.pieces)
        self._store.commit(manifest)
        self.progress = StreamProgress.of(manifest)
        self._reporter.report(manifest, outcome.counts, emits)

    def _faulty(self, rows: Ready, faults: int, number: int) -> None:
        if self._bad_rows is not None:
            self._bad_rows.keep(rows, number)
        elif faults:
            refuse(rows, faults)

    def _written(
        self, emits: Emits, number: int, facts: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        try:
            return self._output.write(emits, number, facts)
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, IdsError):
                raise
            fault = str(error).strip().split("\n", maxsplit=1)[0]
            raise SinkError(
                f"cannot write {self._output.name}: {fault}; nothing is lost, start the stream "
                "again once this is fixed"
            ) from error
