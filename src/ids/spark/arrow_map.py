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
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import ids
from ids.spark.failures import translated, unfit_workers
from ids.spark.spark_master import local_context

if TYPE_CHECKING:
    from pyspark import SparkContext

Batches = Iterator[pa.RecordBatch]

_PACKAGE = "ids-engine"
_BATCH = 2**16  # rows of an Arrow batch
_CHANGING = Lock()  # held while a context names another Python than its own
_CHECKED: set[str] = set()  # sessions whose workers have this IDS


def mapped(
    data: DataFrame, function: Callable[[Batches], Batches], schema: StructType | str
) -> DataFrame:
    """``data.mapInArrow`` with a function that uses IDS."""
    context = local_context(data.sparkSession)
    if context is None:
        check_workers(data.sparkSession)
        return data.mapInArrow(function, schema)
    with _CHANGING, _this_python(context):
        return data.mapInArrow(function, schema)


def whole_partition(batches: Batches, work: Callable[[pa.Table], pa.Table]) -> Batches:
    """What ``work`` makes of all rows of a partition; of none, nothing."""
    held = [batch for batch in batches if batch.num_rows]
    if held:
        table = work(pa.Table.from_batches(held).combine_chunks())
        yield from table.to_batches(max_chunksize=_BATCH)


def check_workers(session: SparkSession) -> None:
    """Refuse workers whose Python has no IDS, or another version; one small job a session."""
    if local_context(session) is not None:
        return
    name = getattr(session, "session_id", None) or session.sparkContext.applicationId
    if name in _CHECKED:
        return
    package = _PACKAGE

    def answer(_: Batches) -> Batches:
        # a function inside a function is sent as code, so that it takes no IDS to read it
        from importlib.metadata import PackageNotFoundError, version

        import ids.spark.count_windows  # noqa: F401

        try:
            found = version(package)
        except PackageNotFoundError:  # it is no installed package
            found = ""
        yield pa.RecordBatch.from_pydict({"version": [found]})

    with translated():
        found = session.range(0, 1, 1, 1).mapInArrow(answer, "version string").first()
    assert found is not None
    theirs, ours = found[0], _installed()
    if theirs and ours and theirs != ours:
        raise unfit_workers(f"has IDS {theirs}, this one {ours}")
    _CHECKED.add(name)


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
