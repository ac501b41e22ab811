"""What a checkpoint stores about its stream: its identity, its script and its progress.

The identity (table, window, WHERE, keys, order, output) is fixed for the life of a stream. The
items of its script may be added, removed, reordered and renamed when the stream is restarted. If a
new item needs sums that were not computed before, its columns are NULL until the window no longer
contains rows from before the restart. A column cannot change its meaning. A manifest is a small
file that describes the state after a batch; ``status`` reads only the newest one.

This module requires neither pyspark nor a running stream.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ids.errors import CheckpointError
from ids.model import CountWindow, TimeWindow, is_remote, local_path, render, span
from ids.plan import PlannedItem, SelectPlan
from ids.sink import Files, LocalFiles, Readable
from ids.spark.file_system import files_at, readable_at
from ids.spark.stream_store import (
    FORMAT,
    MANIFESTS,
    Manifest,
    Manifests,
    altered,
    shown,
    unknown_format,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ids.spark.frame import Frame
    from ids.spark.stream_batch import Counts

_STREAM, _LOCK = f"{MANIFESTS}/stream", "lock"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ScriptItem:
    """One SELECT item of a script.

    name       the name of its column
    asks       what the item computes, as text
    beside     the suffixes of its additional columns, such as ``share``
    measure    the number of its measure
    predicate  the number of its predicate; None if it has none
    """

    name: str
    asks: str
    beside: tuple[str, ...]
    measure: int
    predicate: int | None

    @classmethod
    def of(cls, item: PlannedItem, plan: SelectPlan) -> ScriptItem:
        """Return the description of an item of a plan."""
        measure = plan.measures[item.measure]
        asks = f"{item.game.name}({'*' if measure is None else render(measure)})"
        if item.predicate is not None:
            sample, asked = "", item.approximate
            if asked is not None:
                sample = f" APPROXIMATE USING RESERVOIR SAMPLE {asked.size}"
                sample += f" CONFIDENCE {asked.confidence!r}"
            condition = render(plan.predicates[item.predicate])
            asks = f"{item.kind.value}({asks}, {condition}{sample})"
        beside = [part.lower() for part in item.parts]
        beside += ["error", "mechanism"] if item.approximate is not None else []
        return cls(item.name, asks, tuple(beside), item.measure, item.predicate)


@dataclass(frozen=True, slots=True)
class Script:
    """The part of a stream's script that may change at a restart; stored in every manifest.

    measures    the measures as text, by number
    degrees     the highest power of each measure that is summed
    predicates  the predicates as text, by number
    reads       the columns that the script reads; their order affects which rows are sampled
    types       types of the columns read now or in the past; empty if not known yet
    seed        the seed for sampling; None if no item is sampled
    """

    items: tuple[ScriptItem, ...]
    measures: tuple[str, ...]
    degrees: tuple[int, ...]
    predicates: tuple[str, ...]
    reads: tuple[str, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None

    @classmethod
    def of(cls, plan: SelectPlan, frame: Frame | None = None) -> Script:
        """Return the description of a plan, without types if ``frame`` is None.

        The types are unknown until Spark has started.
        """
        return cls(
            tuple(ScriptItem.of(item, plan) for item in plan.items),
            tuple("*" if measure is None else render(measure) for measure in plan.measures),
            plan.degrees,
            tuple(map(render, plan.predicates)),
            plan.columns,
            {} if frame is None else {name: frame.columns[name].type for name in plan.columns},
            plan.seed if plan.sampled else None,
        )

    def facts(self) -> dict[str, Any]:
        """Return the script as JSON values, for a manifest."""
        return asdict(self)

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Script:
        """Restore a script from the values that ``facts`` returned."""
        items = [ScriptItem(**i | {"beside": tuple(i["beside"])}) for i in facts["items"]]
        names = ("measures", "degrees", "predicates", "reads")
        lists = {name: tuple(facts[name]) for name in names}
        return cls(tuple(items), **lists, types=facts["types"], seed=facts["seed"])

    @property
    def columns(self) -> dict[str, str]:
        """The columns of the emits, with the meaning of each."""
        found = {}
        for item in self.items:
            found[item.name] = item.asks
            found |= {f"{item.name}_{part}": f"{part} of {item.asks}" for part in item.beside}
        return found

    @property
    def asked(self) -> tuple[tuple[int, ...], ...]:
        """For each measure, the predicates for whose rows it is summed."""
        pairs = {(i.measure, i.predicate) for i in self.items if i.predicate is not None}
        return tuple(
            tuple(sorted(predicate for measure, predicate in pairs if measure == number))
            for number in range(len(self.measures))
        )


@dataclass(frozen=True, slots=True)
class Revision:
    """A change of a stream's script; arguments are numbers in the new script."""

    old: Script
    new: Script

    @property
    def moves(self) -> bool:
        """True if the stored sums have to be rewritten for the new script."""
        return any(
            getattr(self.old, name) != getattr(self.new, name)
            for name in ("measures", "degrees", "predicates", "asked")
        )

    def measure(self, number: int) -> int | None:
        """Return the old number of a measure; None if it is new."""
        return _number(self.old.measures, self.new.measures[number])

    def predicate(self, number: int) -> int | None:
        """Return the old number of a predicate; None if it is new."""
        return _number(self.old.predicates, self.new.predicates[number])

    def source(
        self, number: int, predicate: int | None, degree: int
    ) -> tuple[int, int | None] | None:
        """Return the old numbers of a measure and predicate, for sums up to ``degree``.

        Returns None if the old script did not compute these sums.
        """
        measure = self.measure(number)
        if measure is None or self.old.degrees[measure] < degree:
            return None
        if predicate is None:
            return measure, None
        held = self.predicate(predicate)
        return (measure, held) if held in self.old.asked[measure] else None


