"""How far a stream has come, read from its checkpoint: no session and no running stream needed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ids.errors import CheckpointError
from ids.model import is_remote, local_path
from ids.sink import Readable
from ids.spark.file_system import files_at, readable_at
from ids.spark.stream_revision import Script, stream_at
from ids.spark.stream_store import FORMAT, Manifest, Manifests, shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ids.spark.stream_batch import Counts

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(micros: int | None) -> datetime | None:
    """Microseconds since 1970 as a time."""
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)


@dataclass(frozen=True, slots=True)
class Totals:
    """Over the life of a stream, restarts included; part of every manifest."""

    rows: int = 0
    late: int = 0
    ahead: int = 0
    bad: int = 0
    emits: int = 0

    def plus(self, counts: Counts, emits: int) -> Totals:
        """After one more batch."""
        return Totals(
            self.rows + counts.rows,
            self.late + counts.late,
            self.ahead + counts.ahead,
            self.bad + counts.bad,
            self.emits + emits,
        )


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """How far a stream has come.

    batch       the last one done; None before the first
    totals      of all batches, those before a restart too
    rows        of the last batch that passed WHERE; bad, late and ahead ones too
    seconds     the last batch took
    watermark   instants before it have had their emits, rows before it are late
    state_rows  what is remembered for windows to come
    waiting     1 if a row far ahead of the others waits for more to come there; else 0
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
        """As a batch left it."""
        facts = manifest.facts
        watermark, totals = instant(facts["watermark"]), Totals(**facts["totals"])
        rows, seconds = facts["rows"], facts["seconds"]
        return cls(
            manifest.batch, totals, rows, seconds, watermark, manifest.rows, facts["waiting"]
        )

    @property
    def rows_per_second(self) -> float:
        """Of the last batch."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Status:
    """How a stream stands after its last whole batch.

    table, window, output  what it runs over, and where its emits go
    items                  its columns, and what each asks for
    totals                 rows, late, ahead, bad and emits of all batches
    watermark              rows before it are late
    batch                  the last one; None, as all about it, before the first
    ended                  when it was done
    rows, seconds          it had, and took
    waiting                1 if a row far ahead of the others waits for more to come there
    state_rows, state_bytes, state_files  what is remembered for windows to come
    written_by, format     which IDS wrote the checkpoint, and in which format
    asked                  when this was asked
    """

    checkpoint: str
    table: str
    window: str
    output: str
    asked: datetime
    items: dict[str, str]
    totals: Totals
    watermark: datetime | None
    batch: int | None
    ended: datetime | None
    rows: int
    seconds: float
    waiting: int
    state_rows: int
    state_bytes: int
    state_files: int
    written_by: str | None
    format: int = FORMAT

    @property
    def lag(self) -> timedelta | None:
        """How far the watermark is behind the clock."""
        return None if self.watermark is None else self.asked - self.watermark

    @property
    def idle(self) -> timedelta | None:
        """How long ago the last batch was done."""
        return None if self.ended is None else self.asked - self.ended

    @property
    def rows_per_second(self) -> float:
        """Of the last batch."""
        return self.rows / self.seconds if self.seconds else 0.0

    def facts(self) -> dict[str, Any]:
        """As JSON has them: times in ISO 8601, spans in seconds."""
        found = asdict(self) | {"rows_per_second": self.rows_per_second}
        for name in ("asked", "watermark", "ended"):
            time = getattr(self, name)
            found[name] = None if time is None else time.isoformat()
        for name, span in (("lag", self.lag), ("idle", self.idle)):
            found[f"{name}_seconds"] = None if span is None else span.total_seconds()
        return found


def status(checkpoint: str | Path, *, spark: SparkSession | None = None) -> Status:
    """How the stream of a checkpoint stands, running or not.

    Reads its newest manifest, a small file. A ``checkpoint`` on another file system is reached by
    pyarrow, with its own settings of that system; where it cannot, or where ``spark`` is given,
    through a session.
    """
    files = _files(checkpoint, spark)
    try:
        stream, manifest = stream_at(files), Manifests(files).latest()
    except OSError as error:
        if isinstance(error, CheckpointError):
            raise
        told = str(error).split("\n", maxsplit=1)[0]
        raise CheckpointError(f"cannot read checkpoint {checkpoint}: {told}") from error
    if stream is None:
        raise CheckpointError(
            f"{checkpoint} is no checkpoint; name the directory that a stream was started with"
        )
    progress = StreamProgress() if manifest is None else StreamProgress.of(manifest)
    known = manifest or Manifest(0, {}, {})
    items = Script.read(known.facts["script"]).items if manifest else ()
    ended = known.facts.get("at")
    return Status(
        checkpoint=shown(files),
        table=stream["table"],
        window=stream["window"],
        output=stream["output"],
        asked=datetime.now(UTC),
        items={item.name: item.asks for item in items},
        totals=progress.totals,
        watermark=progress.watermark,
        batch=progress.batch,
        ended=instant(ended and round(ended * 1e6)),
        rows=progress.rows,
        seconds=progress.seconds,
        waiting=progress.waiting,
        state_rows=progress.state_rows,
        state_bytes=known.bytes,
        state_files=known.files,
        written_by=known.written_by or None,
    )


def needs_session(checkpoint: str | Path) -> bool:
    """Whether only Spark reaches a checkpoint."""
    return readable_at(checkpoint) is None


def _files(checkpoint: str | Path, spark: SparkSession | None) -> Readable:
    if not is_remote(checkpoint):
        path = local_path(checkpoint)
        if not path.is_dir():
            what = "is a file" if path.exists() else "does not exist"
            raise CheckpointError(f"{checkpoint} {what}; name the checkpoint of a stream")
    files = readable_at(checkpoint) if spark is None else None
    if files is not None:
        return files
    from ids.spark.session import session_of  # hardly ever needed

    return files_at(checkpoint, session_of((), spark))
