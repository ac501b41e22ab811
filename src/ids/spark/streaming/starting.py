"""start: a script becomes a running stream, or one line says why not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from pyspark.sql import DataFrame, SparkSession

from ids.errors import CheckpointError, SetupError, SourceError
from ids.model.sampling import checked_seed
from ids.model.window import CountWindow, Duration, TimeWindow, microseconds
from ids.plan import SelectPlan, Tables, planned
from ids.source import Declared
from ids.spark.failures import translated
from ids.spark.frames import Frame
from ids.spark.limits import ahead_cap, only_select, refuse_beyond_panes, refuse_retained_rows
from ids.spark.mapping import check_workers
from ids.spark.preflight import check_stream, schema_at
from ids.spark.session import has_session, session_of
from ids.spark.sources import read, retyped
from ids.spark.streaming.arrivals import check_files, source_columns
from ids.spark.streaming.aside import Aside
from ids.spark.streaming.batches import Batches, Progress
from ids.spark.streaming.count_step import CountStep
from ids.spark.streaming.identity import checkpoint_root, claim, claimed, identity, lock
from ids.spark.streaming.messages import KafkaTopic
from ids.spark.streaming.outputs import Callback, Output, Target, file_output
from ids.spark.streaming.retained.folder import Folder
from ids.spark.streaming.retained.keeping import Keeper
from ids.spark.streaming.running import Kept, Running
from ids.spark.streaming.sampling import Sampler
from ids.spark.streaming.snapshots import Snapshots
from ids.spark.streaming.step import Step
from ids.spark.streaming.time_step import TimeStep
from ids.spark.topic import is_kafka
from ids.spark.watermark import lateness_of

__all__ = ["MAX_AHEAD", "start"]

MAX_AHEAD = "1 day"

_RETAINED, _SAMPLED = "retained", "sampled"


def start(
    script: str,
    /,
    *,
    checkpoint: str | Path,
    output: Target = None,
    lateness: Duration | None = None,
    max_ahead: Duration | None = MAX_AHEAD,
    trigger: Duration | None = None,
    once: bool = False,
    bad_rows: str | Path | None = None,
    retain: bool = False,
    seed: int = 0,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    spark: SparkSession | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **tables: object,
) -> Running:
    """Run a script with one SELECT over a stream, from where its checkpoint stands.

    A table is a directory to which files come, a ``kafka://`` topic, or a streaming DataFrame.
    ``output`` is a directory of Parquet parts (``out/``; ``out.csv/``, ``out.jsonl/``), a ``.csv``
    or ``.jsonl`` file that grows, a topic, a function that takes the emits of each batch, or None
    to keep them (``Running.table``). ``lateness`` is how far event times may lie behind the newest
    (None: as a watermark of the DataFrame says, or not at all), ``max_ahead`` how far ahead of the
    others (None: by any); rows beyond are dropped or set aside, and counted. ``trigger`` is the
    time between batches; ``once`` takes what is there, and ends. ``retain`` keeps the rows in a
    time window for ``ids.spark.ask``. The rest is as for ``ids.spark.sql``.
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
        frames = Tables(tables, partial(_opened, session, known, not once))
        plan, frame = _bound(script, frames, seed, retain)
        span, root = lateness_of(plan, frame, asked), checkpoint_root(checkpoint)
        folders = _folders(plan, root, retain)
        step = _step(plan, frame, session, folders)
        kept = Kept(step.schema) if output is None else None
        target = _output(output or kept or _nowhere, session, plan.partition_by)
        held = _held(root)
        try:
            snapshots = _snapshots(root, target, identity(plan, target.name, frame))
            aside = None if bad_rows is None else Aside(Path(bad_rows), plan.table)
            for folder in folders.values():
                folder.begin(script)
            check = _file_check(root, frame, frame.columns if retain else plan.columns)
            sweeps = [Folder(root, name).sweep for name in (_RETAINED, _SAMPLED)]
            batches = Batches(step, check, snapshots, target, span, cap, aside, on_progress, sweeps)
            query = _begun(frame.data, batches, root, pause, once)
        except BaseException:
            held.close()
            raise
    return Running(query, batches, kept, held, root, session)


