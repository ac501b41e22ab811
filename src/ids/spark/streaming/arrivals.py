"""Files that come to a stream: Spark would read a column that a Parquet file lacks as NULLs."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from ids.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["check_files"]


def check_files(data: DataFrame, columns: Collection[str]) -> None:
    """Refuse a micro-batch with a Parquet file that is not whole, or lacks one of ``columns``.

    Reads footers, of files the driver can see.
    """
    for uri in data.inputFiles():
        parts = urlsplit(uri)
        path = Path(unquote(parts.path))
        if parts.scheme not in ("", "file") or path.suffix != ".parquet":
            continue
        try:
            names = set(pq.read_schema(path).names)
        except (OSError, pa.ArrowException) as error:
            raise SourceError(f"{path} is not a whole Parquet file; write it again") from error
        for name in columns:
            if name not in names:
                raise SourceError(
                    f"{path} does not fit the files before it: it lacks column {name!r}; "
                    "write it again"
                )
