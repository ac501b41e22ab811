"""Kept rows as a DataFrame, from another process or this one, while the stream goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from ids.errors import CheckpointError, StateError
from ids.spark.failures import translated
from ids.spark.frames import Typed
from ids.spark.panes import PANE
from ids.spark.sources.locating import Location
from ids.spark.streaming.retained.folder import Folder
from ids.spark.streaming.retained.manifest import Manifest, Piece
from ids.spark.streaming.snapshots import Snapshots

__all__ = ["current", "opened", "steadily"]

T_ = TypeVar("T_")

_TRIES = 5
_TYPES: dict[str, T.DataType] = {
    "bigint": T.LongType(),
    "double": T.DoubleType(),
    "string": T.StringType(),
    "boolean": T.BooleanType(),
}
# a page whose bits have changed must not be taken for rows
_CHECKED = {"parquet.page.verify-checksum.enabled": "true"}


def current(checkpoint: Path) -> Manifest:
    """What is kept after the last whole batch; a clear error where there is nothing to ask."""
    snapshots = Snapshots(checkpoint / "ids")
    try:
        latest = snapshots.latest()
    except OSError:
        raise CheckpointError(
            f"{checkpoint} is no checkpoint; name the folder that a stream was started with"
        ) from None
    manifest = None if latest is None else Manifest.load(snapshots.load(latest).folder)
    if manifest is None and not (latest is None and (checkpoint / "retained").is_dir()):
        raise StateError(f"the stream of {checkpoint} retains no panes; start it with retain=True")
    if manifest is None or manifest.spoken is None or manifest.expired is None:
        raise StateError("the stream has emitted nothing yet; ask again when it has")
    if manifest.since is not None and manifest.expired < manifest.since:
        raise StateError(
            "the window still holds rows that came before they were kept; ask again when a whole "
            "window has passed since the stream was started with retain"
        )
    return manifest


def steadily(checkpoint: Path, read: Callable[[Manifest], T_]) -> T_:
    """What ``read`` makes of the kept rows; once more, if they were taken away meanwhile."""
    folder = Folder(checkpoint)
    for left in reversed(range(_TRIES)):
        manifest: Manifest | None = None
        with folder.reading():
            try:
                manifest = current(checkpoint)
                return read(manifest)
            except OSError:  # as CheckpointError and SourceError are
                moved = manifest is None or not _present(folder, manifest)
                if not (left and moved):
                    raise
    raise AssertionError("the last try returns or raises")


def _present(folder: Folder, manifest: Manifest) -> bool:
    return all(folder.path(piece).exists() for piece in manifest.inside())


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
