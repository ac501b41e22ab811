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
from ids.model.place import is_remote, local_path
from ids.sink.files import SUCCESS, Files, LocalFiles

__all__ = [
    "Format",
    "Target",
    "check",
    "check_directory",
    "descriptor",
    "is_device",
    "is_directory",
    "owned",
    "parts",
    "refuse_foreign",
    "refuse_orphan",
    "resolve",
]

_PART = "part"

_DESCRIPTOR = re.compile(r"/dev/(?:(stdout)|(stderr)|fd/(\d+))|/proc/self/fd/(\d+)")


class Format(Enum):
    """What a file is written as, by its extension."""

    PARQUET = ".parquet"
    CSV = ".csv"
    JSONL = ".jsonl"


class Target(NamedTuple):
    """Where a result goes, in its format.

    place   a file, or a directory that gets files; a path or a URI
    stem    what the names of its files in that directory begin with; None: it is a file
    device  whether it is a pipe, a terminal or the like, where nothing can be renamed
    """

    place: str
    format: Format
    stem: str | None = None
    device: bool = False

    def names(self, count: int) -> list[str]:
        """What ``count`` files are called in the directory, in their order.

        >>> Target("out", Format.CSV, "part").names(2)
        ['part-00000.csv', 'part-00001.csv']
        >>> Target("out", Format.CSV, "2-trips").names(1)
        ['2-trips.csv']
        """
        if count == 1 and self.stem != _PART:
            return [f"{self.stem}{self.format.value}"]
        width = max(5, len(str(count - 1)))
        return [f"{self.stem}-{i:0{width}}{self.format.value}" for i in range(count)]

    def owns(self, name: str) -> bool:
        """Whether a file of the directory is called as one of its own."""
        number = r"-\d{5,}" if self.stem == _PART else r"(-\d{5,})?"
        stem, suffix = re.escape(str(self.stem)), re.escape(self.format.value)
        return re.fullmatch(stem + number + suffix, name) is not None


def owned(name: str, places: Sequence[Target]) -> bool:
    """Whether a file of their directory is called as one of theirs."""
    return any(place.owns(name) for place in places)


def check(target: str | Path, format_: Format | None = None) -> None:
    """Refuse what could not be written, before any work is done."""
    resolve(target, format_)


def check_directory(directory: str | Path) -> None:
    """Refuse a directory that could not be made, or not be written into; not a remote one."""
    if is_remote(directory):
        return
    place = local_path(directory)
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
        return Target(str(target), format_, device=True)
    if is_directory(target):
        return parts(target, [_PART], format_)[0]
    place = _real(target)
    named = _format_of(place)
    if named is not None and format_ not in (None, named):
        raise SourceError(f"{target} is {named.name} by its name; give it another name, or format")
    if named is None and format_ is None:
        raise SourceError(
            f"cannot tell the format of {target}; end it with .parquet, .csv or .jsonl, "
            "or with / for a directory"
        )
    refuse_orphan(place)
    return Target(place, named or format_ or Format.PARQUET)


def parts(target: str | Path, stems: Sequence[str], format_: Format | None = None) -> list[Target]:
    """Files of each stem in a directory; Parquet, unless ``format_`` or ``out.csv/`` says else."""
    place = _real(target)
    chosen = format_ or _format_of(place) or Format.PARQUET
    found = [Target(place, chosen, stem) for stem in stems]
    if not is_remote(place):
        refuse_foreign(LocalFiles(Path(place)), found)
    refuse_orphan(place)
    return found


def is_directory(target: str | Path) -> bool:
    """Whether ``target`` is a directory, or by its last ``/`` is to become one.

    Of a remote one the name alone tells.
    """
    if str(target).endswith(("/", os.sep)):
        return True
    return not is_remote(target) and Path(_real(target)).is_dir()


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


def _real(target: str | Path) -> str:
    return str(target).rstrip("/") if is_remote(target) else os.path.realpath(local_path(target))


def _format_of(place: str) -> Format | None:
    return {format_.value: format_ for format_ in Format}.get(Path(place).suffix.lower())


def refuse_foreign(files: Files, places: Sequence[Target]) -> None:
    """A directory may hold our own earlier output, and nothing else that a reader would see."""
    path = places[0].place
    if not is_remote(path) and Path(path).is_file():
        raise SourceError(f"{path} is a file; name a directory that is one, or that is new")
    names = [entry.name for entry in files.entries()]
    others = [n for n in names if n[0] != "." and n != SUCCESS and not owned(n, places)]
    if others:
        raise SourceError(f"{path} already holds {others[0]}; give an empty or a new directory")


def refuse_orphan(place: str) -> None:
    """Refuse a local place that no directory is there for, or none to be written into."""
    if is_remote(place):
        return
    path = Path(place)
    folder = path.parent
    if not folder.is_dir():
        raise SourceError(f"no such directory: {folder}; make it first")
    written = path if path.is_dir() else folder
    if not os.access(written, os.W_OK):
        raise SourceError(f"cannot write into {written}; check its permissions")
