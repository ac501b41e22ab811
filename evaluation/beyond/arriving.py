"""Rows that arrive file by file, and a stream that takes what is there and ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

import ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ids.spark.streaming import Running

__all__ = ["arrive", "pieces", "take_in"]

_SOME_TIME = 1_000_000_000


def pieces(table: pa.Table, count: int) -> Iterator[pa.Table]:
    """The table in its order, cut into so many parts of about equal length."""
    borders = [number * table.num_rows // count for number in range(count + 1)]
    for first, end in pairwise(borders):
        yield table.slice(first, end - first)


def arrive(table: pa.Table, folder: Path, files: int) -> Path:
    """Cut a table into files that a stream takes in their order: by when they were modified."""
    folder.mkdir(parents=True)
    for number, piece in enumerate(pieces(table, files)):
        path = folder / f"{number:04d}.parquet"
        pq.write_table(piece, path)
        os.utime(path, (_SOME_TIME + number,) * 2)
    return folder


def take_in(
    spark: SparkSession,
    script: str,
    folder: Path,
    checkpoint: Path,
    files: int = 1,
    lateness: str = "0 seconds",
) -> Running:
    """Run a stream over the files of a folder, so many a micro-batch, to its end."""
    from ids.spark.sources import read

    rows = read(spark, folder, stream=True, options={"maxFilesPerTrigger": str(files)})
    running = ids.spark.start(
        script, checkpoint=checkpoint, once=True, lateness=lateness, events=rows
    )
    running.wait()
    return running
