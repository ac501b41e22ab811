"""Access files from the driver, on any file system that Spark supports.

Local directories are accessed directly, so that they can be read before Java starts. Remote ones
(``s3a://``, ``hdfs://``, ``abfss://``, ``viewfs://``) are accessed through Hadoop's file system
API, which Spark uses as well. On a cluster, a small job checks that the driver and the workers
share local files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import SEEK_CUR, SEEK_END, RawIOBase
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from pyarrow import fs

from ids.errors import SetupError, SourceError
from ids.model import is_remote, local_path
from ids.sink import Entry, Files, LocalFiles, Readable, sweep
from ids.source import FilePath, at_once
from ids.spark.failures import translate, unshared
from ids.spark.session import context_of, local_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# no ``_SUCCESS`` file, for writers that mark the files as complete in another way
UNMARKED = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}

_ARROW = {name: name for name in ("s3", "hdfs", "gs", "abfs", "abfss")} | {"s3a": "s3"}
_CHUNK = 1 << 23  # bytes per read from Java
_TASKS = 8  # number of tasks in the check if the session does not expose its parallelism


def literal(uri: str) -> str:
    """Escape a URI for Spark's readers, which treat paths as glob patterns."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", uri)


def files_at(place: str | Path, session: SparkSession | None = None) -> Files:
    """Return access to a directory, which may not exist yet; a remote one requires a session."""
    if not is_remote(place):
        return LocalFiles(local_path(place).absolute())
    return HadoopFiles(_classic(place, session), str(place).rstrip("/"))


def readable_at(place: str | Path) -> Readable | None:
    """Return read access to a directory without Spark; None if only Spark can access it."""
    if not is_remote(place):
        return LocalFiles(local_path(place).absolute())
    uri = str(place).rstrip("/")
    scheme, rest = uri.split(":", 1)
    if scheme.lower() not in _ARROW:
        return None
    try:
        system, root = fs.FileSystem.from_uri(f"{_ARROW[scheme.lower()]}:{rest}")
    except (OSError, ValueError, NotImplementedError):
        # pyarrow was built without this file system, or cannot find its library or address. The
        # caller then tries Spark, whose error explains the problem.
        return None
    return ArrowFiles(uri, system, root)


class ArrowFiles:
    """A directory on a file system that pyarrow can read."""

    def __init__(self, uri: str, system: fs.FileSystem, root: str) -> None:
        self.uri, self._system, self._root = uri, system, root.rstrip("/")

    def read(self, name: str) -> bytes:
        with self._system.open_input_stream(f"{self._root}/{name}") as stream:
            return bytes(stream.read())

    def entries(self, name: str = "") -> list[Entry]:
        place = f"{self._root}/{name}".rstrip("/")
        found = self._system.get_file_info(fs.FileSelector(place, allow_not_found=True))
        directory = fs.FileType.Directory
        return sorted(Entry(i.base_name, i.size or 0, i.type == directory) for i in found)


def path_at(place: str | Path, session: SparkSession | None = None) -> FilePath:
    """Return the path of a file or directory to read; a remote one requires a session."""
    if not is_remote(place):
        return local_path(place)
    classic = _classic(place, session)
    with _access(place):
        path = _java_path(classic, str(place))
        return RemotePath(path.getFileSystem(_configuration(classic)), path, str(place).rstrip("/"))


def uri_of(path: FilePath) -> str:
    """Return the URI of a path; without ``file:``, Spark might use another file system."""
    return f"file:{path.absolute()}" if isinstance(path, Path) else str(path)


def _classic(place: object, session: SparkSession | None) -> SparkSession:
    if session is None:
        raise SetupError(f"reading {place} needs Spark; start a session first")
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise SetupError(
            f"cannot access {place} over Spark Connect; use a classic session, or pass the table "
            "as a DataFrame"
        )
    return session


def _configuration(session: SparkSession) -> Any:
    """Return the Hadoop configuration that the session's queries use."""
    return session._jsparkSession.sessionState().newHadoopConf()


def _java_path(session: SparkSession, uri: str) -> Any:
    jvm: Any = session._jvm
    return jvm.org.apache.hadoop.fs.Path(uri)


