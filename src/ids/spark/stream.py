"""Start a stream or resume it from its checkpoint, wait for it, stop it and query its window."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from ids.errors import CheckpointError, SetupError, SourceError, StateError
from ids.model import Attribution, CountWindow, Duration, Misread, checked_seed, microseconds
from ids.plan import SelectPlan, Tables, merged_tables, planned
from ids.sink import Files
from ids.source import Declared, ParquetPart, at_once
from ids.spark.failures import translate, translated
from ids.spark.file_system import check_shared, files_at, path_at
from ids.spark.frame import Frame, check_workers, lateness_of
from ids.spark.kafka_topic import is_kafka
from ids.spark.preflight import (
    ahead_cap,
    check_stream,
    locate,
    only_select,
    refuse_beyond_panes,
    refuse_retained_rows,
)
from ids.spark.session import has_session, session_of
from ids.spark.spark_bad_rows import StreamBadRows
from ids.spark.stream_batch import Batches, Step
from ids.spark.stream_checkpoint import (
    Script,
    StreamProgress,
    claim,
    claimed,
    identity,
    lock,
    revised,
)
from ids.spark.stream_count import CountStep
from ids.spark.stream_output import Callback, KafkaTopic, Output, Target, file_output
from ids.spark.stream_question import StreamQuestion, replied, window_end
from ids.spark.stream_store import Store, shown
from ids.spark.stream_time import TimeStep
from ids.spark.table_reader import catalog_table, read, retyped

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_TICK = 0.05


class Collected:
    """Collects the emits in memory, for a stream without an output."""

    def __init__(self, schema: pa.Schema) -> None:
        self._tables = [schema.empty_table()]
        self._lock = Lock()

    def __call__(self, emits: pa.Table) -> None:
        with self._lock:
            self._tables.append(emits)

    def table(self) -> pa.Table:
        """Return all emits so far."""
        with self._lock:
            self._tables = [pa.concat_tables(self._tables)]
            return self._tables[0]


class Stream:
    """A running stream, as ``ids.spark.start`` returns it.

    A stream can be stopped, interrupted or killed at any moment. Start it again with the same
    checkpoint, and it resumes where it left off.

    query  the pyspark.sql.streaming.StreamingQuery that runs it

    >>> stream = ids.spark.start(script, checkpoint="ck", events="in/")  # doctest: +SKIP
    >>> stream.await_termination(60)  # doctest: +SKIP
    False
    >>> stream  # doctest: +SKIP
    <ids.spark stream, running: 120,000 rows, 3 late, 0 ahead, 0 bad, 60 emits>
    >>> stream.stop()  # doctest: +SKIP
    """

    def __init__(
        self,
        query: StreamingQuery,
        batches: Batches,
        collected: Collected | None,
        lock: BinaryIO | None,
        checkpoint: str | Path,
        session: SparkSession,
    ) -> None:
        self.query = query
        self._checkpoint, self._session = checkpoint, session
        self._batches, self._collected, self._lock = batches, collected, lock
        self._stopped = False

    def __repr__(self) -> str:
        totals = asdict(self.last_progress.totals)
        counts = ", ".join(f"{n:,} {what}" for what, n in totals.items())
        return f"<ids.spark stream, {self._phase()}: {counts}>"

    @property
    def is_active(self) -> bool:
        """True while the stream is running."""
        return bool(self.query.isActive)

    @property
    def last_progress(self) -> StreamProgress:
        """The progress after the last batch; its totals include batches before a restart."""
        return self._batches.progress

    def table(self) -> pa.Table:
        """Return all emits since the stream was last started, as a pyarrow.Table.

        Raises StateError if the stream was started with an output.
        """
        if self._collected is None:
            raise StateError("the emits were written to the output; start the stream without one")
        return self._collected.table()

    def attribute(
        self,
        aggregate: str,
        predicate: str,
        *,
        sample: int | None = None,
        confidence: float = 0.95,
        seed: int = 0,
    ) -> Attribution | pa.Table:
        """Attribute an aggregate to any predicate, in the window of the last emits.

        Requires ``start(..., retain=True)``. Parameters, result and errors are those of
        ``ids.spark.ask``.

        >>> stream.attribute("AVG(latency)", "region = 'EU'").value  # doctest: +SKIP
        12.5
        """
        question = StreamQuestion(aggregate, predicate, sample, confidence, seed)
        return replied(self._checkpoint, question, self._session).answer

    @property
    def window_end(self) -> datetime:
        """The last emitted instant, at which the window of ``attribute`` ends."""
        return window_end(self._checkpoint, self._session)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the stream fails or, with ``available_now``, has processed all rows.

        timeout  float, default None: the longest time to wait, in seconds; None: no limit

        Returns True if the stream has ended, False if the timeout has passed. Raises the error that
        made the stream fail. Ctrl-C stops the stream.
        """
        until = None if timeout is None else monotonic() + timeout
        try:
            while self.is_active:
                if until is not None and monotonic() >= until:
                    return False
                # Spark's awaitTermination would block in Java, where Ctrl-C has no effect
                sleep(_TICK)
        except BaseException:
            self.stop()
            raise
        self._end()
        failure = self._failure()
        if failure is not None:
            raise translate(failure) or failure from failure
        return True

    def stop(self) -> None:
        """Stop the stream. Returns once the current batch has ended and all files are closed."""
        self._stopped = True
        self._batches.end()
        self.query.stop()
        self._end()

    def _end(self) -> None:
        self._batches.end()
        if self._lock is not None:
            self._lock.close()

    def _failure(self) -> BaseException | None:
        if self._batches.failure is not None or self._stopped:
            return self._batches.failure
        return self.query.exception()

    def _phase(self) -> str:
        try:
            if self.is_active:
                return "running"
            if self._failure() is not None:
                return "failed"
        except (Py4JError, OSError):  # the session was stopped, and Java with it
            return "disconnected from Spark"
        return "stopped" if self._stopped else "ended"


