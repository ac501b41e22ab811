"""Events become Parquet files with fixed names and fixed bytes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from ids.errors import SourceError
from ids.workloads.footer import sort_encodings

__all__ = ["place", "quiet_session", "write_events"]

# What a session's owner could have set otherwise, and that would show in the bytes.
_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.session.timeZone": "UTC",
}
# Row groups that any heap holds: the writer makes them smaller when many are open at a time.
_LAYOUT = {
    "compression": "zstd",
    "parquet.block.size": str(32 << 20),
    "parquet.compression.codec.zstd.level": "3",
    "parquet.enable.dictionary": "true",
    "parquet.page.size": str(1 << 20),
    "parquet.writer.version": "v1",
}
_PART = re.compile(r"part-(\d+)-.*\.parquet")
_SCRATCH = "scratch"


def quiet_session(spark: SparkSession) -> SparkSession:
    """A session beside ``spark`` with the settings that fix the bytes; ``spark`` keeps its own."""
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    return session


def place(path: Path) -> str:
    """A local path as Spark takes it: of this file system, no character of it a pattern."""
    return "file://" + re.sub(r"([\\*?\[\]{}])", r"\\\1", str(path.absolute()))


def write_events(events: DataFrame, directory: Path) -> list[Path]:
    """Write partition i as ``part-0000i.parquet``; ``directory`` is new.

    Spark puts a random name on each file it writes, and a checksum beside it: it writes into a
    scratch directory, and the files are moved out under names that say only which part they are.
    """
    scratch = directory / _SCRATCH
    directory.mkdir()
    events.write.options(**_LAYOUT).parquet("file://" + str(scratch.absolute()))
    parts = sorted(file for file in scratch.iterdir() if _PART.fullmatch(file.name))
    if not parts:
        raise SourceError(
            f"Spark wrote no file into {directory}; with a cluster, give a directory that every "
            "worker shares"
        )
    for file in parts:
        sort_encodings(file)
    written = [file.rename(directory / f"part-{i:05}.parquet") for i, file in enumerate(parts)]
    shutil.rmtree(scratch)
    return written
