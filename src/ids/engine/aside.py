"""Bad rows set aside: kept with the reason, counted, and out of the way."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.engine.arrow import to_table
from ids.errors import SourceError
from ids.sink import write
from ids.source import Source

__all__ = ["Aside"]

_NOTES = ("ids_row", "ids_reason")


class Aside:
    """Writes a table's bad rows to ``DIR/TABLE.parquet``, two more columns saying which and why.

    One query's view of the file: ``reasons`` (by row) is what all queries of a script have found
    in the table so far, so that the file holds every bad row, and each of them once.
    """

    def __init__(self, directory: Path, table: str, reasons: dict[int, str]) -> None:
        self._directory = directory
        self._file = directory / f"{table.replace(os.sep, '_')}.parquet"
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
        # a file of rows set aside earlier may come back as a table, with its notes
        columns = [name for name in source.schema if name not in _NOTES]
        kept = to_table(source.read(columns).take(np.array(rows, np.int64)))
        notes = [source.where(row) for row in rows], [self._reasons[row] for row in rows]
        for name, texts in zip(_NOTES, notes, strict=True):
            kept = kept.append_column(name, pa.array(texts, "string"))
        return kept