class HadoopFiles:
    """A directory on one of Hadoop's file systems, accessed through the driver's JVM."""

    def __init__(self, session: SparkSession, uri: str) -> None:
        self.uri, self._session = uri, session
        with _access(self.uri):
            self._system = self._path("").getFileSystem(_configuration(session))

    def open(self, name: str) -> BinaryIO:
        return _opened(self._system, self._path(name), f"{self.uri}/{name}")

    def read(self, name: str) -> bytes:
        with self.open(name) as stream:
            return stream.read()

    def write(self, name: str, content: bytes) -> None:
        with _access(self.uri):
            stream = self._system.create(self._path(name), True)
            stream.write(bytearray(content))
            stream.close()

    def put(self, file: Path, name: str) -> None:
        with _access(self.uri):
            local = _java_path(self._session, f"file:{file}")
            self._system.copyFromLocalFile(False, True, local, self._path(name))

    def exists(self, name: str = "") -> bool:
        with _access(self.uri):
            return bool(self._system.exists(self._path(name)))

    def entries(self, name: str = "") -> list[Entry]:
        try:
            with _access(self.uri):
                found = self._system.listStatus(self._path(name))
        except FileNotFoundError:
            return []
        return sorted(Entry(s.getPath().getName(), s.getLen(), s.isDirectory()) for s in found)

    def remove(self, name: str) -> None:
        with _access(self.uri):
            self._system.delete(self._path(name), True)

    def move(self, name: str, to: str) -> None:
        with _access(self.uri):
            self._system.delete(self._path(to), False)
            if not self._system.rename(self._path(name), self._path(to)):
                raise OSError(f"cannot rename {self.uri}/{name} to {to}")

    def move_all(self, names: Mapping[str, str]) -> None:
        at_once(lambda pair: self.move(*pair), names.items())

    def make(self, name: str = "") -> None:
        with _access(self.uri):
            self._system.mkdirs(self._path(name))

    def _path(self, name: str) -> Any:
        return _java_path(self._session, f"{self.uri}/{name}")


