"""The manifest: what a workload is, with the SHA-256 of each of its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from ids.errors import SourceError

__all__ = ["EVENTS", "MANIFEST", "TRUTH", "Entry", "Manifest", "differences", "take_stock"]

MANIFEST = "manifest.json"
EVENTS = "events"
TRUTH = "truth.json"
_FORMAT = 1


@dataclass(frozen=True)
class Entry:
    """A file: where it is, how many bytes and rows (0 if it holds no events), and its SHA-256."""

    path: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """A workload on disk; its own SHA-256 covers all but who made it.

    recipe    what it was made by
    schema    the events' columns and their Arrow types
    files     all files but the manifest, in the order of their rows
    made_by   versions: for people, part of no hash
    """

    recipe: Mapping[str, Any]
    schema: Mapping[str, str]
    files: tuple[Entry, ...]
    made_by: Mapping[str, str]

    @property
    def rows(self) -> int:
        """The number of events."""
        return sum(file.rows for file in self.files)

    @property
    def events(self) -> tuple[Entry, ...]:
        """The files that hold events."""
        return tuple(file for file in self.files if file.path.startswith(f"{EVENTS}/"))

    @property
    def sha256(self) -> str:
        """The hash of the recipe, the schema and every file."""
        return _seal(self._workload())

    def text(self) -> str:
        """As ``manifest.json`` says it."""
        facts = {
            "format": _FORMAT,
            "workload": self._workload(),
            "sha256": self.sha256,
            "made_by": dict(self.made_by),
        }
        return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"

    def _workload(self) -> dict[str, Any]:
        return {
            "recipe": dict(self.recipe),
            "rows": self.rows,
            "schema": dict(self.schema),
            "files": [asdict(file) for file in self.files],
        }

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """The manifest of a prepared workload."""
        path = directory / MANIFEST
        try:
            facts = json.loads(path.read_text(encoding="utf-8"))
            workload = facts["workload"]
            if facts["format"] != _FORMAT or facts["sha256"] != _seal(workload):
                raise SourceError(f"{path} is altered or of another version; prepare it again")
            files = tuple(Entry(**file) for file in workload["files"])
            return cls(workload["recipe"], workload["schema"], files, facts["made_by"])
        except FileNotFoundError as error:
            raise SourceError(
                f"{directory} holds no workload (no {MANIFEST}); make one: ids workload prepare"
            ) from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, SourceError):
                raise
            raise SourceError(f"cannot read {path}: it is no manifest; prepare it again") from error


def take_stock(directory: Path, recipe: Mapping[str, Any], made_by: Mapping[str, str]) -> Manifest:
    """The manifest of the files that lie in ``directory`` now."""
    files = tuple(_entry(directory, path) for path in _paths(directory))
    first = next(file for file in files if file.path.startswith(f"{EVENTS}/"))
    schema = pa.parquet.read_schema(directory / first.path)
    return Manifest(recipe, {f.name: str(f.type) for f in schema}, files, made_by)


def differences(directory: Path) -> list[str]:
    """What is not as the manifest says, a line each; empty if all is."""
    manifest = Manifest.read(directory)
    here = set(_paths(directory))
    said = {file.path: file for file in manifest.files}
    found = [f"{path}: extra" for path in here - set(said)]
    for path, entry in said.items():
        if path not in here:
            found.append(f"{path}: missing")
        elif _sha256(directory / path) != entry.sha256:
            found.append(f"{path}: altered")
    return sorted(found)


def _paths(directory: Path) -> list[str]:
    files = (path for path in directory.rglob("*") if path.is_file() or path.is_symlink())
    return sorted(
        name for name in (f.relative_to(directory).as_posix() for f in files) if name != MANIFEST
    )


def _entry(directory: Path, path: str) -> Entry:
    file = directory / path
    is_events = path.startswith(f"{EVENTS}/")
    rows = pa.parquet.read_metadata(file).num_rows if is_events else 0
    return Entry(path, rows, file.stat().st_size, _sha256(file))


def _sha256(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise SourceError(f"cannot read {file}: {error.strerror}") from error


def _seal(workload: Mapping[str, Any]) -> str:
    """The hash of the facts, however they are spaced."""
    text = json.dumps(workload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
