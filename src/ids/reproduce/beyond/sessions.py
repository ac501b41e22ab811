"""Spark sessions for a step: one at a time, over so many cores, ended with the block."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["session", "to_nowhere"]


@contextmanager
def session(cores: int) -> Iterator[SparkSession]:
    """A session on this machine; the Java process outlives it, so a second one starts at once.

    It stays warm, too: what Java compiled in one session is there in the next, so sessions over
    different numbers of cores can take turns.
    """
    from ids.spark.failures import translated
    from ids.spark.session import local_session

    with translated():
        spark = local_session(f"local[{cores}]")
        try:
            yield spark
        finally:
            spark.stop()


def to_nowhere(frame: DataFrame) -> None:
    """Compute every row, and write none."""
    frame.write.format("noop").mode("overwrite").save()
