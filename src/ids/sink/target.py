"""Targets: where an output goes and in which format, known before any work is done."""

from __future__ import annotations

import os
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from ids.errors import SourceError

__all__ = ["PART", "SUCCESS", "Format", "Target", "check", "check_directory", "resolve"]

PART = "part-00000.parquet"
SUCCESS = "_SUCCESS"


class Format(Enum):
    """What a file is written as, by its extension."""

    PARQUET = ".parquet"
    CSV = ".csv"
    JSONL = ".jsonl"


class Target(NamedTuple):
    """The file to write, in its format; ``directory`` if it is a part of one that is ours."""

    file: Path
    format: Format
    directory: Path | None = None


def check(target: str | Path) -> None:
    """Refuse what could not be written, before any work is done."""
    resolve(target)


def check_directory(directory: Path) -> None:
    """Refuse a directory that could not be made, or not be written into."""
    place = directory.expanduser().absolute()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        raise SourceError(f"{place} is a file; name a directory that is one, or that is new")
    if not os.access(place, os.W_OK):
        raise SourceError(f"cannot write into {place}; check its permissions")


def resolve(target: str | Path) -> Target:
    """What ``target`` means: a path that ends with ``/`` or is a directory is a directory."""
    path = Path(os.path.realpath(Path(target).expanduser()))
    if str(target).endswith(("/", os.sep)) or path.is_dir():
        _refuse_foreign(path)
        _refuse_orphan(path)
        return Target(path / PART, Format.PARQUET, path)
    known = {format_.value: format_ for format_ in Format}
    if path.suffix.lower() not in known:
        raise SourceError(
            f"cannot tell the format of {target}; end it with .parquet, .csv or .jsonl, "
            "or with / for a directory"
        )
    _refuse_orphan(path)
    return Target(path, known[path.suffix.lower()])


def _refuse_foreign(path: Path) -> None:
    """A directory may hold our own earlier output, and nothing else that a reader would see."""
    if path.exists() and not path.is_dir():
        raise SourceError(f"{path} is a file; name a directory that is one, or that is new")
    others = sorted(e.name for e in path.glob("[!.]*") if e.name not in (PART, SUCCESS))
    if others:
        raise SourceError(f"{path} already holds {others[0]}; give an empty or a new directory")


def _refuse_orphan(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise SourceError(f"no such directory: {folder}; make it first")
    place = path if path.is_dir() else folder
    if not os.access(place, os.W_OK):
        raise SourceError(f"cannot write into {place}; check its permissions")