MAX_AHEAD = "1 day"


def start(
    script: str,
    /,
    *,
    checkpoint: str | Path,
    output: Target = None,
    lateness: Duration | None = None,
    max_ahead: Duration | None = MAX_AHEAD,
    trigger: Duration | None = None,
    available_now: bool = False,
    bad_rows: str | Path | None = None,
    retain: bool = False,
    seed: int = 0,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    spark: SparkSession | None = None,
    on_progress: Callable[[StreamProgress], None] | None = None,
    tables: Mapping[str, object] | None = None,
    **named_tables: object,
) -> Stream:
    """Start a script with one SELECT as a stream, or resume it from its checkpoint.

    script         str: REGISTER PREDICATE statements, and one SELECT with EMIT CHANGES
    checkpoint     str or Path: the directory for the stream's state, new or used by this stream
    output         str or Path: a directory of Parquet files ("out/"; or "out.csv/", "out.jsonl/"),
                   a growing .csv or .jsonl file, or "kafka://host:port/topic"; or a function called
                   with each batch's emits as a pyarrow.Table; None (default): see Stream.table
    lateness       str such as "10 seconds", or timedelta: rows older than the newest by more than
                   this are dropped and counted; None: the DataFrame's watermark, or 0
    max_ahead      str or timedelta, default "1 day": rows newer than the others by more than this
                   are set aside and counted; None: no limit
    trigger        str or timedelta: the time between batches; None: as soon as rows arrive
    available_now  bool, default False: process the rows that are available now, then end
    bad_rows       str or Path: a directory for rows with a NULL time, NaN or infinity; None: such
                   a row stops the stream with an error
    retain         bool, default False: store the rows of a time window, for ``ids.spark.ask``
    seed           int, default 0: determines which rows APPROXIMATE samples
    schema         str such as "ts EPOCH_SECONDS, x DOUBLE", or a dict by table; None: inferred
    null           str or list of str: texts that mean NULL in CSV and JSON Lines files
    spark          SparkSession: by default that of the tables, the active one, or a new local one
    on_progress    function: called with a StreamProgress after each batch
    tables         dict, or keyword arguments, by name: a directory, "kafka://host:port/topic", the
                   name of a table in Spark's catalog, or a streaming DataFrame

    Returns the running Stream. Raises ScriptError, SourceError, CheckpointError or SetupError, all
    subclasses of ids.IdsError, if the script, a table or output, the checkpoint or Spark is wrong.

    >>> ids.spark.start(script, checkpoint="ck", output="out/", events="in/")  # doctest: +SKIP
    """
    late, pause = (None if each is None else microseconds(each) for each in (lateness, trigger))
    tables = merged_tables(tables, named_tables)
    known, ahead = Declared.of(schema, null, tables), ahead_cap(max_ahead)
    job = _Job(script, tables, known, checked_seed(seed), retain, late, pause, ahead, available_now)
    return job.start(checkpoint, output, bad_rows, spark, on_progress)


