"""Spark sessions for a step: one at a time, over so many cores, ended with the block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["CORES", "session", "to_nowhere"]

CORES = 2  # of a step that does not ask how Spark scales


@contextmanager
def session(cores: int | None = None) -> Iterator[SparkSession]:
    """A session on this machine, over all its cores without a number.

    The Java process outlives it, so a second one starts at once. It stays warm, too: what Java
    compiled in one session is there in the next, so sessions over different numbers of cores can
    take turns.
    """
    from ids.spark.failures import translated
    from ids.spark.session import local_session

    with translated():
        spark = local_session(f"local[{cores or '*'}]")
        try:
            yield spark
        finally:
            spark.stop()


def to_nowhere(frame: DataFrame) -> None:
    """Compute every row, and write none."""
    frame.write.format("noop").mode("overwrite").save()
