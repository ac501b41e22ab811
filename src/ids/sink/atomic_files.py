"""Files that are whole or not there: one alone, or those of a directory all at once."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import BinaryIO, NamedTuple, Protocol

import pyarrow as pa

from ids.errors import SourceError

SUCCESS = "_SUCCESS"


class Entry(NamedTuple):
    """A file or a directory, by its name below another one."""

    name: str
    bytes: int
    is_directory: bool


class Readable(Protocol):
    """The files below one directory, to be read; names are relative to it, with ``/``.

    uri  the directory as Spark is told of it
    """

    uri: str

    def read(self, name: str) -> bytes:
        """What a file holds; FileNotFoundError where there is none."""
        ...

    def entries(self, name: str = "") -> list[Entry]:
        """What a directory holds, by name; nothing where there is no such directory."""
        ...


class Files(Readable, Protocol):
    """The files below one directory, to be changed."""

    def open(self, name: str) -> BinaryIO:
        """A file, to be read from any place in it; FileNotFoundError where there is none."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, in the place of one that is there; it survives a crash."""
        ...

    def put(self, file: Path, name: str) -> None:
        """Copy a file of this machine; half of it may be left where that fails."""
        ...

    def exists(self, name: str = "") -> bool:
        """Whether there is such a file or directory."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with all in it; one that is not there is no fault."""
        ...

    def move(self, name: str, to: str) -> None:
        """Give a file another name, in the place of one that is there; it survives a crash."""
        ...

    def move_all(self, names: Mapping[str, str]) -> None:
        """Give many files other names."""
        ...

    def make(self, name: str = "") -> None:
        """Make a directory, and those above it."""
        ...


class LocalFiles:
    """A directory of this machine."""

    def __init__(self, path: Path) -> None:
        self.path, self.uri = path, f"file:{path}"

    def open(self, name: str) -> BinaryIO:
        return (self.path / name).open("rb")

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        with whole(self.path / name) as file:
            file.write(content)

    def put(self, file: Path, name: str) -> None:
        shutil.copyfile(file, self.path / name)

    def exists(self, name: str = "") -> bool:
        return (self.path / name).exists()

    def entries(self, name: str = "") -> list[Entry]:
        try:
            found = sorted(os.scandir(self.path / name), key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [Entry(each.name, each.stat().st_size, each.is_dir()) for each in found]

    def remove(self, name: str) -> None:
        path = self.path / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def move(self, name: str, to: str) -> None:
        (self.path / name).replace(self.path / to)
        _sync_named((self.path / to).parent)

    def move_all(self, names: Mapping[str, str]) -> None:
        for name, to in names.items():
            self.move(name, to)

    def make(self, name: str = "") -> None:
        (self.path / name).mkdir(parents=True, exist_ok=True)

    def sync(self, name: str) -> None:
        """Have the files of a directory on the disk, not in its cache alone."""
        directory = self.path / name
        for path in (*directory.iterdir(), directory, directory.parent):
            _sync_named(path)


@dataclass(frozen=True, slots=True)
class Staged:
    """A hidden directory for files that are to appear together.

    directory  its name below theirs
    names      of each file in it (``directory/part``), and the one it is to get
    """

    directory: str
    names: dict[str, str] = field(default_factory=dict)


@contextmanager
def together(files: Files, is_own: Callable[[str], bool]) -> Iterator[Staged]:
    """Have files of a directory appear all at once when the block ends well, else none.

    The directory is made if it is not there. Earlier files of its own go, ``_SUCCESS`` comes last.
    """
    staged, new = Staged(f".{os.getpid()}.tmp"), not files.exists()
    try:
        files.make(staged.directory)
        yield staged
        with faults_named(files.uri.removeprefix("file:")):
            files.remove(SUCCESS)
            earlier = {entry.name for entry in files.entries() if is_own(entry.name)}
            files.move_all(staged.names)
            for name in earlier - set(staged.names.values()):
                files.remove(name)
            files.write(SUCCESS, b"")
    finally:
        sweep(files, staged.directory)
        if new and not files.entries():
            sweep(files, "")


def sweep(files: Files, name: str) -> None:
    """Remove a directory; to be called in ``finally``.

    While an error is on its way, the tasks of a job that was given up may still add to the
    directory, so it has to stay away: for tenths of a second, or for seconds after an interrupt,
    which Spark may still be carrying out.
    """
    error = sys.exc_info()[0]
    away, needed = 0, 1 if error is None else 4 if issubclass(error, Exception) else 30
    for _ in range(100):
        with suppress(OSError):
            files.remove(name)
            away = 0 if files.exists(name) else away + 1
        if away == needed:
            return
        sleep(0.1)


@contextmanager
def whole(file: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes appear as ``file`` when the block ends well, else nowhere."""
    place = hidden(file)
    try:
        with synced(place) as stream:
            yield stream
        place.replace(file)
    finally:
        place.unlink(missing_ok=True)
    _sync_named(file.parent)


@contextmanager
def whole_directory(directory: Path) -> Iterator[Path]:
    """A hidden directory that gets the name of ``directory`` when the block ends well, else goes.

    ``directory`` is new, or empty.
    """
    place = hidden(directory)
    try:
        with faults_named(directory):
            place.mkdir(parents=True)
            yield place
            place.rename(directory)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    _sync_named(directory.parent)


@contextmanager
def synced(file: Path) -> Iterator[BinaryIO]:
    """A new file, on the disk when the block ends well."""
    with file.open("wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def faults_named(target: str | Path) -> Iterator[None]:
    """A fault of the disk or of Arrow names what could not be written."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, SourceError | BrokenPipeError):  # a reader may go away
            raise
        fault = str(error).strip().split("\n", maxsplit=1)[0]
        raise SourceError(f"cannot write {target}: {fault}") from error


def hidden(file: Path) -> Path:
    """Where a file is written until it is whole."""
    return file.with_name(f".{file.name}.{os.getpid()}.tmp")


def _sync_named(path: Path) -> None:
    """So that a new name survives a crash too; not every system lets a directory be opened."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
