"""read: a table of the command line as a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import sleep

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.errors import SourceError
from ids.model.place import local_path
from ids.source.declared import EPOCHS, declared, plain_types
from ids.source.folder import FilePath, has_files, missing
from ids.spark.failures import translated
from ids.spark.files import literal, path_at, uri_of
from ids.spark.location import Location, locate, may_be_table
from ids.spark.probe import check_seen
from ids.spark.sources.kafka import read_kafka
from ids.spark.sources.origin import LATER, ORIGIN, beside, name_origin
from ids.spark.sources.parquet import read_parquet
from ids.spark.sources.retyped import retyped
from ids.spark.sources.text import read_text
from ids.spark.topic import is_kafka
from ids.spark.typed import quoted

__all__ = ["catalog_table", "read"]

_TICK = 0.2  # seconds between two looks at a directory without files


def read(
    session: SparkSession,
    place: str | Path | Location,
    *,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    stream: bool = False,
    wait: bool = False,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The table at ``place``: a file, a directory of files, or ``kafka://host:9092/topic``.

    Files lie on any file system that Spark knows: ``s3a://bucket/in``, or a path of this machine.

    Its columns are those the in-process reader sees, in the same types and with the same NULLs,
    and ``ids_origin``, which orders the rows as they stand in the input. ``schema`` declares the
    columns of a topic, or the types of some columns of files; ``null`` is a text, or several, that
    means NULL in text files; ``options`` go to Spark's reader (``maxFilesPerTrigger``). A stream's
    directory may be empty if its columns are declared: ``wait`` for the first file, or else there
    are no rows.
    """
    options = options or {}
    columns = declared(schema) if isinstance(schema, str) else schema or {}
    with translated():
        if is_kafka(place):
            data = read_kafka(session, str(place), columns, stream=stream, options=options)
            epochs = {n: type_ for n, type_ in columns.items() if type_.upper() in EPOCHS}
            return retyped(data, epochs, str(place))
        if not isinstance(place, Location):
            path = path_at(place, session)
            if stream and not _has_files(path, columns, wait=wait):
                return _nothing(session, path, columns)
            place = locate(path)
        check_seen(session, place.files)
        if place.format == "parquet":
            data = read_parquet(session, place, stream=stream, options=options)
        else:
            nulls = (null,) if isinstance(null, str) else null
            data = read_text(session, place, columns, nulls, stream=stream, options=options)
        return retyped(data, columns, str(place.place))


def catalog_table(
    session: SparkSession, place: object, *, stream: bool = False
) -> DataFrame | None:
    """The table of the session's catalog that a place names; None if it names files, or a topic."""
    if not isinstance(place, str) or not may_be_table(place):
        return None
    try:
        known = session.catalog.tableExists(place)
    except AnalysisException:  # there is no such catalog
        known = False
    if not known:
        raise SourceError(missing(local_path(place), "file, directory or table"))
    return session.readStream.table(place) if stream else session.table(place)


def _has_files(path: FilePath, columns: Mapping[str, str], *, wait: bool) -> bool:
    """Whether there are files by now: their names say what format they are of."""
    found = has_files(path, declared=bool(columns))
    while wait and not found:
        sleep(_TICK)
        found = has_files(path, declared=True)
    return found


def _nothing(session: SparkSession, path: FilePath, columns: Mapping[str, str]) -> DataFrame:
    """A stream of no rows, over a directory that has no files."""
    types = {n: "TIMESTAMP" if t in EPOCHS else t for n, t in plain_types(columns).items()}
    schema = ", ".join(f"{quoted(name)} {type_}" for name, type_ in types.items())
    reader = session.readStream.schema(schema).option("pathGlobFilter", "*.parquet")
    data = reader.parquet(literal(uri_of(path)))
    origin = F.expr(name_origin(encoded=True, place=LATER))
    return data.select("*", beside(columns, origin, ORIGIN))
