"""What a stream does with a micro-batch: the protocol between the runtime and a kind of window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from ids.spark.rows import Ready
from ids.spark.streaming.emits import Emits
from ids.spark.streaming.revision import Revision, Script
from ids.spark.streaming.store import Manifest, Piece, Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Batch", "Counts", "Faults", "Outcome", "Step"]

Faults = Callable[[Ready, int], None]


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
