"""Manifests: what a stream knows after a batch, as one small file that makes the batch done.

CHECKPOINT/ids/00000041.json   JSON, then a line with its SHA-256

To read one takes no Spark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ids.errors import CheckpointError
from ids.spark.files import Readable

__all__ = [
    "FORMAT",
    "MANIFESTS",
    "Manifest",
    "Piece",
    "altered",
    "encoded",
    "latest",
    "load",
    "manifest_name",
    "numbers",
    "shown",
    "unknown_format",
]

FORMAT = 2  # of manifests and pieces; 1 was a folder of NumPy arrays a batch
MANIFESTS = "ids"


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that one batch has written: a directory of Parquet files.

    name   below the checkpoint
    files  how many
    bytes  of all files
    total  the sum of the column that was asked to be added up, if any
    first  the oldest pane of its rows
    last   the newest one
    facts  whatever else is needed to read it
    """

    name: str
    files: int
    bytes: int
    rows: int = 0
    total: int = 0
    first: int = 0
    last: int = 0
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The directory of all that was written with it."""
        return "/".join(self.name.split("/")[:2])

    @property
    def batch(self) -> int:
        """The batch that wrote it."""
        return int(self.name.partition("/")[2].partition("-")[0])


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a stream knows after a batch.

    facts   of the runtime and of the step, as JSON has them
    pieces  by what they are for
    """

    batch: int
    facts: dict[str, Any]
    pieces: Mapping[str, Sequence[Piece]]
    written_by: str = ""

    def of(self, kind: str) -> list[Piece]:
        """The pieces of a kind."""
        return list(self.pieces.get(kind, ()))

    def named(self) -> set[str]:
        """The directories of its pieces, and those that they lie in."""
        return {name for piece in self._every for name in (piece.place, piece.name)}

    @property
    def rows(self) -> int:
        """How many rows it names."""
        return sum(piece.rows for piece in self._every)

    @property
    def bytes(self) -> int:
        """How long the files are that it names."""
        return sum(piece.bytes for piece in self._every)

    @property
    def files(self) -> int:
        """How many files it names."""
        return sum(piece.files for piece in self._every)

    @property
    def _every(self) -> list[Piece]:
        return [piece for pieces in self.pieces.values() for piece in pieces]


def manifest_name(number: int) -> str:
    """The manifest of a batch, below the checkpoint."""
    return f"{MANIFESTS}/{number:08d}.json"


def encoded(manifest: Manifest) -> bytes:
    """The manifest as its file holds it."""
    facts = {"format": FORMAT, **asdict(manifest), "written_by": _version()}
    text = json.dumps(facts).encode()
    return text + b"\n" + sha256(text).hexdigest().encode() + b"\n"


def numbers(files: Readable) -> list[int]:
    """The batches that have a manifest, whole or not, in order."""
    names = [entry.name for entry in files.entries(MANIFESTS)]
    return sorted(int(n[:-5]) for n in names if n.endswith(".json") and n[:-5].isdigit())


def latest(files: Readable) -> Manifest | None:
    """The newest whole manifest; None before the first.

    A driver that died while it wrote one may have left half of it: that batch is not done.
    """
    while True:
        known = numbers(files)
        for number in reversed(known[-2:]):
            manifest = load(files, number)
            if manifest is not None:
                return manifest
        if known == numbers(files):  # else the stream has gone on meanwhile
            break
    if known not in ([], [0]):
        raise altered(files, manifest_name(known[-1]))
    return None


def load(files: Readable, number: int) -> Manifest | None:
    """The manifest of a batch; None where it is not there, or not whole."""
    try:
        content = files.read(manifest_name(number))
    except FileNotFoundError:
        return None
    text, _, digest = content.rstrip(b"\n").rpartition(b"\n")
    if sha256(text).hexdigest().encode() != digest:
        if content.endswith(b"\n") and re.fullmatch(rb"[0-9a-f]{64}", digest):
            raise altered(files, manifest_name(number))
        return None  # only its beginning was written
    facts = json.loads(text)
    if facts["format"] != FORMAT:
        raise unknown_format(files, facts["format"], facts["written_by"])
    pieces = {kind: [Piece(**each) for each in some] for kind, some in facts["pieces"].items()}
    return Manifest(facts["batch"], facts["facts"], pieces, facts["written_by"])


def shown(files: Readable) -> str:
    """A directory as a person names it."""
    return files.uri.removeprefix("file:")


def altered(files: Readable, name: str) -> CheckpointError:
    """A file of the checkpoint is not what was written."""
    return CheckpointError(
        f"{shown(files)}/{name} was altered or is gone; restore the checkpoint as a whole, or "
        "start anew in another directory"
    )


def unknown_format(
    files: Readable, found: object, written_by: str | None = None
) -> CheckpointError:
    """The checkpoint is one that this version does not read."""
    writer = "" if written_by is None else f", written by IDS {written_by}"
    return CheckpointError(
        f"checkpoint {shown(files)} has format {found}{writer}, IDS {_version()} reads format "
        f"{FORMAT}; go on with the version that wrote it, or start anew in another directory"
    )


def _version() -> str:
    try:
        return version("ids-engine")
    except PackageNotFoundError:
        return "of a source tree"
