"""Bad rows set aside: kept with the reason, counted, and out of the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ids.engine.arrow import to_table
from ids.sink import write
from ids.source import Source

__all__ = ["Aside"]


class Aside:
    """Writes a table's bad rows to ``DIR/TABLE.parquet``, one more column saying why."""

    def __init__(self, directory: Path, table: str) -> None:
        self._directory = directory
        self._table = table
        self.rows = 0

    def __call__(self, source: Source, rows: npt.NDArray[np.int64], reasons: list[str]) -> None:
        whole = to_table(source.read(source.schema).take(rows))
        names = [source.where(int(row)) for row in rows]
        kept = whole.append_column("ids_row", pa.array(names, "string"))
        kept = kept.append_column("ids_reason", pa.array(reasons, "string"))
        self._directory.mkdir(parents=True, exist_ok=True)
        write(kept, self._directory / f"{self._table}.parquet")
        self.rows += len(rows)
