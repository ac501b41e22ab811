"""read: a table of the command line as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from ids.errors import SourceError
from ids.spark.failures import translated
from ids.spark.sources.kafka import declared, read_kafka
from ids.spark.sources.locating import locate
from ids.spark.sources.parquet import read_parquet
from ids.spark.sources.text import read_text
from ids.spark.topic import is_kafka

__all__ = ["read"]


def read(
    session: SparkSession,
    place: str | Path,
    *,
    schema: str | None = None,
    stream: bool = False,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The table at ``place``: a file, a directory of files, or ``kafka://host:9092/topic``.

    Its columns are those the in-process reader sees, in the same types and with the same NULLs,
    and ``ids_origin``, which orders the rows as they stand in the input. ``schema`` declares the
    columns of a topic, or the types of some columns of text files; ``options`` go to Spark's
    reader (``maxFilesPerTrigger``).
    """
    options = options or {}
    with translated():
        if is_kafka(place):
            return read_kafka(session, str(place), schema, stream=stream, options=options)
        location = locate(place)
        if location.format == "parquet":
            if schema is not None:
                raise SourceError(f"{place} has a schema of its own; declare none for Parquet")
            return read_parquet(session, location, stream=stream, options=options)
        columns = None if schema is None else declared(schema)
        return read_text(session, location, columns, stream=stream, options=options)
