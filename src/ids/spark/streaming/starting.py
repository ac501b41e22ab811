"""start: a script becomes a running stream, or one line says why not."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from ids.errors import CheckpointError, ScriptError, SetupError, SourceError
from ids.model.query import Select
from ids.model.sampling import refuse_seed
from ids.model.window import CountWindow, TimeWindow, microseconds
from ids.plan import Schema, SelectPlan, Tables, planned
from ids.spark.failures import translated
from ids.spark.frames import Frame
from ids.spark.panes import refuse_high_moments
from ids.spark.sampled import refuse_large_samples
from ids.spark.session import session_of
from ids.spark.sources import read, with_origin
from ids.spark.streaming.arrivals import check_files, source_columns
from ids.spark.streaming.aside import Aside
from ids.spark.streaming.batches import Batches, Progress
from ids.spark.streaming.count_step import CountStep
from ids.spark.streaming.identity import claim, claimed, identity, lock
from ids.spark.streaming.outputs import Output, Target, output_of
from ids.spark.streaming.retained.folder import Folder
from ids.spark.streaming.retained.keeping import Keeper
from ids.spark.streaming.running import Kept, Running
from ids.spark.streaming.sampling import Sampler
from ids.spark.streaming.snapshots import Snapshots
from ids.spark.streaming.step import Step
from ids.spark.streaming.time_step import TimeStep

__all__ = ["MAX_AHEAD", "start"]

MAX_AHEAD = "1 day"

_RETAINED, _SAMPLED = "retained", "sampled"


def start(
    script: str,
    /,
    *,
    checkpoint: str | Path,
    output: Target = None,
    lateness: str = "0 seconds",
    max_ahead: str | None = MAX_AHEAD,
    trigger: str | None = None,
    once: bool = False,
    bad_rows: str | Path | None = None,
    retain: bool = False,
    seed: int = 0,
    spark: SparkSession | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    **tables: object,
) -> Running:
    """Run a script with one SELECT over a stream, from where its checkpoint stands.

    A table is a directory to which files come, a ``kafka://`` topic's DataFrame, or any streaming
    DataFrame. ``output`` is a directory of Parquet parts (``out/``; ``out.csv/`` and
    ``out.jsonl/`` for such parts), a ``.csv`` or ``.jsonl`` file that grows, a ``kafka://`` topic,
    a function that takes the emits of each batch, or None to keep them (``Running.table``).
    ``lateness`` is how far event times may lie back behind the newest; older rows are dropped and
    counted. ``max_ahead`` is how far ahead of the others a row may be and still move the watermark
    (None: as far as it likes); rows that are farther ahead are set aside and counted, with the bad
    ones if ``bad_rows`` is given. ``trigger`` is the time between batches; ``once`` takes what is
    there, and ends.
    ``retain`` keeps the rows inside a time window in the checkpoint, for ``Running.attribute`` and
    ``ids.spark.ask``. ``seed`` decides which rows an APPROXIMATE item samples.

    The checkpoint is a folder the driver writes to, with Spark's own checkpoint inside.
    """
    refuse_seed(seed)
    span, cap = microseconds(lateness), _cap(max_ahead)
    session = session_of(tables.values(), spark)
    _refuse_connect(session)
    with translated():
        frames = Tables(tables, lambda data, name: _opened(session, data, name))
        plan, frame = _only_select(script, frames, seed)
        root = _absolute(checkpoint)
        folders = _folders(plan, root, retain)
        step = _step(plan, frame, session, folders)
        kept = Kept(step.schema) if output is None else None
        target = output_of(output, session, plan.partition_by, kept or _nowhere)
        _make(root)
        held = lock(root / "ids")
        try:
            snapshots = _snapshots(root, target, identity(plan, frame, target.name))
            aside = None if bad_rows is None else Aside(Path(bad_rows), plan.table)
            for folder in folders.values():
                folder.begin(script)
            check = _file_check(root, frame, frame.columns if retain else plan.columns)
            sweeps = [Folder(root, name).sweep for name in (_RETAINED, _SAMPLED)]
            batches = Batches(step, check, snapshots, target, span, cap, aside, on_progress, sweeps)
            query = _begun(frame.data, batches, root, trigger, once)
        except BaseException:
            held.close()
            raise
    return Running(query, batches, kept, held, root, session)


def _cap(max_ahead: str | None) -> int | None:
    cap = None if max_ahead is None else microseconds(max_ahead)
    if cap is not None and cap < 1:
        raise ScriptError(
            f"a row is ahead of the others by more than {max_ahead!r} if it is newer at all",
            hint="give a longer span, as in '1 day'",
        )
    return cap


def _file_check(root: Path, frame: Frame, read: Collection[str]) -> Callable[[], None]:
    """Every new file must have the columns that are read of it."""
    needed = source_columns(frame.data) & set(read)
    return partial(check_files, root / "spark", sorted(needed))


def _refuse_connect(session: SparkSession) -> None:
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise SetupError(
            "a stream keeps its state in this process, Spark Connect would run it at the server; "
            "use a classic session, or ids.spark.sql over a streaming DataFrame"
        )


def _opened(session: SparkSession, data: object, name: str) -> Frame:
    if isinstance(data, str | Path):
        data = read(session, data, stream=True)
    if not isinstance(data, DataFrame):
        raise SourceError(
            f"table {name!r} is no stream; give a directory, or a DataFrame of readStream"
        )
    if not data.isStreaming:
        raise SourceError(
            f"table {name!r} is a finite DataFrame; give one of readStream, or use ids.spark.sql"
        )
    return Frame.of(with_origin(data))


def _only_select(script: str, frames: Tables[Frame], seed: int) -> tuple[SelectPlan, Frame]:
    steps = list(planned(script, lambda statement: _schema(frames.of(statement))))
    selects = [step for step in steps if isinstance(step.statement, Select)]
    if len(steps) > len(selects):
        raise ScriptError("SHOW and EXPLAIN answer at once", hint="run them without a stream")
    if len(selects) != 1:
        raise ScriptError(
            f"a stream runs one SELECT, this script has {len(selects) or 'none'}",
            selects[1].statement.at if selects else None,  # type: ignore[union-attr]
            "start a stream for each, with a checkpoint and an output of its own",
        )
    (only,) = selects
    assert isinstance(only.statement, Select) and only.plan is not None
    if only.plan.final:
        raise ScriptError(
            "EMIT FINAL asks for the end of a stream, which has none",
            only.statement.at,
            "use EMIT CHANGES, or run it on files without a stream",
        )
    return replace(only.plan, seed=seed), frames.of(only.statement)


def _schema(frame: Frame) -> Schema:
    return Schema(frame.kinds, frame.unsupported)


def _folders(plan: SelectPlan, root: Path, retain: bool) -> dict[str, Folder]:
    """Where rows inside the window are kept: for questions, and for samples to be drawn from."""
    in_panes = isinstance(plan.window, TimeWindow)
    wanted = {_RETAINED: retain, _SAMPLED: bool(plan.sampled) and in_panes}
    return {name: Folder(root, name) for name, needed in wanted.items() if needed}


def _step(
    plan: SelectPlan, frame: Frame, session: SparkSession, folders: dict[str, Folder]
) -> Step:
    if isinstance(plan.window, CountWindow):
        if folders:
            raise ScriptError(
                "rows are retained by the panes of a time window, ROWS has none",
                hint="use RANGE, or start the stream without retain",
            )
        return CountStep(plan, frame, session)
    refuse_high_moments(plan)
    refuse_large_samples(plan)
    keeper = Keeper(plan, frame, folders[_RETAINED]) if _RETAINED in folders else None
    sampler = Sampler(plan, frame, folders[_SAMPLED]) if _SAMPLED in folders else None
    return TimeStep(plan, frame, keeper, sampler)


def _nowhere(_: object) -> None: ...


def _absolute(place: str | Path) -> Path:
    if "://" in str(place):
        raise CheckpointError(f"checkpoint {place} is no folder; name one the driver can write to")
    return Path(place).expanduser().absolute()


def _make(root: Path) -> None:
    try:
        (root / "ids").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointError(f"cannot make checkpoint {root}: {error.strerror}") from error


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


def _begun(data: DataFrame, batches: Batches, root: Path, trigger: str | None, once: bool) -> Any:
    writer = data.writeStream.foreachBatch(batches)
    writer = writer.option("checkpointLocation", str(root / "spark"))
    if once:
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    return writer.start()
