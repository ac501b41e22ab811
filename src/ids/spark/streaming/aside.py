"""Rows of a stream that are set aside: bad ones, without which it would end, and those ahead."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ids.engine.aside import notes
from ids.errors import DataError
from ids.model.table import unused
from ids.sink.target import Format
from ids.spark.aside import made, shown
from ids.spark.files import files_at
from ids.spark.parts import write_parts
from ids.spark.rows import FAULT, Ready
from ids.spark.sinks import arrow_schema
from ids.spark.sources import MALFORMED, ORIGIN
from ids.spark.streaming.ahead import AHEAD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Aside", "refuse"]


class Aside:
    """Keeps bad rows in ``DIR/TABLE-00000041.parquet``, with ``ids_reason``.

    A batch that is tried again replaces its file.
    """

    def __init__(self, directory: str | Path, table: str, session: SparkSession) -> None:
        self._files = files_at(directory, session)
        self._table = table.replace(os.sep, "_")

    def keep(self, rows: Ready, number: int) -> None:
        """Keep the bad rows of batch ``number``."""
        made(self._files)
        bad = _bad(rows).coalesce(1)
        staged = f"_{self._file(number)}"
        names, _ = write_parts(bad, arrow_schema(bad), self._files, staged, Format.PARQUET)
        self._files.move(f"{staged}/{names[0]}", self._file(number))
        self._files.remove(staged)

    def forget(self, number: int) -> None:
        """Batch ``number`` has no bad rows, whatever an earlier try of it found."""
        self._files.remove(self._file(number))

    def _file(self, number: int) -> str:
        return f"{self._table}-{number:08d}.parquet"


def refuse(rows: Ready, faults: int) -> None:
    """Name the first bad row, and the way out."""
    bad = rows.data.filter(f"{FAULT} IS NOT NULL AND NOT {AHEAD}")
    if ORIGIN in bad.columns:
        bad = bad.orderBy(ORIGIN).select(f"{ORIGIN}.file", f"{ORIGIN}.row", FAULT)
    first = bad.limit(1).toArrow().to_pylist()[0]
    place = ""
    if first.get("file"):
        row = first.get("row")
        place = (f" in row {row + 1} of" if row is not None else " in") + f" {first['file']}"
    more = f" (and {faults - 1:,} more bad rows)" if faults > 1 else ""
    raise DataError(
        f"{first[FAULT]}{place}{more}; mend the input, or set bad rows aside with bad_rows='DIR'"
    )


def _bad(rows: Ready) -> DataFrame:
    names, texts = list(rows.columns), [shown(typed) for typed in rows.columns.values()]
    if MALFORMED in rows.data.columns:
        names.append(unused(MALFORMED, names))
        texts.append(MALFORMED)
    _, reason = notes(names)
    bad = rows.data.filter(F.col(FAULT).isNotNull())
    return bad.selectExpr(*texts, FAULT).toDF(*names, reason)
