"""What happens to each micro-batch, in the one order that survives a crash at any moment.

    manifest i-1 ─▶ step ─▶ bad rows, emits (under names that depend on i alone) ─▶ manifest i

Spark has noted what batch i holds before it begins, and notes its end after manifest i is there.
So a batch that is begun again either finds its manifest, and has nothing left to do, or starts
from the same manifest with the same rows and writes the same rows once more.

A kind of window is a ``Step``: it takes a ``Batch`` and gives an ``Outcome``. Its counts go to the
progress of Spark's own query, for whatever listens to that: Spark reports what its plan has
observed row by row, ours is known when a batch is done, so the plan observes nothing under our
names, and what it would report of them is replaced then.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from threading import Event, Lock
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from ids.errors import CheckpointError, IdsError, SinkError, StateError
from ids.model import Kind
from ids.plan import SelectPlan
from ids.spark.failures import translated
from ids.spark.frame import Frame
from ids.spark.spark_bad_rows import StreamBadRows, refuse
from ids.spark.spark_evaluate import output_fields
from ids.spark.spark_prepare import Faults, Ready
from ids.spark.stream_output import Output
from ids.spark.stream_revision import Revision, Script
from ids.spark.stream_status import StreamProgress, Totals
from ids.spark.stream_store import Manifest, Piece, Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from ids.spark.expression_sql import Typed

NAME = "ids"

_OBSERVED = (
    *("rows", "late", "bad", "ahead", "emits"),
    *("state_rows", "state_bytes", "state_files"),
)

_QUERY = "sql.streaming.queryId"  # where Spark notes which query a thread works for
_UTC = pa.timestamp("us", "UTC")
_TYPES = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}


@dataclass(frozen=True, slots=True)
class Counts:
    """The rows of a micro-batch that pass WHERE.

    rows     all of them but the one that waits
    late     of these, sound but older than the watermark before the batch: dropped
    bad      of these, such that no window can take them
    ahead    of these, sound but too far ahead of the others: set aside
    waiting  1 if a row waits for others to come as far ahead as it is
    """

    rows: int
    late: int
    bad: int
    ahead: int = 0
    waiting: int = 0

    @property
    def taken(self) -> int:
        """How many rows are in windows, or will be."""
        return self.rows - self.late - self.bad - self.ahead


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch, the state before it, and where the state after it goes.

    number     Spark's own batch id
    data       the rows as the source gives them
    lateness   µs
    before     the manifest before it; None at the beginning
    store      where rows to be remembered are written
    max_ahead  how far ahead of the others a row may be, µs; None: as far as it likes
    script     what of the stream's script may change from one start to the next
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
        """From the script of the manifest before it to its own; None at the beginning."""
        if self.before is None or self.script is None:
            return None
        return Revision(Script.read(self.before.facts["script"]), self.script)

    @property
    def facts(self) -> dict[str, Any] | None:
        """What the step knew before the batch; None at the beginning."""
        return None if self.before is None else self.before.facts["step"]

    def pieces(self, kind: str) -> list[Piece]:
        """What the step remembered before the batch."""
        return [] if self.before is None else self.before.of(kind)


class Emits(NamedTuple):
    """The emits of a micro-batch: a table, or what Spark will work out, for the only time.

    data    a table in order, or every partition of it in order
    schema  keys, ``emit_at``, ``n``, then the items
    order   what the partitions together are to be sorted by; empty if they are in order
    few     whether they may come to this process, as a table has
    """

    data: DataFrame | pa.Table
    schema: pa.Schema
    order: tuple[Column, ...] = ()
    few: bool = False

    def ordered(self, session: SparkSession) -> DataFrame:
        """All of them in order."""
        if isinstance(self.data, pa.Table):
            return session.createDataFrame(self.data)
        return self._sorted(self.data)

    def fetched(self) -> pa.Table:
        """All of them in this process, in order."""
        if isinstance(self.data, pa.Table):
            return self.data
        return self._sorted(self.data).toArrow().cast(self.schema)

    def _sorted(self, data: DataFrame) -> DataFrame:
        """In one partition where it takes a sort.

        To sort several, Spark would look at a sample first, and work everything out twice.
        """
        return data.repartition(1).sortWithinPartitions(*self.order) if self.order else data


def emit_schema(plan: SelectPlan, frame: Frame) -> pa.Schema:
    """Keys, ``emit_at``, ``n``, then the items."""
    keys = [(name, frame.columns[name]) for name in plan.partition_by]
    own = [(name, _arrow_type(typed)) for name, typed in keys]
    items = to_arrow_schema(T.StructType(output_fields(plan)))
    return pa.schema([*own, ("emit_at", _UTC), ("n", pa.int64()), *items])


def _arrow_type(typed: Typed) -> pa.DataType:
    return _UTC if typed.kind is Kind.TIME else _TYPES.get(typed.type, pa.bool_())


Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a micro-batch gave.

    emits      None if nothing is due
    watermark  µs: the last event time seen, less the lateness; None before the first row
    facts      what the step knows after the batch, for the manifest
    pieces     what it remembers
    """

    emits: Emits | None
    counts: Counts
    watermark: int | None
    facts: dict[str, Any]
    pieces: dict[str, list[Piece]] = field(default_factory=dict)


