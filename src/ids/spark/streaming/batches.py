"""What happens to each micro-batch, in the one order that survives a crash at any moment.

    snapshot i-1 ─▶ step ─▶ bad rows, emits (under names that depend on i alone) ─▶ snapshot i

Spark has noted what batch i holds before it begins, and notes its end after snapshot i is there.
So a batch that is begun again either finds its snapshot, and has nothing left to do, or starts
from the same snapshot with the same rows and writes the same files once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import Event, Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ids.errors import CheckpointError, IdsError, SourceError, StateError
from ids.spark.failures import translated
from ids.spark.rows import Ready
from ids.spark.streaming.aside import Aside, refuse
from ids.spark.streaming.outputs import Output
from ids.spark.streaming.snapshots import Snapshots
from ids.spark.streaming.step import Batch, Outcome, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Batches", "Progress", "Totals"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Totals:
    """Over the life of a stream, restarts included; part of every snapshot."""

    rows: int = 0
    late: int = 0
    ahead: int = 0
    bad: int = 0
    emits: int = 0

    def plus(self, outcome: Outcome) -> Totals:
        """After one more batch."""
        counts = outcome.counts
        return Totals(
            self.rows + counts.rows,
            self.late + counts.late,
            self.ahead + counts.ahead,
            self.bad + counts.bad,
            self.emits + outcome.emits.num_rows,
        )


@dataclass(frozen=True, slots=True)
class Progress:
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

    @property
    def rows_per_second(self) -> float:
        """Of the last batch."""
        return self.rows / self.seconds if self.seconds else 0.0


class Batches:
    """The function Spark calls with each micro-batch."""

    def __init__(
        self,
        step: Step,
        check: Callable[[], None],
        snapshots: Snapshots,
        output: Output,
        lateness: int,
        max_ahead: int | None,
        aside: Aside | None,
        on_progress: Callable[[Progress], None] | None,
        sweeps: Sequence[Callable[[], None]],
    ) -> None:
        self._step, self._check = step, check
        self._snapshots, self._output = snapshots, output
        self._lateness, self._max_ahead = lateness, max_ahead
        self._aside, self._on_progress = aside, on_progress
        self._sweeps = sweeps
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
                with translated():
                    self._take(data, number)
            except BaseException as error:
                self.failure = error
                # Java waits for an answer, and would for ever if anything else were raised
                raise StateError("the micro-batch failed") from error
        if self._on_progress is not None:
            self._on_progress(self.progress)

    def end(self) -> None:
        """Take no more batches; returns when the one at work has come to its end."""
        self._ended.set()
        with self._busy:
            pass

    def _resumed(self) -> Progress:
        """Where the last snapshot stands; what was written after it is taken back."""
        latest = self._snapshots.latest()
        if latest is None:
            self._output.rewind(None, {})
            return Progress()
        facts = self._snapshots.load(latest).facts
        self._output.rewind(latest, facts["output"])
        totals, watermark = Totals(**facts["totals"]), _instant(facts["watermark"])
        waiting = facts.get("waiting", 0)  # snapshots of older versions have none
        return Progress(latest, totals, 0, 0.0, watermark, facts["state_rows"], waiting)

    def _take(self, data: DataFrame, number: int) -> None:
        started = perf_counter()
        latest = self._snapshots.latest()
        if number == latest:
            return  # the process died after this batch's snapshot, before Spark noted its end
        if number != (0 if latest is None else latest + 1):
            raise CheckpointError(
                f"the checkpoint is torn: Spark goes on with batch {number}, the last snapshot is "
                f"{latest}; restore it as a whole, or start anew in another folder"
            )
        self._check()
        before = None if latest is None else self._snapshots.load(latest)
        facts: dict[str, Any] = {} if before is None else before.facts["output"]
        batch = Batch(
            number,
            data,
            self._lateness,
            None if before is None else before.folder,
            self._snapshots.fresh(number),
            self._max_ahead,
        )
        outcome = self._step.advance(batch, lambda rows, faults: self._faulty(rows, faults, number))
        if self._aside is not None and not (outcome.counts.bad or outcome.counts.ahead):
            self._aside.forget(number)
        so_far = Totals() if before is None else Totals(**before.facts["totals"])
        totals = so_far.plus(outcome)
        written = self._written(outcome.emits, number, facts)
        self._snapshots.commit(
            number,
            {
                "output": written,
                "totals": asdict(totals),
                "watermark": outcome.watermark,
                "state_rows": outcome.state_rows,
                "waiting": outcome.counts.waiting,
            },
        )
        for sweep in self._sweeps:
            sweep()
        self.progress = replace(
            self.progress,
            batch=number,
            totals=totals,
            rows=outcome.counts.rows,
            seconds=perf_counter() - started,
            watermark=_instant(outcome.watermark),
            state_rows=outcome.state_rows,
            waiting=outcome.counts.waiting,
        )

    def _faulty(self, rows: Ready, faults: int, number: int) -> None:
        if self._aside is not None:
            self._aside.keep(rows, number)
        elif faults:
            refuse(rows, faults)

    def _written(self, emits: pa.Table, number: int, facts: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._output.write(emits, number, facts)
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, IdsError):
                raise
            fault = str(error).strip().split("\n", maxsplit=1)[0]
            told = f"cannot write {self._output.name}: {fault}"
            raise SourceError(f"{told}; run again once that is mended, nothing is lost") from error


def _instant(watermark: int | None) -> datetime | None:
    return None if watermark is None else _EPOCH + timedelta(microseconds=watermark)
