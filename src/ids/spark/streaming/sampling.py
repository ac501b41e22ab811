"""APPROXIMATE over time windows on a stream: estimates at the instants a micro-batch speaks for.

    rows kept so far ──┐
    rows of the batch ─┴─▶ panes of these instants' windows ─▶ samples ─▶ estimates, exact answers

These panes lie before the watermark, so no row of theirs is still to come: equal rows have all been
counted, and the sample is that of a batch over all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from ids.model.query import ItemKind
from ids.model.window import TimeWindow
from ids.plan import SelectPlan
from ids.spark.evaluating import nameless
from ids.spark.frames import Frame
from ids.spark.panes import PANE
from ids.spark.rows import ready
from ids.spark.sampled import estimated_windows
from ids.spark.streaming.retained.keeping import Keeper
from ids.spark.streaming.retained.rows import KeptRows
from ids.spark.streaming.store import Piece, Store
from ids.spark.windows import INSTANT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Sampler"]


class Sampler(Keeper):
    """Keeps the columns a query reads of the rows inside its window, and estimates from them."""

    def __init__(self, plan: SelectPlan, frame: Frame, script: str) -> None:
        assert isinstance(plan.window, TimeWindow)
        assert plan.window.slide is not None
        self._plan, self._width = nameless(plan), plan.window.duration // plan.window.slide
        read = {name: frame.columns[name] for name in sorted(plan.columns)}
        super().__init__(plan, Frame(frame.data, read, {}), script, "sampled")

    @property
    def reach(self) -> int:
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
        moments at these instants, and at ``reach`` instants before.
        """
        kept = KeptRows.of(dict(facts))
        first = since + 1 - self.reach - self._width + 1
        some = [piece for piece in pieces if piece.last >= first and piece.first <= until]
        data = kept.read(store, some).filter(F.col(PANE).between(first, until))
        rows = ready(self._plan, Frame(data, kept.columns, kept.unsupported))
        emits = estimated_windows(self._plan, rows, answers).filter(F.col(INSTANT) > since)
        keys = [F.col(name).asc_nulls_first() for name in rows.keys]
        return emits.orderBy(INSTANT, *keys)
