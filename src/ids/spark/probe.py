"""A probe of local paths: whether the driver and the workers of a cluster see the same files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from ids.errors import SetupError
from ids.model.place import is_remote, local_path
from ids.sink.files import LocalFiles, sweep
from ids.source.folder import FilePath
from ids.spark.failures import translate, unshared
from ids.spark.files import literal, uri_of
from ids.spark.master import is_local

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_seen", "check_shared", "is_on_cluster"]

_TASKS = 8  # where the session does not tell how many run at once


def is_on_cluster(session: SparkSession) -> bool:
    """Whether tasks may run on other machines than this one."""
    try:
        return not is_local(str(session.sparkContext.master))
    except PySparkException:  # Spark Connect does not tell
        return True


def check_shared(session: SparkSession, *places: str | Path | None) -> None:
    """Refuse a local place to write to that the workers do not see as the driver does.

    The driver writes a file for every task that runs at once, and each task reads one; only where
    all succeed tasks write files, too, and the driver reads them. So nothing is left on a worker's
    own disk. Of a place that is still to be made, the directory above it is probed.
    """
    if not is_on_cluster(session):
        return
    for place in places:
        if place is not None and not is_remote(place):
            _probe(session, place)


def check_seen(session: SparkSession, files: Sequence[FilePath]) -> None:
    """Refuse local files of a table that the workers do not see: one of them reads the smallest."""
    local = [file for file in files if isinstance(file, Path)]
    if not local or not is_on_cluster(session):
        return
    smallest = min(local, key=lambda file: file.stat().st_size)
    with _refusing(smallest):
        session.read.text(literal(uri_of(smallest))).selectExpr("length(value)").limit(1).collect()


@contextmanager
def _refusing(place: str | Path) -> Iterator[None]:
    """A job that fails on the files of ``place`` is one on workers that do not share them."""
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
        with _refusing(place):
            shared = _shared(session, files, name)
    finally:
        sweep(files, name)
    if not shared:
        raise unshared(place)


def _shared(session: SparkSession, files: LocalFiles, name: str) -> bool:
    tasks, ours, theirs = _tasks(session), f"{name}/driver", f"{name}/workers"
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


def _tasks(session: SparkSession) -> int:
    try:
        return max(1, int(session.sparkContext.defaultParallelism))
    except PySparkException:
        return _TASKS