@dataclass(frozen=True, slots=True)
class _Job:
    """The settings of a stream to be started; times are in µs."""

    script: str
    tables: Mapping[str, object]
    declared: Declared
    seed: int
    retain: bool
    lateness: int | None
    trigger: int | None
    max_ahead: int | None
    available_now: bool

    def start(
        self,
        checkpoint: str | Path,
        output: Target,
        bad_rows: str | Path | None,
        spark: SparkSession | None,
        on_progress: Callable[[StreamProgress], None] | None,
    ) -> Stream:
        """Check all settings, where possible before Spark starts, and start the query."""
        tables, retain = self.tables, self.retain
        if not has_session(tables.values(), spark):
            check_stream(
                self.script,
                tables,
                self.declared,
                checkpoint=checkpoint,
                output=output,
                retain=retain,
                seed=self.seed,
            )
        session = _classic(session_of(tables.values(), spark))
        with translated():
            plan, frame = self._bound(session)
            late, files = lateness_of(plan, frame, self.lateness), files_at(checkpoint, session)
            step = self._step(plan, frame, session)
            collected = Collected(step.schema) if output is None else None
            target = _output(collected or output, session, plan.partition_by)
            check_shared(session, checkpoint, bad_rows, target.directory)
            with _locked(files) as held:
                store = _store(files, session, target, identity(plan, target.name))
                fixed = target.name if target.fixed else None
                script = revised(files, Script.of(plan, frame), plan, fixed)
                bad = None if bad_rows is None else StreamBadRows(bad_rows, plan.table, session)
                needed = source_columns(frame.data) & {*(frame if retain else plan).columns}
                check = partial(check_files, session, files, sorted(needed))
                batches = Batches(
                    step, check, store, target, late, self.max_ahead, bad, on_progress, script
                )
                query = self._query(frame.data, batches, files)
        return Stream(query, batches, collected, held, checkpoint, session)

    def _bound(self, session: SparkSession) -> tuple[SelectPlan, Frame]:
        """Return the plan of the script's SELECT, and the table it reads."""
        wait = not self.available_now
        frames = Tables(self.tables, partial(_opened, session, self.declared, wait))
        select, plan = only_select(planned(self.script, lambda one: frames.of(one).schema))
        refuse_retained_rows(plan, self.retain)
        return replace(plan, seed=self.seed), frames.of(select)

    def _step(self, plan: SelectPlan, frame: Frame, session: SparkSession) -> Step:
        check_workers(session)
        if isinstance(plan.window, CountWindow):
            return CountStep(plan, frame)
        refuse_beyond_panes(plan)
        return TimeStep(plan, frame, self.script, self.retain)

    def _query(self, data: DataFrame, batches: Batches, files: Files) -> StreamingQuery:
        writer = batches.watched(data).writeStream.foreachBatch(batches)
        writer = writer.option("checkpointLocation", f"{files.uri}/spark")
        if self.available_now:
            writer = writer.trigger(availableNow=True)
        elif self.trigger is not None:
            writer = writer.trigger(processingTime=f"{self.trigger} microseconds")
        return writer.start()


