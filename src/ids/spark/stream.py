"""start: a script becomes a running stream, or one line says why not.

A stream that runs: to wait for, to stop, to ask how far it has come.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from ids.errors import CheckpointError, SetupError, SourceError, StateError
from ids.model import Attribution, CountWindow, Duration, Misread, checked_seed, microseconds
from ids.plan import SelectPlan, Tables, planned
from ids.sink import Files
from ids.source import Declared
from ids.spark.arrow_map import check_workers
from ids.spark.failures import translate, translated
from ids.spark.file_system import check_shared, files_at, path_at
from ids.spark.frame import Frame, lateness_of
from ids.spark.kafka_topic import is_kafka
from ids.spark.preflight import (
    ahead_cap,
    check_stream,
    only_select,
    refuse_beyond_panes,
    refuse_retained_rows,
)
from ids.spark.session import has_session, session_of
from ids.spark.spark_bad_rows import StreamBadRows
from ids.spark.stream_ahead import check_files, source_columns
from ids.spark.stream_batch import Batches, Step
from ids.spark.stream_count import CountStep
from ids.spark.stream_output import Callback, KafkaTopic, Output, Target, file_output
from ids.spark.stream_retained import Keeper, Sampler, ask, window_end
from ids.spark.stream_revision import Script, claim, claimed, identity, lock, revised
from ids.spark.stream_status import StreamProgress
from ids.spark.stream_store import Store
from ids.spark.stream_time import TimeStep
from ids.spark.table_location import locate
from ids.spark.table_reader import catalog_table, read, retyped

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_TICK = 0.05


class Kept:
    """Emits in memory, for a stream without an output."""

    def __init__(self, schema: pa.Schema) -> None:
        self._tables = [schema.empty_table()]
        self._lock = Lock()

    def __call__(self, emits: pa.Table) -> None:
        with self._lock:
            self._tables.append(emits)

    def table(self) -> pa.Table:
        """All of them so far."""
        with self._lock:
            self._tables = [pa.concat_tables(self._tables)]
            return self._tables[0]


class Stream:
    """A stream at work (``ids.spark.start``).

    It can be stopped, interrupted or killed at any moment; started again on the same checkpoint
    it goes on as if nothing had happened.
    """

    def __init__(
        self,
        query: StreamingQuery,
        batches: Batches,
        kept: Kept | None,
        lock: BinaryIO | None,
        checkpoint: str | Path,
        session: SparkSession,
    ) -> None:
        self.query = query
        self._checkpoint, self._session = checkpoint, session
        self._batches, self._kept, self._lock = batches, kept, lock
        self._stopped = False

    def __repr__(self) -> str:
        so_far = self.last_progress.totals
        counts = ", ".join(f"{n:,} {what}" for what, n in asdict(so_far).items())
        return f"<ids.spark stream, {self._phase()}: {counts}>"

    @property
    def is_active(self) -> bool:
        """Whether it still takes rows in."""
        return bool(self.query.isActive)

    @property
    def last_progress(self) -> StreamProgress:
        """How far it has come; totals include what came before a restart."""
        return self._batches.progress

    def table(self) -> pa.Table:
        """The emits since the start, of a stream that was given no output."""
        if self._kept is None:
            raise StateError("the emits went to the output; start the stream without one")
        return self._kept.table()

    def attribute(
        self,
        aggregate: str,
        predicate: str,
        *,
        sample: int | None = None,
        confidence: float = 0.95,
        seed: int = 0,
    ) -> Attribution | pa.Table:
        """What any predicate accounts for in the window of the last emits (``ids.spark.ask``).

        A Spark job over the rows that a stream started with ``retain`` keeps; exact, unless a
        ``sample`` of so many rows is asked for.
        """
        return ask(
            self._checkpoint,
            aggregate,
            predicate,
            sample=sample,
            confidence=confidence,
            seed=seed,
            spark=self._session,
        )

    @property
    def window_end(self) -> datetime:
        """The instant of the last emits: ``attribute`` speaks of the window that ends there."""
        return window_end(self._checkpoint, self._session)

    def await_termination(self, timeout: float | None = None) -> bool:
        """Until it ends by itself (``available_now``), fails, or ``timeout`` seconds are over.

        Whether it has ended. What made it fail is raised; Ctrl-C stops it.
        """
        until = None if timeout is None else monotonic() + timeout
        try:
            while self.is_active:
                if until is not None and monotonic() >= until:
                    return False
                # not awaitTermination: it would sit in Java, where Ctrl-C does not reach it
                sleep(_TICK)
        except BaseException:
            self.stop()
            raise
        self._end()
        self._raise_failure()
        return True

    def stop(self) -> None:
        """Take nothing more in. Returns when everything is at rest."""
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

    def _raise_failure(self) -> None:
        failure = self._failure()
        if failure is not None:
            raise translate(failure) or failure from failure

    def _phase(self) -> str:
        try:
            if self.is_active:
                return "running"
            if self._failure() is not None:
                return "failed"
        except (Py4JError, OSError):  # the session is gone, and its Java with it
            return "cut off from Spark"
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
    **tables: object,
) -> Stream:
    """Run a script with one SELECT over a stream, from where its checkpoint stands.

    A table is a directory to which files come, a ``kafka://`` topic, or a streaming DataFrame.
    ``output`` is a directory of Parquet parts (``out/``; ``out.csv/``, ``out.jsonl/``), a ``.csv``
    or ``.jsonl`` file that grows, a topic, a function that takes the emits of each batch, or None
    to keep them (``Stream.table``). ``lateness`` is how far event times may lie behind the newest
    (None: as a watermark of the DataFrame says, or not at all), ``max_ahead`` how far ahead of the
    others (None: by any); rows beyond are dropped or set aside, and counted. ``trigger`` is the
    time between batches; ``available_now`` takes what is there, and ends. ``retain``
    keeps the rows in a time window for ``ids.spark.ask``. The rest is as for ``ids.spark.sql``.
    """
    seed, cap = checked_seed(seed), ahead_cap(max_ahead)
    known = Declared.of(schema, null, tables)
    asked, pause = (None if each is None else microseconds(each) for each in (lateness, trigger))
    if not has_session(tables.values(), spark):
        check_stream(
            script, tables, known, checkpoint=checkpoint, output=output, retain=retain, seed=seed
        )
    session = _classic(session_of(tables.values(), spark))
    with translated():
        frames = Tables(tables, partial(_opened, session, known, not available_now))
        plan, frame = _bound(script, frames, seed, retain)
        span, files = lateness_of(plan, frame, asked), files_at(checkpoint, session)
        step = _step(plan, frame, session, script, retain)
        kept = Kept(step.schema) if output is None else None
        target = _output(output or kept or _nowhere, session, plan.partition_by)
        check_shared(session, checkpoint, bad_rows, target.place)
        with _held(files) as held:
            store = _store(files, session, target, identity(plan, target.name))
            fixed = target.name if target.fixed else None
            now = revised(files, Script.of(plan, frame), plan, fixed)
            bad = None if bad_rows is None else StreamBadRows(bad_rows, plan.table, session)
            check = _file_check(files, frame, frame.columns if retain else plan.columns)
            batches = Batches(step, check, store, target, span, cap, bad, on_progress, now)
            query = _begun(frame.data, batches, files, pause, available_now)
    return Stream(query, batches, kept, held, checkpoint, session)


def _file_check(files: Files, frame: Frame, read: Collection[str]) -> Callable[[], None]:
    """Every new file must have the columns that are read of it."""
    needed = source_columns(frame.data) & set(read)
    return partial(check_files, frame.data.sparkSession, files, sorted(needed))


def _classic(session: SparkSession) -> SparkSession:
    """The session; one of Spark Connect is refused."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise SetupError(
            "this process takes each batch of a stream, over Spark Connect the server would; "
            "use a classic session, or ids.spark.sql over a streaming DataFrame"
        )
    return session


