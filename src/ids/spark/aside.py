"""Bad rows of a batch: refused with a line that names one, or kept aside with their reasons."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ids.errors import DataError, SourceError
from ids.model.table import Kind
from ids.spark.expressions import spell
from ids.spark.frames import Frame, Typed
from ids.spark.rows import FAULT, Ready
from ids.spark.sinks import write
from ids.spark.sources import ORIGIN, with_origin

__all__ = ["Aside", "refused"]

_NOTES = ("ids_row", "ids_reason")


def refused(table: str, frame: Frame, rows: Ready) -> DataError:
    """The error for a table with bad rows; names the first in the order of the input."""
    bad = with_origin(rows.data).filter(F.col(FAULT).isNotNull())
    first = bad.orderBy(ORIGIN).select(FAULT, ORIGIN).first()
    assert first is not None
    reason, origin = first
    place = f"named_struct('file', {spell(origin.file)}, 'start', {origin.start}L, 'row', "
    before = with_origin(frame.data).filter(
        f"{ORIGIN}.file = {spell(origin.file)} AND {ORIGIN} <= {place}{origin.row}L)"
    )
    where = f"row {before.count():,}" + (f" of {Path(origin.file).name}" if origin.file else "")
    return DataError(
        f"{reason} in {table}, {where}; leave such rows out with WHERE, "
        "or set them aside with --bad-rows DIR"
    )


@dataclass(slots=True)
class Aside:
    """Writes a table's bad rows to ``DIR/TABLE.parquet``, two more columns saying which and why.

    Queries of one script share it: the file holds every bad row of the table once for each reason.
    """

    directory: Path
    table: str
    found: list[DataFrame] = field(default_factory=list)

    def keep(self, rows: Ready) -> None:
        """Set the bad rows aside; rewrites the file with those set aside before."""
        bad = with_origin(rows.data).filter(F.col(FAULT).isNotNull())
        own = [name for name in rows.columns if name not in _NOTES]
        where = F.expr(f"concat({ORIGIN}.file, ' ', {ORIGIN}.row)").alias("ids_row")
        own_columns = [F.expr(_shown(rows.columns[name])).alias(name) for name in own]
        self.found.append(bad.select(*own_columns, where, F.col(FAULT).alias("ids_reason")))
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SourceError(f"cannot make {self.directory}: {error.strerror}") from error
        every = self.found[0]
        for more in self.found[1:]:
            every = every.unionByName(more)
        name = self.table.replace(os.sep, "_")
        write(every.distinct().orderBy("ids_row"), self.directory / f"{name}.parquet")


def _shown(typed: Typed) -> str:
    """A column as it is written out: an instant is a timestamp again."""
    if typed.kind is None:
        return f"cast({typed.text} as string)"
    return f"timestamp_micros({typed.text})" if typed.kind is Kind.TIME else typed.text
