"""read: a table of the command line as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from ids.source.declared import EPOCHS, declared
from ids.spark.failures import translated
from ids.spark.sources.kafka import read_kafka
from ids.spark.sources.locating import locate
from ids.spark.sources.parquet import read_parquet
from ids.spark.sources.retyped import retyped
from ids.spark.sources.text import read_text
from ids.spark.topic import is_kafka

__all__ = ["read"]


def read(
    session: SparkSession,
    place: str | Path,
    *,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    stream: bool = False,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The table at ``place``: a file, a directory of files, or ``kafka://host:9092/topic``.

    Its columns are those the in-process reader sees, in the same types and with the same NULLs,
    and ``ids_origin``, which orders the rows as they stand in the input. ``schema`` declares the
    columns of a topic, or the types of some columns of files; ``null`` is a text, or several, that
    means NULL in text files; ``options`` go to Spark's reader (``maxFilesPerTrigger``).
    """
    options = options or {}
    columns = declared(schema) if isinstance(schema, str) else schema or {}
    with translated():
        if is_kafka(place):
            data = read_kafka(session, str(place), columns, stream=stream, options=options)
            epochs = {n: type_ for n, type_ in columns.items() if type_.upper() in EPOCHS}
            return retyped(data, epochs, str(place))
        location = locate(place)
        if location.format == "parquet":
            data = read_parquet(session, location, stream=stream, options=options)
        else:
            nulls = (null,) if isinstance(null, str) else null
            data = read_text(session, location, columns, nulls, stream=stream, options=options)
        return retyped(data, columns, str(place))
