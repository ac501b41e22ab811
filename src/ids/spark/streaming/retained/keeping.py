"""The rows a micro-batch brings are kept, those of panes that have left the window are not.

    sound rows, not late ─▶ panes still to be seen ─▶ a piece of the store

Small pieces are put together now and then, so that a long window of short batches does not lie in
thousands of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import functions as F

from ids.model.window import TimeWindow
from ids.plan import SelectPlan
from ids.spark.frames import Frame
from ids.spark.panes import PANE, pane_of
from ids.spark.rows import FAULT, TIME, Ready
from ids.spark.streaming.retained.rows import KeptRows
from ids.spark.streaming.step import Batch
from ids.spark.streaming.store import Piece, alike

__all__ = ["Keeper", "Turn"]


@dataclass(frozen=True, slots=True)
class Turn:
    """A micro-batch, for the rows that are kept.

    rows    what it brought
    fresh   how many of these are sound and not late
    seen    the last event time before it, µs
    passed  the watermark before it, µs: older rows are late
    spoken  instants up to this one (in slides) have had their emits after it
    """

    batch: Batch
    rows: Ready
    fresh: int
    seen: int | None
    passed: int | None
    spoken: int | None


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
        return replace(kept, spoken=turn.spoken).facts(), pieces

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
        if turn.passed is not None:
            sound += f" AND {TIME} >= {turn.passed}L"
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
