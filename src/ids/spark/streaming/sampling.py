"""APPROXIMATE over time windows on a stream: estimates at the instants a micro-batch speaks for.

    rows kept so far ──┐
    rows of the batch ─┴─▶ panes of these instants' windows ─▶ samples ─▶ estimates, exact answers

These panes lie before the watermark, so no row of theirs is still to come: equal rows have all been
counted, and the sample is that of a batch over all rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F

from ids.errors import CheckpointError
from ids.model.query import ItemKind
from ids.model.window import TimeWindow
from ids.plan import SelectPlan
from ids.spark.evaluating import nameless
from ids.spark.frames import Frame
from ids.spark.rows import ready
from ids.spark.sampled import estimated_windows
from ids.spark.streaming.retained.folder import Folder
from ids.spark.streaming.retained.keeping import Keeper, Turn
from ids.spark.windows import INSTANT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Sampler"]


class Sampler:
    """Keeps the columns a query reads of the rows inside its window, and estimates from them."""

    def __init__(self, plan: SelectPlan, frame: Frame, folder: Folder) -> None:
        assert isinstance(plan.window, TimeWindow)
        assert plan.window.slide is not None
        self._plan, self._width = nameless(plan), plan.window.duration // plan.window.slide
        self._session: SparkSession = frame.data.sparkSession
        read = {name: frame.columns[name] for name in plan.columns}
        self._keeper = Keeper(plan, Frame(frame.data, read, {}), folder)

    @property
    def reach(self) -> int:
        """How many instants before an emit are needed with it: a change looks back at one."""
        return int(any(item.kind is ItemKind.DELTA for item in self._plan.sampled))

    def keep(self, turn: Turn, before: Path | None, fresh: Path) -> None:
        """Keep what the batch brings (see ``Keeper``)."""
        self._keeper.keep(turn, before, fresh)

    def estimated(
        self, turn: Turn, before: Path | None, answers: pa.Table, since: int, until: int
    ) -> pa.Table:
        """The emits after instant ``since`` up to ``until``, their sampled items estimated.

        ``answers`` are the exact ones and the moments at these, and at ``reach`` instants before.
        """
        if self._keeper.known(turn, before).since is not None:
            raise CheckpointError(
                "the checkpoint lacks rows that samples are drawn from; restore it as a whole, or "
                "start anew in another folder"
            )
        earliest = since + 1 - self.reach
        frame = self._keeper.rows(turn, before, earliest - self._width + 1, until)
        rows = ready(self._plan, frame)
        given = self._session.createDataFrame(answers)
        emits = estimated_windows(self._plan, rows, given).filter(F.col(INSTANT) > since)
        keys = [F.col(name).asc_nulls_first() for name in rows.keys]
        return emits.orderBy(INSTANT, *keys).toArrow()