def _opened(session: SparkSession, known: Declared, wait: bool, data: object, name: str) -> Frame:
    """A table of the stream; ``wait`` for the first file of a directory that has none yet."""
    columns, table = known.columns(name), catalog_table(session, data, stream=True)
    data = data if table is None else table
    if isinstance(data, str | Path):
        stream = read(session, data, schema=columns, null=known.nulls, stream=True, wait=wait)
        misread = partial(_misread_at, session, data, known, name)
        return replace(Frame.of(stream).placed(), misread=misread)
    if not isinstance(data, DataFrame):
        raise SourceError(
            f"table {name!r} is no stream; give a directory, or a DataFrame of readStream"
        )
    if not data.isStreaming:
        raise SourceError(
            f"table {name!r} is a finite DataFrame; give one of readStream, or use ids.spark.sql"
        )
    return Frame.of(retyped(data, columns, f"table {name!r}")).placed()


def _misread_at(
    session: SparkSession, place: str | Path, known: Declared, table: str, name: str
) -> Misread | None:
    """What a text column in the files of a stream seems to have been meant for."""
    columns = known.columns(table)
    if is_kafka(place) or name in columns:
        return None
    return locate(path_at(place, session)).schema(columns, known.nulls).misread(name)


def _bound(script: str, frames: Tables[Frame], seed: int, retain: bool) -> tuple[SelectPlan, Frame]:
    """The plan of the script's one SELECT, and its table."""
    select, plan = only_select(planned(script, lambda one: frames.of(one).schema))
    refuse_retained_rows(plan, retain)
    return replace(plan, seed=seed), frames.of(select)


