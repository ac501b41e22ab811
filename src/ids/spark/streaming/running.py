"""A stream that runs: to wait for, to stop, to ask how far it has come."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from ids.errors import StateError
from ids.model.attribution import Attribution
from ids.spark.failures import translate
from ids.spark.streaming.batches import Batches, Progress
from ids.spark.streaming.retained.asking import ask, window_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Kept", "Running"]

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


class Running:
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
        so_far = self.progress().totals
        counts = ", ".join(f"{n:,} {what}" for what, n in asdict(so_far).items())
        return f"<ids.spark stream, {self._phase()}: {counts}>"

    @property
    def active(self) -> bool:
        """Whether it still takes rows in."""
        return bool(self.query.isActive)

    def progress(self) -> Progress:
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

    def wait(self, timeout: float | None = None) -> bool:
        """Until it ends by itself (``available_now``), fails, or ``timeout`` seconds are over.

        Whether it has ended. What made it fail is raised; Ctrl-C stops it.
        """
        until = None if timeout is None else monotonic() + timeout
        try:
            while self.active:
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
            if self.active:
                return "running"
            if self._failure() is not None:
                return "failed"
        except (Py4JError, OSError):  # the session is gone, and its Java with it
            return "cut off from Spark"
        return "stopped" if self._stopped else "ended"