class Step(Protocol):
    """A kind of window on a stream.

    A row is late if its event time lies before the watermark of the batches before; only what lies
    strictly before the watermark is settled, as rows at the watermark itself may still come. A
    step remembers nothing but what it names in its outcome, so that a batch which is tried again
    starts where it started the first time.
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns of the emits."""
        ...

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        """Take a micro-batch in; ``on_faults`` refuses or keeps bad rows, keeps those ahead."""
        ...


class Reporter:
    """Puts what a batch gave into the progress of its query: how many of its rows were late, bad
    and ahead, its emits, what is remembered, and the watermark (None before the first row).
    """

    def __init__(self) -> None:
        longs = [T.StructField(name, T.LongType()) for name in _OBSERVED]
        self._schema = T.StructType([*longs, T.StructField("watermark", T.TimestampType())])
        self._session: Any = None
        self._held: Any = None

    def watched(self, data: DataFrame) -> DataFrame:
        """A streaming DataFrame whose progress has a place for it."""
        self._session = data.sparkSession
        # an aggregate that Spark knows beforehand: it costs a row nothing
        nothing = F.expr("count(NULL)")
        longs = [nothing.alias(name) for name in _OBSERVED]
        return data.observe(NAME, *longs, F.timestamp_micros(nothing).alias("watermark"))

    def report(self, manifest: Manifest, counts: Counts, emits: int) -> None:
        """Tell it; called in the thread of the batch.

        It reaches into Spark: where another version has it otherwise, nothing is told.
        """
        with suppress(Py4JError, AttributeError, TypeError):
            node = self._node()
            field = node.getClass().getDeclaredField("accumulator")
            field.setAccessible(True)
            came = [counts.rows, counts.late, counts.bad, counts.ahead, emits]
            held = [manifest.rows, manifest.bytes, manifest.files, manifest.facts["watermark"]]
            field.set(node, self._filled(field, [*came, *held]))

    def _node(self) -> Any:
        """Where the plan of the batch at work observes what is ours."""
        query_id = self._session.sparkContext.getLocalProperty(_QUERY)
        query = self._session._jsparkSession.streams().get(query_id)
        sql = self._session._jvm.org.apache.spark.sql
        helper = getattr(getattr(sql.execution, "CollectMetricsExec$"), "MODULE$")
        plans = [query.streamingQuery().lastExecution().executedPlan()]
        while plans:
            plan = plans.pop()
            if plan.nodeName() == "CollectMetrics" and plan.name() == NAME:
                return plan
            children = helper.allChildren(plan)
            plans += [children.apply(number) for number in range(children.size())]
        raise AttributeError(f"nothing observes {NAME}")

    def _filled(self, field: Any, seen: list[int | None]) -> Any:
        """An accumulator of the same kind as that of the plan, with our values."""
        if self._held is None:
            columns = [F.max(name).alias(name) for name in self._schema.names]
            own = self._session.createDataFrame([], self._schema).observe(NAME, *columns)
            plan = own._jdf.queryExecution().executedPlan()
            plan.accumulatorId()  # it is made when first asked for
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


def _session(data: DataFrame) -> SparkSession:
    """The session of a micro-batch, a copy of the user's; there, timestamps are written as such."""
    session = data.sparkSession
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    return session


class Batches:
    """The function Spark calls with each micro-batch."""

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
        """Take batch ``number``."""
        with self._busy:
            if self._ended.is_set():
                # to return would be to tell Spark that the batch is done
                raise StateError("the stream has been stopped")
            try:
                with self._store.blaming(), translated():
                    self._take(data, number)
            except BaseException as error:
                self.failure = error
                # Java waits for an answer, and would for ever if anything else were raised
                raise StateError("the micro-batch failed") from error
        if self._on_progress is not None:
            self._on_progress(self.progress)

    def watched(self, data: DataFrame) -> DataFrame:
        """The streaming DataFrame whose batches are to be taken, and told of in its progress."""
        return self._reporter.watched(data)

    def end(self) -> None:
        """Take no more batches; returns when the one at work has come to its end."""
        self._ended.set()
        with self._busy:
            pass

    def _resumed(self) -> StreamProgress:
        """Where the last manifest stands; what was written after it is taken back."""
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
            return  # the process died after this batch's manifest, before Spark noted its end
        if number != (0 if latest is None else latest + 1):
            raise CheckpointError(
                f"the checkpoint is torn: Spark goes on with batch {number}, the last manifest is "
                f"{latest}; restore it as a whole, or start anew in another directory"
            )
        self._check()
        self._store.session = _session(data)
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
            told = f"cannot write {self._output.name}: {fault}"
            raise SinkError(f"{told}; run again once that is mended, nothing is lost") from error
