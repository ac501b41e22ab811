"""Files that are whole or not there, and no file of an earlier time among those of today."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from ids.errors import SourceError

__all__ = ["keep", "keep_all", "make_directory"]


def make_directory(path: Path) -> None:
    """A directory is there, with those above it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"cannot make {path}: {error.strerror}") from error


def keep(path: Path, text: str) -> Path:
    """Write a file beside its place and move it there: a reader sees the old one or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            beside.write_text(text, encoding="utf-8", newline="\n")
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise SourceError(f"cannot write {path}: {error.strerror}") from error
    return path


def keep_all(
    directory: Path, ending: str, texts: Mapping[str, str], owners: Collection[str]
) -> None:
    """These texts as files of one ending, and none of an earlier time that an owner wrote.

    A file is an owner's where its name begins with the owner's key: ``rq2_throughput.csv``. What
    else lies in the directory is somebody's own, and stays.
    """
    for name, text in texts.items():
        keep(directory / f"{name}{ending}", text)
    for path in directory.glob(f"*{ending}"):
        if path.stem not in texts and re.split(r"[-_]", path.stem, maxsplit=1)[0] in owners:
            try:
                path.unlink()
            except OSError as error:
                raise SourceError(f"cannot remove {path}: {error.strerror}") from error
