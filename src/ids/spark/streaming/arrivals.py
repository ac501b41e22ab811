"""Files that come to a stream: Spark would read a column that a Parquet file lacks as NULLs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from ids.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["check_files", "source_columns"]


def source_columns(data: DataFrame) -> frozenset[str]:
    """What the sources of a DataFrame hold; its other columns are made of these, and in no file."""
    leaves = data._jdf.queryExecution().analyzed().collectLeaves()
    outputs = [leaves.apply(number).output() for number in range(leaves.size())]
    return frozenset(
        output.apply(number).name() for output in outputs for number in range(output.size())
    )


def check_files(checkpoint: Path, columns: Collection[str]) -> None:
    """Refuse a micro-batch with a Parquet file that is not whole, or lacks one of ``columns``.

    Reads the footers of the files that Spark's ``checkpoint`` names for the batch at work, as far
    as the driver can see them.
    """
    for path in _arrived(checkpoint):
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


def _arrived(checkpoint: Path) -> Iterator[Path]:
    """The Parquet files of the last batch in the logs of Spark's sources."""
    for source in checkpoint.glob("sources/*"):
        logs = [log for log in source.iterdir() if log.name.split(".")[0].isdigit()]
        newest = max(logs, key=lambda log: int(log.name.split(".")[0]), default=None)
        lines = [] if newest is None else newest.read_text(encoding="utf-8").splitlines()[1:]
        entries = [json.loads(line) for line in lines if line.startswith('{"path"')]
        # every tenth log holds those before it as well
        last = max((entry["batchId"] for entry in entries), default=None)
        for entry in entries:
            parts = urlsplit(entry["path"])
            path = Path(unquote(parts.path))
            if entry["batchId"] == last and parts.scheme == "file" and path.suffix == ".parquet":
                yield path
