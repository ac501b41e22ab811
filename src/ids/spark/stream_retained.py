"""Rows of the window that a stream keeps, for APPROXIMATE and for questions (``ids.spark.ask``).

    sound rows, not late ─▶ panes still to be seen ─▶ a piece of the store

Small pieces are put together now and then, so that a long window of short batches does not lie in
thousands of them. Estimates at the instants that a micro-batch emits at:

    rows kept so far ──┐
    rows of the batch ─┴─▶ panes of these instants' windows ─▶ samples ─▶ estimates, exact answers

These panes lie before the watermark, so no row of theirs is still to come: equal rows have all been
counted, and the sample is that of a batch over all rows. A question is a batch over the rows that
are kept, with one instant:

    kept rows ─▶ those of the window at the last emitted instant ─▶ one pane ─▶ an answer a key
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

from ids.errors import DataError
from ids.model import Attribution, ItemKind, Kind, TimeWindow
from ids.plan import SelectPlan
from ids.spark.expression_sql import Typed
from ids.spark.failures import translated
from ids.spark.frame import Frame
from ids.spark.session import session_of
from ids.spark.spark_approximate import estimated_windows
from ids.spark.spark_evaluate import nameless
from ids.spark.spark_prepare import FAULT, INSTANT, PANE, TIME, Ready, pane_of, ready
from ids.spark.stream_batch import Batch
from ids.spark.stream_question import (
    Current,
    InstantPlan,
    KeptRows,
    StreamQuestion,
    answer_names,
    steadily,
)
from ids.spark.stream_store import Piece, Store, alike
from ids.spark.time_windows import time_windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Turn:
    """A micro-batch, for the rows that are kept.

    rows           what it brought
    fresh          how many of these are sound and not late
    seen           the last event time before it, µs
    watermark      before it, µs: older rows are late
    emitted_until  instants up to this one (in slides) have had their emits after it
    """

    batch: Batch
    rows: Ready
    fresh: int
    seen: int | None
    watermark: int | None
    emitted_until: int | None


class Keeper:
    """Keeps the rows of one query's window, under the ``name`` of what they are kept for."""

    def __init__(self, plan: SelectPlan, frame: Frame, script: str, name: str = "retained") -> None:
        assert isinstance(plan.window, TimeWindow)
        assert plan.window.slide is not None
        slide = plan.window.slide
        self.name = name
        self._texts = [typed.text for typed in frame.columns.values()]
        columns = {
            name: replace(typed, text=f"c{number}")
            for number, (name, typed) in enumerate(frame.columns.items())
        }
        width = plan.window.duration // slide
        self._nothing = KeptRows(columns, dict(frame.unsupported), slide, width, script)

    def keep(self, turn: Turn) -> tuple[dict[str, Any], list[Piece]]:
        """Write the batch's rows; what is kept after it."""
        batch, kept = turn.batch, self._known(turn)
        # what had left the window before the batch: samples of its emits reach back to the rest
        pieces = [
            piece
            for piece in kept.pieces_of(batch.before, self.name)
            if kept.expired is None or piece.last > kept.expired
        ]
        if turn.fresh:
            pieces.append(self._written(turn))
        pieces = self._together(kept, pieces, batch)
        return replace(kept, emitted_until=turn.emitted_until).facts(), pieces

    def _known(self, turn: Turn) -> KeptRows:
        """What was kept so far; nothing, if rows were not, or with other columns."""
        facts = turn.batch.facts or {}
        known = KeptRows.of(facts[self.name]) if self.name in facts else None
        if known is not None and known.columns == self._nothing.columns:
            kept = self._nothing
            return replace(known, unsupported=kept.unsupported, script=kept.script)
        slide = self._nothing.slide
        since = None if turn.seen is None else -(-turn.seen // slide)
        number = None if turn.seen is None else turn.batch.number
        return replace(self._nothing, since=since, begun=number)

    def _written(self, turn: Turn) -> Piece:
        """The batch's rows that are sound and not late, in the shape of the files."""
        sound = f"{FAULT} IS NULL"
        if turn.watermark is not None:
            sound += f" AND {TIME} >= {turn.watermark}L"
        named = [f"{text} AS c{number}" for number, text in enumerate(self._texts)]
        pane = f"{pane_of(self._nothing.slide)} AS {PANE}"
        rows = turn.rows.data.filter(sound).selectExpr(pane, *named)
        piece = turn.batch.store.write(rows, turn.batch.number, self.name, panes=PANE)
        if piece.rows != turn.fresh:
            raise turn.batch.store.lacking(piece.name, piece.rows, turn.fresh)
        return piece

    def _together(self, kept: KeptRows, pieces: Sequence[Piece], batch: Batch) -> list[Piece]:
        """The pieces, the small ones of a size as one once there are enough of them."""
        chosen = alike(pieces)
        if not chosen:
            return list(pieces)
        rows = kept.read(batch.store, chosen)
        if kept.expired is not None:
            rows = rows.filter(F.col(PANE) > kept.expired)
        name = f"{self.name}-merged"
        merged = batch.store.write(rows.coalesce(1), batch.number, name, panes=PANE)
        others = [piece for piece in pieces if piece not in chosen]
        return [merged, *others] if merged.rows else others


class Sampler(Keeper):
    """Keeps the columns a query reads of the rows inside its window, and estimates from them."""

    def __init__(self, plan: SelectPlan, frame: Frame, script: str) -> None:
        assert isinstance(plan.window, TimeWindow)
        assert plan.window.slide is not None
        self._plan, self._width = nameless(plan), plan.window.duration // plan.window.slide
        read = {name: frame.columns[name] for name in sorted(plan.columns)}
        super().__init__(plan, Frame(frame.data, read, {}), script, "sampled")

    @property
    def back(self) -> int:
        """How many instants before an emit are needed with it: a change looks back at one."""
        return int(any(item.kind is ItemKind.DELTA for item in self._plan.sampled))

    def begin(self, facts: Mapping[str, Any]) -> int | None:
        """The first instant (in slides) whose windows have all their rows kept; None: all have."""
        since = KeptRows.of(dict(facts)).since
        return None if since is None else since + self._width

    def estimated(
        self,
        store: Store,
        facts: Mapping[str, Any],
        pieces: Sequence[Piece],
        answers: DataFrame,
        since: int,
        until: int,
    ) -> DataFrame:
        """The emits after instant ``since`` up to ``until``, their sampled items estimated.

        ``facts`` and ``pieces`` are what ``keep`` gave; ``answers`` are the exact ones and the
        moments at these instants, and at ``back`` instants before.
        """
        kept = KeptRows.of(dict(facts))
        first = since + 1 - self.back - self._width + 1
        some = [piece for piece in pieces if piece.last >= first and piece.first <= until]
        data = kept.read(store, some).filter(F.col(PANE).between(first, until))
        rows = ready(self._plan, Frame(data, kept.columns, kept.unsupported))
        emits = estimated_windows(self._plan, rows, answers).filter(F.col(INSTANT) > since)
        keys = [F.col(name).asc_nulls_first() for name in rows.keys]
        return emits.orderBy(INSTANT, *keys)


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
            reason=_SAMPLED,
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
    assert kept.emitted_until is not None and kept.expired is not None
    inside = frame.data.filter(F.col(PANE).between(kept.expired + 1, kept.emitted_until))
    now = {plan.order_by[0]: Typed(f"{kept.emitted_until * kept.slide}L", Kind.TIME)}
    frame = Frame(inside, frame.columns | now, frame.unsupported)
    with translated():
        table = time_windows(plan, frame, _refuse).toArrow()
    named = [*plan.partition_by, *answer_names(plan)]
    table = table.select(range(len(named))).rename_columns(named)
    if table.num_rows or plan.partition_by:
        return table
    # an empty window is no emit, but an answer: nothing
    nothing = [kept.emitted_until * kept.slide, *[0] * (len(named) - 1)]
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
    assert kept.emitted_until is not None
    return _EPOCH + timedelta(microseconds=kept.emitted_until * kept.slide)
