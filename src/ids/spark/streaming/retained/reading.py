"""Kept rows as a DataFrame, from another process or this one, while the stream goes on."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ids.errors import CheckpointError
from ids.spark.failures import translated
from ids.spark.panes import PANE
from ids.spark.sources.locating import Location
from ids.spark.streaming.retained.folder import Folder
from ids.spark.streaming.retained.manifest import Manifest, Piece
from ids.spark.typed import Typed

__all__ = ["opened"]

_TYPES: dict[str, T.DataType] = {
    "bigint": T.LongType(),
    "double": T.DoubleType(),
    "string": T.StringType(),
    "boolean": T.BooleanType(),
}
# a page whose bits have changed must not be taken for rows
_CHECKED = {"parquet.page.verify-checksum.enabled": "true"}


def opened(
    session: SparkSession, folder: Folder, manifest: Manifest, pieces: Sequence[Piece]
) -> DataFrame:
    """The rows of some files: PANE, then a column ``c0``, ``c1``, … for each of the table's."""
    fields = [T.StructField(PANE, T.LongType())]
    fields += [T.StructField(typed.text, _type(typed)) for typed in manifest.columns.values()]
    files = [folder.path(piece) for piece in pieces]
    if not files:
        return session.createDataFrame([], T.StructType(fields))
    for file, piece in zip(files, pieces, strict=True):
        if file.exists() and file.stat().st_size != piece.bytes:
            raise CheckpointError(f"{file} was altered; restore the checkpoint, or start anew")
    location = Location(folder.root, "parquet", files)
    with translated():
        return location.load(session, files, T.StructType(fields), _CHECKED, stream=False)


def _type(typed: Typed) -> T.DataType:
    return _TYPES[typed.type]
