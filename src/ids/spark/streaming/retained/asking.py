"""A question to a stream's window: a batch over the rows that are kept, with one instant.

kept rows ─▶ those of the window at the last emitted instant ─▶ one pane ─▶ an answer a key
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ids.errors import DataError
from ids.model.attribution import Attribution
from ids.model.table import Kind
from ids.spark.batch import time_windows
from ids.spark.failures import translated
from ids.spark.frames import Frame, Typed
from ids.spark.panes import PANE
from ids.spark.rows import FAULT, Ready
from ids.spark.session import session_of
from ids.spark.streaming.retained.current import Current, steadily
from ids.spark.streaming.retained.question import InstantPlan, StreamQuestion, answer_names
from ids.spark.streaming.retained.rows import KeptRows

__all__ = ["Reply", "ask", "replied", "window_end"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT, _SAMPLED = "the panes that are kept hold every row", "a sample was asked for"


class Reply(NamedTuple):
    """What a question was answered.

    table       the keys, ``emit_at``, ``n``, ``value``, ``share``, ``lift`` (and, of a sample,
                ``error`` and ``standard_error``): a row a key, one row without keys
    keys        the PARTITION BY columns
    window_end  the instant whose window was asked
    """

    question: StreamQuestion
    table: pa.Table
    keys: tuple[str, ...]
    window_end: datetime

    @property
    def mechanism(self) -> str:
        """How it was answered."""
        return "scan" if self.question.sample is None else "sample"

    def attribution(self) -> Attribution:
        """The one answer of a query without keys."""
        (row,) = self.table.to_pylist()
        value, share, lift, n = (row[name] for name in ("value", "share", "lift", "n"))
        error = row.get("error", 0.0)
        found = Attribution(value, share, lift, self.mechanism, error, n, _EXACT, n, n)
        if self.question.sample is None:
            return found
        return found._replace(
            why=_SAMPLED,
            confidence=self.question.confidence,
            standard_error=row["standard_error"],
            sample_size=self.question.sample,
            seed=self.question.seed,
        )


def ask(
    checkpoint: str | Path,
    aggregate: str,
    predicate: str,
    *,
    sample: int | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    spark: SparkSession | None = None,
) -> Attribution | pa.Table:
    """What a predicate accounts for in the window of a stream's last emits, exactly.

    ``checkpoint`` is that of a stream started with ``retain=True``, by this process or another,
    running or not. The predicate may name any column and any registered predicate. A query with
    PARTITION BY gives a table with a row a key, any other an ``Attribution``. The answer has the
    bits that ``ids.sql`` over the rows of that window gives. With a ``sample`` of so many rows it
    is an estimate, its error bound at ``confidence``.
    """
    question = StreamQuestion(aggregate, predicate, sample, confidence, seed)
    reply = replied(checkpoint, question, spark)
    return reply.table if reply.keys else reply.attribution()


def replied(
    checkpoint: str | Path, question: StreamQuestion, spark: SparkSession | None = None
) -> Reply:
    """The answers, and the instant they are for."""
    session = session_of((), spark)

    def read(current: Current) -> Reply:
        kept = current.kept
        plan = question.planned(kept)
        rows = kept.read(current.store, current.pieces)
        table = _answered(Frame(rows, kept.columns, kept.unsupported), kept, plan)
        return Reply(question, table, plan.partition_by, _end(kept))

    return steadily(checkpoint, read, session)


def window_end(checkpoint: str | Path, spark: SparkSession | None = None) -> datetime:
    """The instant whose window a question would be about."""
    return steadily(checkpoint, lambda current: _end(current.kept), spark)


def _answered(frame: Frame, kept: KeptRows, plan: InstantPlan) -> pa.Table:
    assert kept.spoken is not None and kept.expired is not None
    inside = frame.data.filter(F.col(PANE).between(kept.expired + 1, kept.spoken))
    now = {plan.order_by[0]: Typed(f"{kept.spoken * kept.slide}L", Kind.TIME)}
    frame = Frame(inside, frame.columns | now, frame.unsupported)
    with translated():
        table = time_windows(plan, frame, _refuse).toArrow()
    named = [*plan.partition_by, *answer_names(plan)]
    table = table.select(range(len(named))).rename_columns(named)
    if table.num_rows or plan.partition_by:
        return table
    # an empty window is no emit, but an answer: nothing
    nothing = [kept.spoken * kept.slide, *[0] * (len(named) - 1)]
    columns = [pa.array([v], f.type) for v, f in zip(nothing, table.schema, strict=True)]
    return pa.table(columns, schema=table.schema)


def _refuse(rows: Ready, faults: int) -> None:
    first = rows.data.filter(F.col(FAULT).isNotNull()).select(FAULT).first()
    assert first is not None
    more = f" (and {faults - 1:,} more bad rows)" if faults > 1 else ""
    raise DataError(
        f"{first[0]} inside the window{more}; ask for a measure without it, or leave such rows "
        "out with WHERE in the stream's script"
    )


def _end(kept: KeptRows) -> datetime:
    assert kept.spoken is not None
    return _EPOCH + timedelta(microseconds=kept.spoken * kept.slide)