def _classic(session: SparkSession) -> SparkSession:
    """Return the session; reject one of Spark Connect."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise SetupError(
            "ids.spark.start does not run over Spark Connect; use a classic session, or "
            "ids.spark.sql over a streaming DataFrame"
        )
    return session


def _opened(session: SparkSession, known: Declared, wait: bool, data: object, name: str) -> Frame:
    """Open a table. If its directory is empty and ``wait`` is set, wait for the first file."""
    columns, table = known.columns(name), catalog_table(session, data, stream=True)
    data = data if table is None else table
    if isinstance(data, str | Path):
        stream = read(session, data, schema=columns, null=known.nulls, stream=True, wait=wait)
        misread = partial(_misread_at, session, data, known, name)
        return replace(Frame.of(stream).placed(), misread=misread)
    if not isinstance(data, DataFrame):
        raise SourceError(
            f"table {name!r} is not a stream; give a directory, or a DataFrame from readStream"
        )
    if not data.isStreaming:
        raise SourceError(
            f"table {name!r} is a batch DataFrame; give one from readStream, or use ids.spark.sql"
        )
    return Frame.of(retyped(data, columns, f"table {name!r}")).placed()


def _misread_at(
    session: SparkSession, path: str | Path, known: Declared, table: str, name: str
) -> Misread | None:
    """Return the type that a column read as text probably should have, or None."""
    columns = known.columns(table)
    if is_kafka(path) or name in columns:
        return None
    return locate(path_at(path, session)).schema(columns, known.nulls).misread(name)


def _output(target: Target | Collected, session: SparkSession, keys: Sequence[str]) -> Output:
    """Return the output for a function, a topic, a directory or a file."""
    assert target is not None
    if callable(target):
        return Callback(target)
    if is_kafka(target):
        return KafkaTopic(str(target), keys, session)
    return file_output(target, session)


@contextmanager
def _locked(files: Files) -> Iterator[BinaryIO | None]:
    """Create the checkpoint and yield its lock file, which is closed if the block fails.

    The checkpoint stays locked until that file is closed.
    """
    try:
        files.make("ids")
    except OSError as error:
        fault = error.strerror or str(error)
        raise CheckpointError(f"cannot create checkpoint {shown(files)}: {fault}") from error
    file = lock(files)
    try:
        yield file
    except BaseException:
        if file is not None:
            file.close()
        raise


def _store(files: Files, session: SparkSession, output: Output, stream: dict[str, object]) -> Store:
    """Claim the checkpoint for a stream and return its store.

    Raises SinkError if a new stream's output is not empty.
    """
    store = Store(files, session)
    if not claimed(files):
        output.check()
    claim(files, stream)
    if not any(entry.name.isdigit() for entry in files.entries("spark/offsets")):
        if store.latest() is not None:
            raise CheckpointError(
                f"checkpoint {shown(files)} lacks Spark's files; restore the whole checkpoint from "
                "a backup, or start with a new one"
            )
        files.remove("spark")  # Spark does not start from a partially written checkpoint
    return store


def source_columns(data: DataFrame) -> frozenset[str]:
    """Return the columns that a DataFrame's sources provide, before any are computed from them."""
    leaves = data._jdf.queryExecution().analyzed().collectLeaves()
    outputs = [leaves.apply(number).output() for number in range(leaves.size())]
    return frozenset(
        output.apply(number).name() for output in outputs for number in range(output.size())
    )


def check_files(session: SparkSession, checkpoint: Files, columns: Collection[str]) -> None:
    """Reject a micro-batch with a Parquet file that is incomplete or lacks one of ``columns``.

    Spark would read a missing column as NULLs. The files of the current batch are those that Spark
    lists in the ``checkpoint``; only their footers are read.
    """

    def schema(path: str) -> ParquetPart:
        return ParquetPart(path_at(path, session))

    for part in at_once(schema, _arrived(checkpoint)):
        for name in columns:
            if name not in part.schema.names:
                raise SourceError(
                    f"{part.path} lacks column {name!r}, which earlier files have; write it again"
                )


def _arrived(checkpoint: Files) -> Iterator[str]:
    """Yield the Parquet files of the last batch, as recorded in the logs of Spark's sources."""
    for source in checkpoint.entries("spark/sources"):
        folder = f"spark/sources/{source.name}"
        logs = [e.name for e in checkpoint.entries(folder) if e.name.split(".")[0].isdigit()]
        newest = max(logs, key=lambda log: int(log.split(".")[0]), default=None)
        if newest is None:
            continue
        lines = checkpoint.read(f"{folder}/{newest}").decode().splitlines()[1:]
        entries = [json.loads(line) for line in lines if line.startswith('{"path"')]
        # every tenth log repeats the entries before it
        last = max((entry["batchId"] for entry in entries), default=None)
        for entry in entries:
            path = unquote(entry["path"])
            if entry["batchId"] == last and path.endswith(".parquet"):
                yield path
