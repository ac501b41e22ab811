"""What a stream keeps after its last whole batch, read while it goes on, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ids.errors import CheckpointError, StateError
from ids.spark.streaming.retained.folder import Folder
from ids.spark.streaming.retained.manifest import Manifest
from ids.spark.streaming.snapshots import Snapshots

__all__ = ["current", "steadily"]

T = TypeVar("T")

_TRIES = 5


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


def steadily(checkpoint: Path, read: Callable[[Manifest], T]) -> T:
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
