"""Snapshots: the state after each micro-batch, in a folder that is either whole or not there.

checkpoint/ids/stream            what runs here; another stream is refused
checkpoint/ids/00000041/         after batch 41: the step's files, and …
checkpoint/ids/00000041/ids-snapshot   … their checksums and the runtime's own facts
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ids.errors import CheckpointError
from ids.state import checkpoint

__all__ = ["Snapshot", "Snapshots", "sync"]

_MANIFEST = "ids-snapshot"
_KEPT = 3


class Snapshot(NamedTuple):
    """The state after batch ``number``: the step's files in ``folder``, the runtime's facts."""

    number: int
    folder: Path
    facts: dict[str, Any]


class Snapshots:
    """The snapshots of one stream, the last few of them."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def latest(self) -> int | None:
        """The number of the last whole one."""
        return max(self._numbers(), default=None)

    def load(self, number: int) -> Snapshot:
        """A snapshot with every byte checked; CheckpointError otherwise."""
        folder = self._folder(number)
        facts, _ = checkpoint.load(folder / _MANIFEST)
        for name, expected in facts["files"].items():
            if _digest(folder / name) != expected:
                raise CheckpointError(
                    f"checkpoint {folder / name} is missing or was altered: its checksum does not "
                    "fit; restore the checkpoint from a copy, or start anew in another folder"
                )
        return Snapshot(number, folder, facts["facts"])

    def fresh(self, number: int) -> Path:
        """An empty folder to put the state after batch ``number`` into."""
        folder = self._passing(number)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def commit(self, number: int, facts: Mapping[str, Any]) -> None:
        """Make the folder's files safe, then give it its name; older ones go."""
        folder = self._passing(number)
        try:
            files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
            for path in files:
                sync(path)
            digests = {str(path.relative_to(folder)): _digest(path) for path in files}
            checkpoint.save(folder / _MANIFEST, {"files": digests, "facts": dict(facts)}, {})
            for path in (*folder.rglob("*"), folder):
                if path.is_dir():
                    sync(path)
            folder.rename(self._folder(number))
            sync(self._root)
        except OSError as error:
            if isinstance(error, CheckpointError):
                raise
            raise CheckpointError(f"cannot write checkpoint {folder}: {error.strerror}") from error
        self._prune()

    def folders(self) -> list[Path]:
        """Where the whole ones lie, the oldest first."""
        return [self._folder(number) for number in sorted(self._numbers())]

    def _prune(self) -> None:
        for number in sorted(self._numbers())[:-_KEPT]:
            # under another name first: half a folder must not look like a whole one
            self._folder(number).rename(self._root / f".{number:08d}.old")
        for going in self._root.glob(".*.old"):  # those that a crash left, too
            shutil.rmtree(going, ignore_errors=True)

    def _numbers(self) -> list[int]:
        names = (entry.name for entry in self._root.iterdir())
        return [int(name) for name in names if name.isdigit()]

    def _folder(self, number: int) -> Path:
        return self._root / f"{number:08d}"

    def _passing(self, number: int) -> Path:
        return self._root / f".{number:08d}.tmp"


def sync(path: Path) -> None:
    """Have the system put a file or a folder on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(path: Path) -> str:
    """A file's SHA-256; nothing for one that cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
