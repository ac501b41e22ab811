"""Bad rows: why no window takes them, and the folder where they are kept with the reason.

On Spark (``spark_bad_rows``) the reasons, the error and the files are the same.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.errors import DataError, SourceError
from ids.model import unused
from ids.query.evaluate import to_table
from ids.sink import write
from ids.source import Source

# of a column, and of an expression
NULL_TIME = "NULL event time {!r}"
FAR_TIME = "event time {!r} outside the years 1 to 9999"
NAN = "NaN of {!r}"
INFINITE = "an infinite value of {!r}"

_ROW, _REASON = "ids_row", "ids_reason"


def bad_row_error(reason: str, table: str, where: str) -> DataError:
    """The error for a table with a bad row, where bad rows are not set aside."""
    return DataError(
        f"{reason} in {table}, {where}; leave such rows out with WHERE, "
        "or set them aside with bad_rows='DIR'"
    )


def file_stem(table: str) -> str:
    """The name of a table's file in the folder of bad rows, without its ending."""
    return table.replace(os.sep, "_")


def notes(columns: Collection[str]) -> tuple[str, str]:
    """The columns that say which row was bad, and why, beside a table's own."""
    return unused(_ROW, columns), unused(_REASON, columns)


class BadRowsFolder:
    """Writes a table's bad rows to ``DIR/TABLE.parquet``, two more columns saying which and why.

    One query's view of the file: ``reasons`` (by row) is what all queries of a script have found
    in the table so far, so that the file holds every bad row, and each of them once.
    """

    def __init__(self, directory: Path, table: str, reasons: dict[int, str]) -> None:
        self._directory = directory
        self._file = directory / f"{file_stem(table)}.parquet"
        self._reasons = reasons
        self.rows = 0

    def __call__(self, source: Source, rows: npt.NDArray[np.int64], reasons: list[str]) -> None:
        """Set ``rows`` aside; rewrites the file with those set aside before."""
        for row, reason in zip(rows.tolist(), reasons, strict=True):
            known = self._reasons.get(row)
            if known is None:
                self._reasons[row] = reason
            elif reason not in known.split("; "):
                self._reasons[row] = f"{known}; {reason}"
        self.rows += len(rows)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SourceError(f"cannot make {self._directory}: {error.strerror}") from error
        write(self._kept(source), self._file)

    def _kept(self, source: Source) -> pa.Table:
        rows = sorted(self._reasons)
        kept = to_table(source.read(source.schema).take(np.array(rows, np.int64)))
        texts = [source.where(row) for row in rows], [self._reasons[row] for row in rows]
        for name, text in zip(notes(source.schema), texts, strict=True):
            kept = kept.append_column(name, pa.array(text, "string"))
        return kept
