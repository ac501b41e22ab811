"""Targets: where an output goes and in which format, known before any work is done."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from ids.errors import SourceError

__all__ = [
    "PART",
    "SUCCESS",
    "Format",
    "Target",
    "check",
    "check_directory",
    "descriptor",
    "is_device",
    "is_directory",
    "parts",
    "resolve",
]

PART = "part-00000"
SUCCESS = "_SUCCESS"

_DESCRIPTOR = re.compile(r"/dev/(?:(stdout)|(stderr)|fd/(\d+))|/proc/self/fd/(\d+)")


class Format(Enum):
    """What a file is written as, by its extension."""

    PARQUET = ".parquet"
    CSV = ".csv"
    JSONL = ".jsonl"


class Target(NamedTuple):
    """The file to write, in its format.

    directory  if the file is a part of one that is ours
    device     whether it is a pipe, a terminal or the like, where nothing can be renamed
    """

    file: Path
    format: Format
    directory: Path | None = None
    device: bool = False


def check(target: str | Path, format_: Format | None = None) -> None:
    """Refuse what could not be written, before any work is done."""
    resolve(target, format_)


def check_directory(directory: Path) -> None:
    """Refuse a directory that could not be made, or not be written into."""
    place = directory.expanduser()
    while not place.exists():
        place = place.parent  # "." in the end, or "/"
    if not place.is_dir():
        raise SourceError(f"{place} is a file; name a directory that is one, or that is new")
    if not os.access(place, os.W_OK):
        raise SourceError(f"cannot write into {place}; check its permissions")


def resolve(target: str | Path, format_: Format | None = None) -> Target:
    """What ``target`` means; ``format_`` says what its name does not."""
    if is_device(target):
        if format_ is None:
            raise SourceError(f"cannot tell the format of {target}; give format='csv' or 'jsonl'")
        return Target(Path(target), format_, device=True)
    if is_directory(target):
        return parts(target, [PART], format_)[0]
    path = _real(target)
    named = _format_of(path)
    if named is not None and format_ not in (None, named):
        raise SourceError(f"{target} is {named.name} by its name; give it another name, or format")
    if named is None and format_ is None:
        raise SourceError(
            f"cannot tell the format of {target}; end it with .parquet, .csv or .jsonl, "
            "or with / for a directory"
        )
    _refuse_orphan(path)
    return Target(path, named or format_ or Format.PARQUET)


def parts(target: str | Path, names: Sequence[str], format_: Format | None = None) -> list[Target]:
    """A file of each name in a directory; Parquet, unless ``format_`` or ``out.csv/`` says else."""
    path = _real(target)
    chosen = format_ or _format_of(path) or Format.PARQUET
    files = [f"{name}{chosen.value}" for name in names]
    _refuse_foreign(path, {*files, SUCCESS})
    _refuse_orphan(path)
    return [Target(path / file, chosen, path) for file in files]


def is_directory(target: str | Path) -> bool:
    """Whether ``target`` is a directory, or by its last ``/`` is to become one."""
    return str(target).endswith(("/", os.sep)) or _real(target).is_dir()


def is_device(target: str | Path) -> bool:
    """Whether ``target`` is written as a stream: a pipe, a terminal, ``/dev/stdout``."""
    if descriptor(target) is not None:
        return True
    try:
        mode = Path(target).expanduser().stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def descriptor(target: str | Path) -> int | None:
    """The open file that a name stands for.

    >>> descriptor("/dev/stdout"), descriptor("/dev/fd/3"), descriptor("out.csv")
    (1, 3, None)
    """
    found = _DESCRIPTOR.fullmatch(str(target))
    if found is None:
        return None
    if found[1] or found[2]:
        return 1 if found[1] else 2
    return int(found[3] or found[4])


def _real(target: str | Path) -> Path:
    return Path(os.path.realpath(Path(target).expanduser()))


def _format_of(path: Path) -> Format | None:
    return {format_.value: format_ for format_ in Format}.get(path.suffix.lower())


def _refuse_foreign(path: Path, ours: set[str]) -> None:
    """A directory may hold our own earlier output, and nothing else that a reader would see."""
    if path.exists() and not path.is_dir():
        raise SourceError(f"{path} is a file; name a directory that is one, or that is new")
    others = sorted(e.name for e in path.glob("[!.]*") if e.name not in ours)
    if others:
        raise SourceError(f"{path} already holds {others[0]}; give an empty or a new directory")


def _refuse_orphan(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise SourceError(f"no such directory: {folder}; make it first")
    place = path if path.is_dir() else folder
    if not os.access(place, os.W_OK):
        raise SourceError(f"cannot write into {place}; check its permissions")