def _number(texts: tuple[str, ...], text: str) -> int | None:
    return texts.index(text) if text in texts else None


class Begin(NamedTuple):
    """The first instant (in slides) at which sums added at a restart cover the whole window."""

    measure: int
    predicate: int | None
    degree: int
    instant: int


class Begins(tuple[Begin, ...]):
    """A ``Begin`` for each sum that is not complete yet because it was added at a restart."""

    __slots__ = ()

    @classmethod
    def of(cls, facts: Iterable[Sequence[Any]]) -> Begins:
        """Restore from the values stored as JSON."""
        return cls(Begin(*each) for each in facts)

    def begin(self, measure: int, predicate: int | None, degree: int) -> int | None:
        """Return the first instant at which these sums are complete; None if they always are."""
        found = [
            one.instant
            for one in self
            if one.measure == measure
            and one.predicate in (None, predicate)
            and one.degree <= degree
        ]
        return max(found, default=None)

    def after(self, instant: int) -> Begins:
        """Return only the sums that are still incomplete at ``instant``."""
        return Begins(one for one in self if one.instant > instant)

    def revised(self, revision: Revision, fresh: int | None) -> Begins:
        """Return the sums whose panes are not complete yet, converted for the new script.

        ``fresh`` is the first instant at which sums that start now are complete; it is None if no
        rows have arrived yet.
        """
        new, found = revision.new, []
        for number, degree in enumerate(new.degrees):
            for predicate, up_to in product((None, *new.asked[number]), range(degree + 1)):
                source = revision.source(number, predicate, up_to)
                begin = fresh if source is None else self.begin(*source, up_to)
                if begin is not None:
                    found.append(Begin(number, predicate, up_to, begin))
        return Begins(found)


def revised(files: Readable, now: Script, plan: SelectPlan, fixed: str | None) -> Script:
    """Return the script to store for a stream that is started or resumed.

    Raises CheckpointError if the checkpoint cannot be resumed with the script ``now``. ``fixed`` is
    the name of the output if its columns cannot change, else None.
    """
    manifest = Manifests(files).latest()
    if manifest is None:
        return now
    known, path = Script.read(manifest.facts["script"]), shown(files)
    for name, type_ in now.types.items():
        if known.types.get(name, type_) != type_:
            raise _refusal(path, f"a stream in which {name!r} is {known.types[name]}, not {type_}")
    if None not in (known.seed, now.seed) and known.seed != now.seed:
        raise _refusal(path, "a stream with another seed")
    before = known.columns
    for name, meaning in now.columns.items():
        if before.get(name, meaning) != meaning:
            raise CheckpointError(
                f"column {name!r} of checkpoint {path} is {before[name]}, but the script defines "
                f"it as {meaning}; use another alias"
            )
    if fixed is not None and list(before) != list(now.columns):
        raise CheckpointError(
            f"the columns of the script have changed, but the header of {fixed} cannot; use the "
            "original items, or start a new checkpoint with a directory as output"
        )
    if isinstance(plan.window, CountWindow):
        _refuse_rows(path, Revision(known, now))
    # a column that is no longer read may be read again later
    return replace(now, types={**known.types, **now.types})


def _refuse_rows(path: str, revision: Revision) -> None:
    """Reject items that cannot be computed from the stored rows of a count window."""
    new = revision.new
    lacking = [text for n, text in enumerate(new.predicates) if revision.predicate(n) is None]
    for number, text in enumerate(new.measures):
        known = revision.source(number, None, min(new.degrees[number], 1))
        if known is None and text != "*":  # counting rows requires no column
            lacking.append(text)
    if new.seed is not None and (revision.old.seed, revision.old.reads) != (new.seed, new.reads):
        lacking.append("APPROXIMATE")
    if lacking:
        raise _refusal(
            path, f"a stream of count windows, whose rows are stored without {lacking[0]}"
        )


