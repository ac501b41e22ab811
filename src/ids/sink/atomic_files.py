"""Atomic writes: a file, or all files of a directory, appear complete or not at all."""

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

from ids.errors import IdsError, SinkError

SUCCESS = "_SUCCESS"


class Entry(NamedTuple):
    """A file or directory, by its name in its parent directory."""

    name: str
    bytes: int
    is_directory: bool


class Readable(Protocol):
    """Read access to the files below one directory; names are relative to it, with ``/``.

    uri  the URI of the directory, for Spark
    """

    uri: str

    def read(self, name: str) -> bytes:
        """Read a file; raises FileNotFoundError if it does not exist."""
        ...

    def entries(self, name: str = "") -> list[Entry]:
        """List a directory, sorted by name; empty if it does not exist."""
        ...


class Files(Readable, Protocol):
    """Read and write access to the files below one directory."""

    def open(self, name: str) -> BinaryIO:
        """Open a seekable file for reading; raises FileNotFoundError if it does not exist."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a small file, replacing an existing one; it survives a crash."""
        ...

    def put(self, file: Path, name: str) -> None:
        """Copy a local file; a failure may leave a partial copy."""
        ...

    def exists(self, name: str = "") -> bool:
        """Return whether the file or directory exists."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, or a directory with its contents; does nothing if it does not exist."""
        ...

    def move(self, name: str, to: str) -> None:
        """Rename a file, replacing an existing one; it survives a crash."""
        ...

    def move_all(self, names: Mapping[str, str]) -> None:
        """Rename several files."""
        ...

    def make(self, name: str = "") -> None:
        """Create a directory and its parents."""
        ...


class LocalFiles:
    """The files below a local directory."""

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
        """Flush the files of a directory to disk."""
        directory = self.path / name
        for path in (*directory.iterdir(), directory, directory.parent):
            _sync_named(path)


@dataclass(frozen=True, slots=True)
class Staged:
    """A hidden directory for files that will appear together.

    directory  its name below the target directory
    names      the name of each file in it (``directory/part``) → its final name
    """

    directory: str
    names: dict[str, str] = field(default_factory=dict)


@contextmanager
def together(files: Files, is_own: Callable[[str], bool]) -> Iterator[Staged]:
    """Publish files of a directory together if the block succeeds; publish none if it fails.

    Creates the directory if needed. Removes earlier files that are ``is_own``, and writes
    ``_SUCCESS`` last.
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
    """Remove a directory; call it in ``finally``.

    After an error, tasks of the cancelled job may still add files to the directory. So this repeats
    until the directory stays away: for tenths of a second after an error, or for seconds after an
    interrupt, since Spark needs that long to cancel the tasks.
    """
    error = sys.exc_info()[0]
    absent, needed = 0, 1 if error is None else 4 if issubclass(error, Exception) else 30
    for _ in range(100):
        with suppress(OSError):
            files.remove(name)
            absent = 0 if files.exists(name) else absent + 1
        if absent == needed:
            return
        sleep(0.1)


@contextmanager
def whole(file: Path) -> Iterator[BinaryIO]:
    """Open a stream that becomes ``file`` if the block succeeds; a failure leaves nothing."""
    temporary = hidden(file)
    try:
        with synced(temporary) as stream:
            yield stream
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_named(file.parent)


@contextmanager
def whole_directory(directory: Path) -> Iterator[Path]:
    """Yield a hidden directory that becomes ``directory`` if the block succeeds; else remove it.

    ``directory`` must not exist, or be empty.
    """
    temporary = hidden(directory)
    try:
        with faults_named(directory):
            temporary.mkdir(parents=True)
            yield temporary
            temporary.rename(directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    _sync_named(directory.parent)


@contextmanager
def synced(file: Path) -> Iterator[BinaryIO]:
    """Open a new file that is flushed to disk if the block succeeds."""
    with file.open("wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


@contextmanager
def faults_named(target: str | Path) -> Iterator[None]:
    """Convert an OSError or an Arrow error to a SinkError that names ``target``."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, IdsError | BrokenPipeError):  # the reader of a pipe may close it
            raise
        fault = str(error).strip().split("\n", maxsplit=1)[0]
        raise SinkError(f"cannot write {target}: {fault}") from error


def hidden(file: Path) -> Path:
    """Return the temporary name under which a file is written."""
    return file.with_name(f".{file.name}.{os.getpid()}.tmp")


def _sync_named(path: Path) -> None:
    """Flush a path, so that a new name survives a crash; only POSIX can open directories."""
    if os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