def _step(plan: SelectPlan, frame: Frame, session: SparkSession, script: str, retain: bool) -> Step:
    check_workers(session)
    if isinstance(plan.window, CountWindow):
        return CountStep(plan, frame)
    refuse_beyond_panes(plan)
    keeper = Keeper(plan, frame, script) if retain else None
    sampler = Sampler(plan, frame, script) if plan.sampled else None
    return TimeStep(plan, frame, keeper, sampler)


def _output(target: Target, session: SparkSession, keys: Sequence[str]) -> Output:
    """What ``target`` means: a function, a topic, a directory or a file."""
    if callable(target):
        return Callback(target)
    if is_kafka(target):
        return KafkaTopic(str(target), keys, session)
    assert target is not None
    return file_output(target, session)


def _nowhere(_: object) -> None: ...


@contextmanager
def _held(files: Files) -> Iterator[BinaryIO | None]:
    """Make the checkpoint, and keep other streams out of it until the file is closed.

    It is closed if the block fails.
    """
    try:
        files.make("ids")
    except OSError as error:
        place = files.uri.removeprefix("file:")
        fault = error.strerror or str(error)
        raise CheckpointError(f"cannot make checkpoint {place}: {fault}") from error
    file = lock(files)
    try:
        yield file
    except BaseException:
        if file is not None:
            file.close()
        raise


def _store(files: Files, session: SparkSession, output: Output, stream: dict[str, object]) -> Store:
    """That of this stream, and of no other; both places are clean if it is new."""
    store = Store(files, session)
    if not claimed(files):
        output.check()
    claim(files, stream)
    if not any(entry.name.isdigit() for entry in files.entries("spark/offsets")):
        if store.latest() is not None:
            raise CheckpointError(
                f"checkpoint {files.uri.removeprefix('file:')} has lost Spark's part of it; "
                "restore it as a whole, or start anew in another directory"
            )
        files.remove("spark")  # Spark does not start on what its first moments left half-written
    return store


def _begun(data: DataFrame, batches: Batches, files: Files, pause: int | None, ends: bool) -> Any:
    writer = batches.watched(data).writeStream.foreachBatch(batches)
    writer = writer.option("checkpointLocation", f"{files.uri}/spark")
    if ends:
        writer = writer.trigger(availableNow=True)
    elif pause is not None:
        writer = writer.trigger(processingTime=f"{pause} microseconds")
    return writer.start()