def _refusal(path: str, what: str) -> CheckpointError:
    return CheckpointError(
        f"checkpoint {path} belongs to {what}; use a new checkpoint directory, or the original "
        "script and settings"
    )


def identity(plan: SelectPlan, output: str) -> dict[str, object]:
    """Return the settings that must stay the same for the life of a stream, by name."""
    where = None if plan.where is None else render(plan.where)
    return {
        "version": FORMAT,
        "table": plan.table,
        "window": window_text(plan.window),
        "WHERE": where,
        "PARTITION BY": list(plan.partition_by),
        "ORDER BY": list(plan.order_by),
        "output": output,
    }


def window_text(window: CountWindow | TimeWindow) -> str:
    """Return a window as it is written in a script.

    >>> window_text(CountWindow(100, 10)), window_text(TimeWindow("1 minute", "10 seconds"))
    ('ROWS 100 PRECEDING SLIDE 10 ROWS', 'RANGE 1 minute PRECEDING SLIDE 10 seconds')
    """
    if isinstance(window, CountWindow):
        return f"ROWS {window.size} PRECEDING SLIDE {window.slide} ROWS"
    return f"RANGE {span(window.duration)} PRECEDING SLIDE {span(window.slide or 0)}"


def claimed(files: Files) -> bool:
    """Return whether a checkpoint already belongs to a stream."""
    return any(f"{MANIFESTS}/{entry.name}" == _STREAM for entry in files.entries(MANIFESTS))


def claim(files: Files, stream: dict[str, object]) -> None:
    """Store the stream's identity; raise CheckpointError if the checkpoint has another one."""
    if claimed(files):
        refuse_another(files, stream)
        return
    try:
        files.write(_STREAM, json.dumps(stream, indent=1).encode())
    except OSError as error:
        fault = error.strerror or str(error)
        raise CheckpointError(f"cannot write checkpoint {shown(files)}: {fault}") from error


def stream_at(files: Readable) -> dict[str, Any] | None:
    """Return the identity that a checkpoint stores; None if there is none yet."""
    try:
        known: dict[str, Any] = json.loads(files.read(_STREAM))
        format_ = known["version"]
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError):
        raise altered(files, _STREAM) from None
    if format_ != FORMAT:
        raise unknown_format(files, format_)
    return known


def refuse_another(files: Readable, stream: dict[str, object]) -> None:
    """Raise CheckpointError if the stored identity differs from that of ``stream``."""
    known = stream_at(files) or {}
    differing = [part for part, value in stream.items() if known.get(part) != value]
    if differing:
        raise _refusal(shown(files), f"a stream with another {' and '.join(differing)}")


def lock(files: Files) -> BinaryIO | None:
    """Lock a local checkpoint against other processes until the returned file is closed.

    On other file systems, the checkpoint is not locked: if two streams use it, Spark's own log lets
    only one of them continue.
    """
    if not isinstance(files, LocalFiles):
        return None
    file = (files.path / MANIFESTS / _LOCK).open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise CheckpointError(
            f"checkpoint {shown(files)} is in use by another stream; stop that one first"
        ) from None
    return file


def instant(micros: int | None) -> datetime | None:
    """Convert microseconds since 1970 to a datetime."""
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


