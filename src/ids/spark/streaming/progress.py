"""How far a stream has come; needs no pyspark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ids.spark.streaming.manifest import Manifest

if TYPE_CHECKING:
    from ids.spark.streaming.step import Counts

__all__ = ["Progress", "Totals", "instant"]

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

    @classmethod
    def of(cls, manifest: Manifest) -> Progress:
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