class RemotePath:
    """A path on one of Hadoop's file systems, with the ``pathlib`` methods that readers use."""

    def __init__(self, system: Any, path: Any, text: str, status: Any = None) -> None:
        self._system, self._path, self._text = system, path, text
        if status is not None:
            self._status = status

    def __str__(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and self._text == str(other)

    def __hash__(self) -> int:
        return hash(self._text)

    @property
    def name(self) -> str:
        return self._text.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    @property
    def parent(self) -> RemotePath:
        above = self._path.getParent()
        return RemotePath(self._system, above, str(above.toString())) if above else self

    @cached_property
    def _status(self) -> Any:
        with _access(self):
            return self._system.getFileStatus(self._path)

    def exists(self) -> bool:
        try:
            return self._status is not None
        except FileNotFoundError:
            return False

    def is_dir(self) -> bool:
        return self.exists() and bool(self._status.isDirectory())

    def is_file(self) -> bool:
        return self.exists() and not self._status.isDirectory()

    def iterdir(self) -> Iterator[RemotePath]:
        with _access(self):
            found = self._system.listStatus(self._path)
        for status in found:
            path = status.getPath()
            yield RemotePath(self._system, path, f"{self._text}/{path.getName()}", status)

    def stat(self) -> Stat:
        status = self._status
        return Stat(status.getLen(), status.getModificationTime() * 1_000_000)

    def open(self, mode: str = "rb") -> BinaryIO:  # noqa: ARG002
        return _opened(self._system, self._path, self)


class Stat(NamedTuple):
    """The fields of ``os.stat_result`` that readers use."""

    st_size: int
    st_mtime_ns: int


def _opened(system: Any, path: Any, place: object) -> BinaryIO:
    with _access(place):
        size = system.getFileStatus(path).getLen()
        return cast(BinaryIO, _Reading(system.open(path), size, place))


class _Reading(RawIOBase):
    """A seekable file that is read through Java.

    A read returns fewer bytes than requested only at the end of the file.
    """

    def __init__(self, stream: Any, size: int, place: object) -> None:
        self._stream, self._size, self._at, self._place = stream, size, 0, place

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + {SEEK_CUR: self._at, SEEK_END: self._size}.get(whence, 0)
        return self._at

    def readall(self) -> bytes:
        return self.read(self._size - self._at) or b""

    def readinto(self, buffer: Any) -> int:
        done, wanted = 0, min(len(buffer), self._size - self._at)
        with _access(self._place):
            self._stream.seek(self._at)
            while done < wanted:
                piece = self._stream.readNBytes(min(wanted - done, _CHUNK))
                if not piece:
                    break
                buffer[done : done + len(piece)] = piece
                done += len(piece)
        self._at += done
        return done

    def close(self) -> None:
        if not self.closed:
            with _access(self._place):
                self._stream.close()
        super().close()


@contextmanager
def _access(place: object) -> Iterator[None]:
    """Convert a Java file error to an IDS error, or to FileNotFoundError if a file is missing."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        java = error.java_exception
        name, text = java.getClass().getSimpleName(), java.getMessage() or ""
        message = text.split("\n", maxsplit=1)[0]
        if name == "FileNotFoundException":
            raise FileNotFoundError(message) from error
        if name == "UnsupportedFileSystemException" or "ClassNotFoundException" in message:
            raise SetupError(
                f"the session has no file system for {place}; set spark.jars.packages to a package "
                "that has it (org.apache.hadoop:hadoop-aws for s3a://)"
            ) from error
        raise SourceError(f"cannot access {place}: {name}: {message}") from error


def is_on_cluster(session: SparkSession) -> bool:
    """Return whether tasks may run on other machines."""
    return local_context(session) is None


def check_shared(session: SparkSession, *places: str | Path | None) -> None:
    """Raise SourceError if the workers and the driver do not share a local output directory.

    The driver writes one file per parallel task, and the tasks read these files. Only if that
    succeeds do the tasks write files, which the driver reads. In this order, no file is left behind
    on a worker's own disk. If a directory does not exist yet, its parent is tested.
    """
    if not is_on_cluster(session):
        return
    for place in places:
        if place is not None and not is_remote(place):
            _probe(session, place)


def check_seen(session: SparkSession, files: Sequence[FilePath]) -> None:
    """Raise SourceError if workers cannot read a table's local files, tested with the smallest."""
    local = [file for file in files if isinstance(file, Path)]
    if not local or not is_on_cluster(session):
        return
    smallest = min(local, key=lambda file: file.stat().st_size)
    with _probing(smallest):
        session.read.text(literal(uri_of(smallest))).selectExpr("length(value)").limit(1).collect()


@contextmanager
def _probing(place: str | Path) -> Iterator[None]:
    """If a job in the block fails, raise the error that the workers do not share ``place``."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        if isinstance(translate(error), SetupError):
            raise
        raise unshared(place) from error


def _probe(session: SparkSession, place: str | Path) -> None:
    path = Path(os.path.realpath(local_path(place)))
    while not path.is_dir():
        path = path.parent
    files, name = LocalFiles(path), f".ids-{token_hex(8)}"
    try:
        with _probing(place):
            shared = _shared(session, files, name)
    finally:
        sweep(files, name)
    if not shared:
        raise unshared(place)


def _shared(session: SparkSession, files: LocalFiles, name: str) -> bool:
    context, ours, theirs = context_of(session), f"{name}/driver", f"{name}/workers"
    tasks = _TASKS if context is None else max(1, int(context.defaultParallelism))
    files.make(ours)
    for number in range(tasks):
        (files.path / ours / f"{number:05}").write_text(name)
    read = session.read.text(literal(f"{files.uri}/{ours}")).collect()
    if [row[0] for row in read] != [name] * tasks:
        return False
    rows = session.range(0, tasks, 1, tasks).selectExpr(f"'{name}' AS value")
    rows.write.text(f"{files.uri}/{theirs}", compression="none")
    parts = [e.name for e in files.entries(theirs) if e.name.startswith("part-")]
    written = [files.read(f"{theirs}/{part}").decode().strip() for part in parts]
    return written == [name] * tasks