def _file_check(root: Path, frame: Frame, read: Collection[str]) -> Callable[[], None]:
    """Every new file must have the columns that are read of it."""
    needed = source_columns(frame.data) & set(read)
    return partial(check_files, root / "spark", sorted(needed))


def _classic(session: SparkSession) -> SparkSession:
    """The session; one of Spark Connect is refused."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise SetupError(
            "a stream keeps its state in this process, Spark Connect would run it at the server; "
            "use a classic session, or ids.spark.sql over a streaming DataFrame"
        )
    return session


def _opened(session: SparkSession, known: Declared, wait: bool, data: object, name: str) -> Frame:
    """A table of the stream; ``wait`` for the first file of a directory that has none yet."""
    columns = known.columns(name)
    if isinstance(data, str | Path):
        stream = read(session, data, schema=columns, null=known.nulls, stream=True, wait=wait)
        misread = schema_at(str(data), columns, known.nulls, stream=True).misread
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


def _bound(script: str, frames: Tables[Frame], seed: int, retain: bool) -> tuple[SelectPlan, Frame]:
    """The plan of the script's one SELECT, and its table."""
    select, plan = only_select(planned(script, lambda one: frames.of(one).schema))
    refuse_retained_rows(plan, retain)
    return replace(plan, seed=seed), frames.of(select)


def _folders(plan: SelectPlan, root: Path, retain: bool) -> dict[str, Folder]:
    """Where rows inside the window are kept: for questions, and for samples to be drawn from."""
    in_panes = isinstance(plan.window, TimeWindow)
    wanted = {_RETAINED: retain, _SAMPLED: bool(plan.sampled) and in_panes}
    return {name: Folder(root, name) for name, needed in wanted.items() if needed}


def _step(
    plan: SelectPlan, frame: Frame, session: SparkSession, folders: dict[str, Folder]
) -> Step:
    if isinstance(plan.window, CountWindow):
        check_workers(session)
        return CountStep(plan, frame, session)
    refuse_beyond_panes(plan)
    if plan.sampled:
        check_workers(session)
    keeper = Keeper(plan, frame, folders[_RETAINED]) if _RETAINED in folders else None
    sampler = Sampler(plan, frame, folders[_SAMPLED]) if _SAMPLED in folders else None
    return TimeStep(plan, frame, keeper, sampler)


def _output(target: Target, session: SparkSession, keys: Sequence[str]) -> Output:
    """What ``target`` means: a function, a topic, a directory or a file."""
    if callable(target):
        return Callback(target)
    if is_kafka(target):
        return KafkaTopic(str(target), session, keys)
    assert target is not None
    return file_output(target)


def _nowhere(_: object) -> None: ...


def _held(root: Path) -> BinaryIO:
    """Make the checkpoint, and keep other streams out of it until the file is closed."""
    try:
        (root / "ids").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"cannot make checkpoint {root}: {error.strerror}") from error
    return lock(root / "ids")


def _snapshots(root: Path, output: Output, stream: dict[str, object]) -> Snapshots:
    """Those of this stream, and of no other; both places are clean if it is new."""
    snapshots = Snapshots(root / "ids")
    if not claimed(root / "ids"):
        output.check()
    claim(root / "ids", stream)
    if snapshots.latest() is not None and not (root / "spark" / "offsets").is_dir():
        raise CheckpointError(
            f"checkpoint {root} has lost Spark's part of it; restore it as a whole, or start anew "
            "in another folder"
        )
    return snapshots


def _begun(data: DataFrame, batches: Batches, root: Path, pause: int | None, once: bool) -> Any:
    writer = data.writeStream.foreachBatch(batches)
    writer = writer.option("checkpointLocation", str(root / "spark"))
    if once:
        writer = writer.trigger(availableNow=True)
    elif pause is not None:
        writer = writer.trigger(processingTime=f"{pause} microseconds")
    return writer.start()
