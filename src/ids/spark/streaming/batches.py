"""What happens to each micro-batch, in the one order that survives a crash at any moment.

    manifest i-1 ─▶ step ─▶ bad rows, emits (under names that depend on i alone) ─▶ manifest i

Spark has noted what batch i holds before it begins, and notes its end after manifest i is there.
So a batch that is begun again either finds its manifest, and has nothing left to do, or starts
from the same manifest with the same rows and writes the same rows once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from threading import Event, Lock
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ids.errors import CheckpointError, IdsError, SourceError, StateError
from ids.spark.failures import translated
from ids.spark.rows import Ready
from ids.spark.streaming.aside import Aside, refuse
from ids.spark.streaming.emits import Emits
from ids.spark.streaming.observed import Observed, Reporter
from ids.spark.streaming.outputs import Output
from ids.spark.streaming.progress import Progress, Totals
from ids.spark.streaming.revision import Script
from ids.spark.streaming.step import Batch, Counts, Step
from ids.spark.streaming.store import Manifest, Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Batches", "Progress", "Totals"]


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
        aside: Aside | None,
        on_progress: Callable[[Progress], None] | None,
        script: Script | None = None,
    ) -> None:
        self._step, self._check = step, check
        self._store, self._output = store, output
        self._lateness, self._max_ahead = lateness, max_ahead
        self._aside, self._on_progress = aside, on_progress
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

    def _resumed(self) -> Progress:
        """Where the last manifest stands; what was written after it is taken back."""
        latest = self._store.begin()
        if latest is None:
            self._output.rewind(None, {})
            return Progress()
        self._output.rewind(latest.batch, latest.facts["output"])
        return Progress.of(latest)

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
        if self._aside is not None and not (outcome.counts.bad or outcome.counts.ahead):
            self._aside.forget(number)
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
        self.progress = Progress.of(manifest)
        self._reporter.report(_observed(manifest, outcome.counts, emits))

    def _faulty(self, rows: Ready, faults: int, number: int) -> None:
        if self._aside is not None:
            self._aside.keep(rows, number)
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
            raise SourceError(f"{told}; run again once that is mended, nothing is lost") from error


def _observed(manifest: Manifest, counts: Counts, emits: int) -> Observed:
    return Observed(
        counts.rows,
        counts.late,
        counts.bad,
        counts.ahead,
        emits,
        manifest.rows,
        manifest.bytes,
        manifest.files,
        manifest.facts["watermark"],
    )
