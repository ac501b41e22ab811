"""What a stream keeps after its last whole batch, read while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ids.errors import CheckpointError, StateError
from ids.spark.files import files_at
from ids.spark.streaming.retained.rows import KeptRows
from ids.spark.streaming.store import Piece, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Current", "steadily"]

T = TypeVar("T")

_TRIES = 5
_NAME = "retained"


class Current(NamedTuple):
    """The rows of the window at the last emits."""

    store: Store
    kept: KeptRows
    pieces: list[Piece]


def steadily(
    checkpoint: str | Path, read: Callable[[Current], T], session: SparkSession | None = None
) -> T:
    """What ``read`` makes of the kept rows; once more, if they were taken away meanwhile."""
    store = Store(files_at(checkpoint, session), session)
    for left in reversed(range(_TRIES)):
        number = None
        try:
            number, current = _current(checkpoint, store)
            with store.blaming():
                return read(current)
        except OSError:  # as CheckpointError and SourceError are
            moved = number is None or number not in store.manifests()
            if not (left and moved):
                raise
    raise AssertionError("the last try returns or raises")


def _current(checkpoint: str | Path, store: Store) -> tuple[int, Current]:
    """What is kept after the last whole batch; a clear error where there is nothing to ask."""
    manifest = store.latest()
    if manifest is None:
        if not store.files.entries("ids"):
            raise CheckpointError(
                f"{checkpoint} is no checkpoint; name the directory that a stream was started with"
            )
        raise StateError("the stream has emitted nothing yet; ask again when it has")
    facts = manifest.facts["step"].get(_NAME)
    if facts is None:
        raise StateError(f"the stream of {checkpoint} retains no panes; start it with retain=True")
    kept = KeptRows.of(facts)
    if kept.spoken is None or kept.expired is None:
        raise StateError("the stream has emitted nothing yet; ask again when it has")
    if kept.since is not None and kept.expired < kept.since:
        raise StateError(
            "the window still holds rows that came before they were kept; ask again when a whole "
            "window has passed since the stream was started with retain"
        )
    return manifest.batch, Current(store, kept, kept.inside(manifest.of(_NAME)))