@dataclass(frozen=True, slots=True)
class Totals:
    """Row counts since the stream was first started; stored in every manifest."""

    rows: int = 0
    late: int = 0
    ahead: int = 0
    bad: int = 0
    emits: int = 0

    def plus(self, counts: Counts, emits: int) -> Totals:
        """Return the totals after one more batch."""
        return Totals(
            self.rows + counts.rows,
            self.late + counts.late,
            self.ahead + counts.ahead,
            self.bad + counts.bad,
            self.emits + emits,
        )


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """The progress of a stream after a micro-batch.

    batch       number of the last completed batch; None before the first
    totals      counts over all batches, including those before a restart
    rows        rows of the last batch that passed WHERE, including bad, late and ahead ones
    seconds     duration of the last batch
    watermark   instants before it have been emitted; new rows with earlier times are late
    state_rows  rows stored in the checkpoint, which later windows may need
    waiting     1 if a row far ahead of the others is held back until more rows arrive; else 0
    """

    batch: int | None = None
    totals: Totals = Totals()
    rows: int = 0
    seconds: float = 0.0
    watermark: datetime | None = None
    state_rows: int = 0
    waiting: int = 0

    @classmethod
    def of(cls, manifest: Manifest) -> StreamProgress:
        """Read the progress that a manifest stores."""
        facts = manifest.facts
        return cls(
            manifest.batch,
            Totals(**facts["totals"]),
            facts["rows"],
            facts["seconds"],
            instant(facts["watermark"]),
            manifest.rows,
            facts["waiting"],
        )

    @property
    def rows_per_second(self) -> float:
        """The number of rows per second in the last batch."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(StreamProgress):
    """The state of a stream after its last completed batch, as ``ids.spark.status`` returns it.

    Besides the attributes of StreamProgress:

    checkpoint   str: the checkpoint directory
    table        str: the table that the script reads
    window       str: the window, as it is written in a script
    output       str: where the emits are written
    asked        datetime: when this status was read
    items        dict: the meaning of each item, by its column name
    ended        datetime | None: when the last batch completed
    state_bytes  int: size of the stored state
    state_files  int: number of files in the stored state
    written_by   str | None: the IDS version that wrote the checkpoint
    format       int: the format of the checkpoint
    """

    checkpoint: str
    table: str
    window: str
    output: str
    asked: datetime
    items: dict[str, str]
    ended: datetime | None
    state_bytes: int
    state_files: int
    written_by: str | None
    format: int = FORMAT

    @property
    def lag(self) -> timedelta | None:
        """The time from the watermark until ``asked``; None before the first row."""
        return None if self.watermark is None else self.asked - self.watermark

    @property
    def idle(self) -> timedelta | None:
        """The time from the end of the last batch until ``asked``; None before the first batch."""
        return None if self.ended is None else self.asked - self.ended

    def facts(self) -> dict[str, Any]:
        """Return a dict for JSON: times in ISO 8601, durations in seconds."""
        found = asdict(self) | {"rows_per_second": self.rows_per_second}
        for name in ("asked", "watermark", "ended"):
            time = getattr(self, name)
            found[name] = None if time is None else time.isoformat()
        for name, time in (("lag", self.lag), ("idle", self.idle)):
            found[f"{name}_seconds"] = None if time is None else time.total_seconds()
        return found


def status(checkpoint: str | Path, *, spark: SparkSession | None = None) -> Status:
    """Return the state of a stream from its checkpoint, whether it is running or not.

    Only the newest manifest, a small file, is read, so Spark is usually not started.

    checkpoint  str or Path: the checkpoint directory of a stream, or a URI such as "s3a://b/ck"
    spark       SparkSession that reads the checkpoint; None (default): pyarrow reads it, with its
                own settings for remote file systems, or a session if pyarrow cannot

    Returns a Status: totals, watermark, last batch and size of the state. Raises CheckpointError if
    the directory does not exist, is not a checkpoint, cannot be read, or was altered.

    >>> ids.spark.status("ck").totals.rows  # doctest: +SKIP
    120000
    """
    files = _files(checkpoint, spark)
    try:
        stream, manifest = stream_at(files), Manifests(files).latest()
    except OSError as error:
        if isinstance(error, CheckpointError):
            raise
        fault = str(error).split("\n", maxsplit=1)[0]
        raise CheckpointError(f"cannot read checkpoint {checkpoint}: {fault}") from error
    if stream is None:
        raise not_a_checkpoint(checkpoint)
    progress = StreamProgress() if manifest is None else StreamProgress.of(manifest)
    known = manifest or Manifest(0, {}, {})
    items = Script.read(known.facts["script"]).items if manifest else ()
    ended = known.facts.get("at")
    return Status(
        **{each.name: getattr(progress, each.name) for each in fields(progress)},
        checkpoint=shown(files),
        table=stream["table"],
        window=stream["window"],
        output=stream["output"],
        asked=datetime.now(UTC),
        items={item.name: item.asks for item in items},
        ended=instant(ended and round(ended * 1e6)),
        state_bytes=known.bytes,
        state_files=known.files,
        written_by=known.written_by or None,
    )


def not_a_checkpoint(path: str | Path) -> CheckpointError:
    """Return the error for a directory that is not a checkpoint."""
    return CheckpointError(f"{path} is not a checkpoint; give the checkpoint directory of a stream")


def needs_session(checkpoint: str | Path) -> bool:
    """Return whether a checkpoint can be read only through Spark."""
    return readable_at(checkpoint) is None


def _files(checkpoint: str | Path, spark: SparkSession | None) -> Readable:
    if not is_remote(checkpoint):
        path = local_path(checkpoint)
        if not path.is_dir():
            what = "is a file" if path.exists() else "does not exist"
            raise CheckpointError(f"{checkpoint} {what}; give the checkpoint directory of a stream")
    files = readable_at(checkpoint) if spark is None else None
    if files is not None:
        return files
    from ids.spark.session import session_of  # rarely needed, and imports pyspark

    return files_at(checkpoint, session_of((), spark))
