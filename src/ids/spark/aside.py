"""Bad rows of a batch: refused with a line that names one, or kept aside with their reasons."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ids.engine.aside import notes
from ids.errors import DataError, SourceError
from ids.model.table import Kind
from ids.spark.files import Files, files_at
from ids.spark.frames import Frame, Typed, numbered
from ids.spark.rows import FAULT, Ready
from ids.spark.sinks import write
from ids.spark.sources import ORIGIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Aside", "made", "refused", "shown"]

_REASON = "ids_reason"
_FILE = "ids_file"
_NUMBER = "ids_number"
_PIECE = (_FILE, "ids_start", "ids_piece")
_QUERY = "ids_query"
# A counter of Spark's has the number of its partition in the bits from 33 on.
_ORIGIN = (
    f"{ORIGIN}.file AS {_PIECE[0]}",
    f"{ORIGIN}.start AS {_PIECE[1]}",
    f"shiftright({ORIGIN}.row, 33) AS {_PIECE[2]}",
    f"{ORIGIN}.row AS ids_place",
)
_NAMED = (
    f"concat('row ', {_NUMBER}, if({_FILE} = '', '', ' of '), substring_index({_FILE}, '/', -1))"
)


def refused(table: str, frame: Frame, rows: Ready) -> DataError:
    """The error for a table with bad rows; names the first in the order of the input.

    Both ``frame`` and ``rows``, made of it, carry the rows' origin.
    """
    bad = _placed(frame, rows).orderBy(_FILE, _NUMBER)
    first = bad.selectExpr(FAULT, _NAMED).first()
    assert first is not None
    reason, where = first
    return DataError(
        f"{reason} in {table}, {where}; leave such rows out with WHERE, "
        "or set them aside with bad_rows='DIR'"
    )


@dataclass(slots=True)
class Aside:
    """Writes a table's bad rows to ``DIR/TABLE.parquet``, two more columns saying which and why.

    Queries of one script share it: the file holds every bad row of the table once, with the
    reasons of all of them.
    """

    directory: str | Path
    table: str
    found: list[DataFrame] = field(default_factory=list)

    def keep(self, frame: Frame, rows: Ready) -> None:
        """Set the bad rows aside; rewrites the file with those set aside before."""
        values = [
            F.expr(shown(typed)).alias(numbered(number))
            for number, typed in enumerate(rows.columns.values())
        ]
        query = F.lit(len(self.found)).alias(_QUERY)
        self.found.append(_placed(frame, rows).select(*values, _FILE, _NUMBER, FAULT, query))
        files = files_at(self.directory, frame.data.sparkSession)
        made(files)
        every = self.found[0]
        for more in self.found[1:]:
            every = every.unionAll(more)
        name = self.table.replace(os.sep, "_")
        write(_once(every, list(rows.columns)), f"{files.uri}/{name}.parquet")


def _placed(frame: Frame, rows: Ready) -> DataFrame:
    """The bad rows, each with its file and its number in it, from 1 on.

    What a task read of a file it counted in one go. So the pieces of the files, few, are counted,
    and a row's number is that of the rows in the pieces before its own, and its place there.
    """
    bad = rows.data.filter(F.col(FAULT).isNotNull()).selectExpr("*", *_ORIGIN)
    pieces = frame.data.selectExpr(*_ORIGIN).groupBy(*_PIECE)
    counted = pieces.agg(F.expr("count(*)").alias("ids_n"), F.expr("min(ids_place)").alias("ids_0"))
    before = (
        f"coalesce(sum(ids_n) OVER (PARTITION BY {_FILE} ORDER BY {_PIECE[1]}, {_PIECE[2]} "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0L) AS ids_before"
    )
    offsets = counted.selectExpr(*_PIECE, "ids_0", before)
    number = F.expr("ids_before + ids_place - ids_0 + 1L").alias(_NUMBER)
    return bad.join(F.broadcast(offsets), list(_PIECE)).select("*", number)


def _once(every: DataFrame, own: list[str]) -> DataFrame:
    """Each row once, in the order of the input, its reasons in the order of the queries."""
    reasons = f"array_sort(collect_list(named_struct('q', {_QUERY}, 'reason', {FAULT})))"
    told = f"array_join(array_distinct({reasons}.reason), '; ')"
    values = [numbered(number) for number in range(len(own))]
    first = [F.first(name).alias(name) for name in values]
    rows = every.groupBy(_FILE, _NUMBER).agg(*first, F.expr(told).alias(_REASON))
    ordered = rows.orderBy(_FILE, _NUMBER).select(*values, F.expr(_NAMED), _REASON)
    return ordered.toDF(*own, *notes(own))


def made(directory: Files) -> None:
    """Make the directory that bad rows go to."""
    try:
        directory.make()
    except OSError as error:
        place, fault = directory.uri.removeprefix("file:"), error.strerror or str(error)
        raise SourceError(f"cannot make {place}: {fault}") from error


def shown(typed: Typed) -> str:
    """A column as it is written out: an instant is a timestamp again."""
    if typed.kind is None:
        return f"cast({typed.text} as string)"
    return f"timestamp_micros({typed.text})" if typed.kind is Kind.TIME else typed.text
