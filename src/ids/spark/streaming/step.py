"""What a stream does with a micro-batch: the protocol between the runtime and a kind of window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from ids.spark.rows import Ready

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
    """One micro-batch, and where the state before it and after it lies.

    number     Spark's own batch id
    data       the rows as the source gives them
    lateness   µs
    before     the folder of the snapshot before; None at the beginning
    fresh      the empty folder of the snapshot to come, still under a passing name: whatever files
               a step puts there are made safe by the runtime (no name may begin with ``ids-``)
    max_ahead  how far ahead of the others a row may be, µs; None: as far as it likes
    """

    number: int
    data: DataFrame
    lateness: int
    before: Path | None
    fresh: Path
    max_ahead: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a micro-batch gave.

    emits       in order, each for the only time
    watermark   µs: the last event time seen, less the lateness; None before the first row
    state_rows  how much the step remembers
    """

    emits: pa.Table
    counts: Counts
    watermark: int | None
    state_rows: int


class Step(Protocol):
    """A kind of window on a stream.

    A row is late if its event time lies before the watermark of the batches before; only what lies
    strictly before the watermark is settled, as rows at the watermark itself may still come. A
    step remembers nothing but what it puts into a snapshot, so that a batch which is tried again
    starts where it started the first time.
    """

    @property
    def schema(self) -> pa.Schema:
        """The columns of the emits."""
        ...

    def advance(self, batch: Batch, on_faults: Faults) -> Outcome:
        """Take a micro-batch in; ``on_faults`` refuses or keeps bad rows, keeps those ahead."""
        ...
