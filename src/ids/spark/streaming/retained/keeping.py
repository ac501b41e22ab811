"""The rows a micro-batch brings are kept, those of panes that have left the window are not.

    sound rows, not late ─▶ panes still to be seen ─▶ retained/00000041/*.parquet

Small files are put together now and then, so that a long window of short batches does not lie in
thousands of them: sixteen of a size become one of the next size, and a row is moved a few times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ids.model.window import TimeWindow
from ids.plan import SelectPlan
from ids.spark.frames import Frame
from ids.spark.panes import PANE, pane_of
from ids.spark.rows import FAULT, TIME, Ready
from ids.spark.streaming.retained.folder import Folder
from ids.spark.streaming.retained.manifest import Manifest, Piece
from ids.spark.streaming.retained.reading import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Keeper", "Turn"]

_TOGETHER = 16
_SMALL = 2**16  # rows; larger files stay as they are


@dataclass(frozen=True, slots=True)
class Turn:
    """What a micro-batch means for the rows that are kept.

    number  the batch's
    rows    what it brought
    fresh   how many of these are sound and not late
    seen    the last event time before it, µs
    passed  the watermark before it, µs: older rows are late
    spoken  instants up to this one (in slides) have had their emits after it
    """

    number: int
    rows: Ready
    fresh: int
    seen: int | None
    passed: int | None
    spoken: int | None


class Keeper:
    """Keeps the rows of one query's window."""

    def __init__(self, plan: SelectPlan, frame: Frame, folder: Folder) -> None:
        assert isinstance(plan.window, TimeWindow)
        assert plan.window.slide is not None
        slide = plan.window.slide
        self._texts = [typed.text for typed in frame.columns.values()]
        columns = {
            name: replace(typed, text=f"c{number}")
            for number, (name, typed) in enumerate(frame.columns.items())
        }
        width = plan.window.duration // slide
        self._nothing = Manifest(columns, dict(frame.unsupported), slide, width)
        self._session, self._folder = frame.data.sparkSession, folder

    def keep(self, turn: Turn, before: Path | None, fresh: Path) -> None:
        """Write the batch's rows, and into folder ``fresh`` what is kept after it."""
        manifest = replace(self.known(turn, before), spoken=turn.spoken)
        expired = manifest.expired
        pieces = [p for p in manifest.pieces if expired is None or p.last > expired]
        if turn.fresh:
            pieces += self._written(turn, expired)
        pieces = self._together(replace(manifest, pieces=tuple(pieces)), turn.number)
        replace(manifest, pieces=tuple(pieces)).save(fresh, self._folder.name)

    def rows(self, turn: Turn, before: Path | None, first: int, last: int) -> Frame:
        """What was kept of panes ``first`` to ``last``, and what the batch brings of them."""
        manifest = self.known(turn, before)
        pieces = [p for p in manifest.pieces if p.last >= first and p.first <= last]
        rows = opened(self._session, self._folder, manifest, pieces)
        rows = rows.unionByName(self._accepted(turn)).filter(F.col(PANE).between(first, last))
        return Frame(rows, manifest.columns, manifest.unsupported)

    def known(self, turn: Turn, before: Path | None) -> Manifest:
        """What was kept so far; nothing, if rows were not, or with other columns."""
        known = None if before is None else Manifest.load(before, self._folder.name)
        if known is not None and known.columns == self._nothing.columns:
            return replace(known, unsupported=self._nothing.unsupported)
        slide = self._nothing.slide
        since = None if turn.seen is None else -(-turn.seen // slide)
        return replace(self._nothing, since=since)

    def _written(self, turn: Turn, expired: int | None) -> list[Piece]:
        rows = self._accepted(turn)
        if expired is not None:
            rows = rows.filter(F.col(PANE) > expired)
        return self._folder.write(rows, f"{turn.number:08d}")

    def _accepted(self, turn: Turn) -> DataFrame:
        """The batch's rows that are sound and not late, in the shape of the files."""
        sound = f"{FAULT} IS NULL"
        if turn.passed is not None:
            sound += f" AND {TIME} >= {turn.passed}L"
        named = [f"{text} AS c{number}" for number, text in enumerate(self._texts)]
        pane = f"{pane_of(self._nothing.slide)} AS {PANE}"
        return turn.rows.data.filter(sound).selectExpr(pane, *named)

    def _together(self, manifest: Manifest, number: int) -> list[Piece]:
        """The files, the small ones of a size as one file once there are enough of them."""
        pieces = list(manifest.pieces)
        chosen = _alike(pieces)
        if not chosen:
            return pieces
        expired = manifest.expired
        rows = opened(self._session, self._folder, manifest, chosen)
        if expired is not None:
            rows = rows.filter(F.col(PANE) > expired)
        merged = self._folder.write(rows.coalesce(1), f"{number:08d}-merged")
        return merged + [piece for piece in pieces if piece not in chosen]


def _alike(pieces: Sequence[Piece]) -> list[Piece]:
    """Files of one size, in powers of sixteen, of which there are enough; none if there are not."""
    sizes: dict[int, list[Piece]] = {}
    for piece in pieces:
        if piece.rows < _SMALL:
            sizes.setdefault((piece.rows.bit_length() - 1) // 4, []).append(piece)
    enough = [alike for alike in sizes.values() if len(alike) >= _TOGETHER]
    return max(enough, key=len, default=[])
