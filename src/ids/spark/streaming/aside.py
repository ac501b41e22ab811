"""Rows of a stream that are set aside: bad ones, without which it would end, and those ahead."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from ids.errors import DataError, SourceError
from ids.spark.frames import quoted
from ids.spark.rows import FAULT, Ready
from ids.spark.sources import MALFORMED, ORIGIN
from ids.spark.streaming.ahead import AHEAD
from ids.spark.streaming.snapshots import sync

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Aside", "refuse"]

_REASON = "ids_reason"


class Aside:
    """Keeps bad rows in ``DIR/TABLE-00000041.parquet``, with ``ids_reason``.

    Spark writes them, so that they never pass through the driver; a batch that is tried again
    replaces its file.
    """

    def __init__(self, directory: Path, table: str) -> None:
        self._directory = directory.expanduser().absolute()
        self._table = table.replace(os.sep, "_")

    def keep(self, rows: Ready, number: int) -> None:
        """Keep the bad rows of batch ``number``."""
        name = f"{self._table}-{number:08d}.parquet"
        passing = self._directory / f".{name}.tmp"
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            _bad(rows).coalesce(1).write.mode("overwrite").parquet(str(passing))
            (written,) = passing.glob("part-*.parquet")
            sync(written)
            written.rename(self._directory / name)
            sync(self._directory)
        except (OSError, ValueError) as error:
            told = getattr(error, "strerror", None) or "the workers write elsewhere"
            raise SourceError(f"cannot keep bad rows in {self._directory}: {told}") from error
        finally:
            shutil.rmtree(passing, ignore_errors=True)

    def forget(self, number: int) -> None:
        """Batch ``number`` has no bad rows, whatever an earlier try of it found."""
        (self._directory / f"{self._table}-{number:08d}.parquet").unlink(missing_ok=True)


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
    own = [quoted(name) for name in rows.columns if not name.startswith("ids_")]
    if MALFORMED in rows.data.columns:
        own.append(MALFORMED)
    bad = rows.data.filter(F.col(FAULT).isNotNull())
    return bad.selectExpr(*own, f"{FAULT} AS {_REASON}")
