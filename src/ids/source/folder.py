"""Which files a path means: one file, or a directory of them in name order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, Literal, Protocol, Self, TypeVar

from ids.errors import SourceError, closest

__all__ = ["FORMATS", "FilePath", "at_once", "find_files", "has_files", "missing"]

_AT_ONCE = 16  # requests to a file system that is far away

T = TypeVar("T")
R = TypeVar("R")

FORMATS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_KNOWN = "IDS reads .parquet, .csv, .jsonl, .ndjson and .json, or a directory of them"


class _Stat(Protocol):
    @property
    def st_size(self) -> int: ...

    @property
    def st_mtime_ns(self) -> int: ...


class FilePath(Protocol):
    """A path of ``pathlib``, or one on another file system that answers like it."""

    @property
    def name(self) -> str: ...

    @property
    def suffix(self) -> str: ...

    @property
    def parent(self) -> Self: ...

    def exists(self) -> bool: ...

    def is_dir(self) -> bool: ...

    def is_file(self) -> bool: ...

    def iterdir(self) -> Iterator[Self]: ...

    def stat(self) -> _Stat: ...

    def open(self, mode: Literal["rb"]) -> BinaryIO: ...


P = TypeVar("P", bound=FilePath)


def find_files(path: P) -> tuple[str, list[P]]:
    """The format, and the files in the order in which their rows count."""
    if path.is_dir():
        files = _of_directory(path)
    elif path.exists():
        files = [path]
    else:
        raise SourceError(missing(path))
    formats = {file: FORMATS.get(file.suffix.lower()) for file in files}
    for file, format_ in formats.items():
        if format_ is None:
            raise SourceError(f"{file} is of no known format; {_KNOWN}")
        if format_ != formats[files[0]]:
            raise SourceError(
                f"{path} mixes formats ({files[0].name}, {file.name}); "
                "give a directory of one format"
            )
    return formats[files[0]] or "", files


def _of_directory(path: P) -> list[P]:
    """Its visible files; names that begin with ``.`` or ``_`` are bookkeeping, as in Spark."""
    entries = sorted((e for e in path.iterdir() if e.name[0] not in "._"), key=lambda e: e.name)
    for entry in entries:
        if entry.is_dir() and "=" in entry.name:
            raise SourceError(
                f"{path} is partitioned ({entry.name}); give one directory that holds the files"
            )
    files = [entry for entry in entries if not entry.is_dir()]
    if not files:
        raise SourceError(f"{path} holds no data files; {_KNOWN}")
    return files


def has_files(path: FilePath, *, declared: bool) -> bool:
    """Whether the directory of a stream holds files yet; if not, its columns must be declared."""
    if path.is_file():
        raise SourceError(
            f"{path} is a file; a stream reads a directory to which files come, "
            f"name {path.parent}/ or run it without a stream"
        )
    if not path.is_dir() or any(e.name[0] not in "._" and not e.is_dir() for e in path.iterdir()):
        return True
    if not declared:
        raise SourceError(
            f"{path} holds no data files yet; declare their columns with "
            "schema='a STRING, b DOUBLE, t TIMESTAMP', or put one there first"
        )
    return False


def at_once(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """What a function that waits for a file system gives for each, several at a time."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(function, items))


def missing(path: FilePath, what: str = "file or directory") -> str:
    """That a path leads nowhere, and where it may have been meant to lead."""
    folder = path.parent
    if not folder.is_dir():
        return f"no such {what}: {path}"
    near = closest(path.name, [e.name for e in folder.iterdir() if e.name[0] not in "._"])
    return f"no such {what}: {path}" + (f"; {near}" if near else "")
