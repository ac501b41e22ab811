"""Files that come to a stream: Spark would read a column that a Parquet file lacks as NULLs."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

from ids.errors import SourceError
from ids.source.folder import at_once
from ids.source.parts import ParquetPart
from ids.spark.files import Files, path_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["check_files", "source_columns"]


def source_columns(data: DataFrame) -> frozenset[str]:
    """What the sources of a DataFrame hold; its other columns are made of these, and in no file."""
    leaves = data._jdf.queryExecution().analyzed().collectLeaves()
    outputs = [leaves.apply(number).output() for number in range(leaves.size())]
    return frozenset(
        output.apply(number).name() for output in outputs for number in range(output.size())
    )


def check_files(session: SparkSession, checkpoint: Files, columns: Collection[str]) -> None:
    """Refuse a micro-batch with a Parquet file that is not whole, or lacks one of ``columns``.

    Reads the footers of the files that the ``checkpoint`` names for the batch at work.
    """

    def schema(place: str) -> ParquetPart:
        return ParquetPart(path_at(place, session))

    for part in at_once(schema, _arrived(checkpoint)):
        for name in columns:
            if name not in part.schema.names:
                raise SourceError(
                    f"{part.path} does not fit the files before it: it lacks column {name!r}; "
                    "write it again"
                )


def _arrived(checkpoint: Files) -> Iterator[str]:
    """The Parquet files of the last batch in the logs of Spark's sources."""
    for source in checkpoint.entries("spark/sources"):
        folder = f"spark/sources/{source.name}"
        logs = [e.name for e in checkpoint.entries(folder) if e.name.split(".")[0].isdigit()]
        newest = max(logs, key=lambda log: int(log.split(".")[0]), default=None)
        if newest is None:
            continue
        lines = checkpoint.read(f"{folder}/{newest}").decode().splitlines()[1:]
        entries = [json.loads(line) for line in lines if line.startswith('{"path"')]
        # every tenth log holds those before it as well
        last = max((entry["batchId"] for entry in entries), default=None)
        for entry in entries:
            place = unquote(entry["path"])
            if entry["batchId"] == last and place.endswith(".parquet"):
                yield place
