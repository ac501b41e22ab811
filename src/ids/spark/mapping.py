"""Arrow columns through a function of ours, partition by partition, in a Python that has IDS.

On a local master that is this Python, whatever ``python3`` is on PATH. Elsewhere the workers have
a Python of their own, which is asked once a session whether it has this version of IDS.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import ids
from ids.spark.failures import translated, unfit_workers
from ids.spark.master import is_local

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["check_workers", "mapped"]

Batches = Iterator[pa.RecordBatch]
Function = Callable[[Batches], Batches]

_PACKAGE = "ids-engine"
_CHANGING = Lock()  # held while a context names another Python than its own
_CHECKED: set[str] = set()  # sessions whose workers have this IDS


def mapped(data: DataFrame, function: Function, schema: StructType | str) -> DataFrame:
    """``data.mapInArrow`` with a function that uses IDS."""
    context = _local_context(data.sparkSession)
    if context is None:
        check_workers(data.sparkSession)
        return data.mapInArrow(function, schema)
    with _CHANGING, _this_python(context):
        return data.mapInArrow(function, schema)


def check_workers(session: SparkSession) -> None:
    """Refuse workers whose Python has no IDS, or another version; one small job a session."""
    if _local_context(session) is not None:
        return
    name = getattr(session, "session_id", None) or session.sparkContext.applicationId
    if name in _CHECKED:
        return
    package = _PACKAGE

    def answer(_: Batches) -> Batches:
        # a function inside a function is sent as code, so that it takes no IDS to read it
        from importlib.metadata import PackageNotFoundError, version

        import ids.spark.replaying  # noqa: F401

        try:
            found = version(package)
        except PackageNotFoundError:
            found = ""
        yield pa.RecordBatch.from_pydict({"version": [found]})

    with translated():
        found = session.range(0, 1, 1, 1).mapInArrow(answer, "version string").first()
    assert found is not None
    theirs, ours = found[0], _installed()
    if theirs and ours and theirs != ours:
        raise unfit_workers(f"has IDS {theirs}, this one {ours}")
    _CHECKED.add(name)


def _local_context(session: SparkSession) -> SparkContext | None:
    """The context of a session with a local master; None for any other, and over Spark Connect."""
    try:
        context = session.sparkContext
    except PySparkException:
        return None
    return context if is_local(str(context.master)) else None


@contextmanager
def _this_python(context: SparkContext) -> Iterator[None]:
    """While inside, functions are made for this Python and its IDS; then all is as before."""
    python, environment = context.pythonExec, context.environment
    paths = [str(Path(ids.__file__).parents[1]), environment.get("PYTHONPATH", "")]
    context.pythonExec = sys.executable
    context.environment = environment | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    try:
        yield
    finally:
        context.pythonExec, context.environment = python, environment


def _installed() -> str:
    """The version of this IDS; nothing where it is no installed package."""
    try:
        return version(_PACKAGE)
    except PackageNotFoundError:
        return ""
