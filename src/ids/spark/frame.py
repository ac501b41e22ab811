"""Prepare a DataFrame for IDS: number its columns, add row origins, and find its watermark.

Columns are renamed ``c0``, ``c1``, …, and columns that IDS adds start with ``ids_``. This way, the
user's column names never clash with ours, and names that differ only in case stay distinct in any
session. ``ids_origin`` is the position of a row in the input; it orders rows whose ORDER BY columns
are equal. If a streaming DataFrame already has a watermark, its delay is used as the lateness.

``mapped`` runs a function over Arrow batches in the Python workers. With a local master, the
workers use the current Python interpreter, even if another ``python3`` comes first on PATH. On a
cluster, the workers use their own Python, and one job per session checks that it has the same
version of IDS.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

import ids
from ids.errors import ScriptError
from ids.exact import Program
from ids.model import Misread, unused
from ids.plan import Schema, SelectPlan, just_text
from ids.source import REPEATED, article
from ids.spark.expression_sql import UNFIT, Typed, typed_value, unfit_of
from ids.spark.failures import translated, unfit_workers
from ids.spark.session import local_context

if TYPE_CHECKING:
    from pyspark import SparkContext

Batches = Iterator[pa.RecordBatch]

ORIGIN = "ids_origin"
LATER = "CAST(NULL AS BIGINT)"  # placeholder for the row number, unavailable on a stream
DELAY = "spark.watermarkDelayMs"  # Spark's own key in the metadata of a column

_MARK = "ids"
_ROW_NUMBER = "monotonically_increasing_id()"
_PACKAGE = "ids-engine"
_BATCH = 2**16  # rows per Arrow batch
_CHANGING = Lock()  # held while a context's Python settings are replaced
_CHECKED: set[str] = set()  # sessions whose workers have this version of IDS


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of a table, with the columns that IDS can and cannot read.

    data         columns ``c0``, ``c1``, … and those that IDS adds on reading (``ids_origin``)
    columns      the SQL of each of the user's columns, by name
    unsupported  why a column cannot be read, by the user's column name
    watermarks   the delay in ms of each watermark that the user has set, by column name
    misread      returns the type that a text column was probably meant to have
    """

    data: DataFrame
    columns: dict[str, Typed]
    unsupported: dict[str, str]
    watermarks: dict[str, int] = field(default_factory=dict)
    misread: Callable[[str], Misread | None] = just_text

    @classmethod
    def of(cls, data: DataFrame) -> Frame:
        """Build a frame from a DataFrame's schema, without running a job."""
        columns: dict[str, Typed] = {}
        unsupported: dict[str, str] = {}
        taken: dict[str, Column] = {}
        unfit: dict[str, str] = {}
        fields = data.schema.fields
        repeated = {name for name, times in Counter(f.name for f in fields).items() if times > 1}
        for number, given in enumerate(fields):
            name, mark = numbered(number), mark_of(given)
            typed = typed_value(name, given.dataType.simpleString())
            if mark is not None and mark.startswith(UNFIT):
                unfit[mark.removeprefix(UNFIT)] = name
            elif mark is not None:
                taken.setdefault(mark, F.col(name).alias(mark))
            elif given.name in repeated:
                unsupported[given.name] = REPEATED
            elif typed is None:
                unsupported[given.name] = _described(given.dataType)
            else:
                columns[given.name] = replace(typed, text=name)
                taken[name] = F.expr(typed.text).alias(name)
        for own, name in unfit.items():
            reason = unfit_of(columns[own])
            taken[reason] = F.col(name).alias(reason)
        rows = by_number(data).select(*taken.values())
        return cls(rows, columns, unsupported, _watermarks(data))

    def placed(self) -> Frame:
        """Add ``ids_origin`` to the rows."""
        return replace(self, data=with_origin(self.data))

    @property
    def schema(self) -> Schema:
        """The schema for the planner; a VOID column has no kind."""
        kinds = {name: typed.kind for name, typed in self.columns.items()}
        return Schema(kinds, self.unsupported, self.misread)


def numbered(number: int) -> str:
    """Return the name of the table's column ``number``."""
    return f"c{number}"


def by_number(data: DataFrame) -> DataFrame:
    """Rename the columns to ``c0``, ``c1``, …, because some sessions ignore the case of names."""
    return data.toDF(*map(numbered, range(len(data.columns))))


def applied(data: DataFrame, program: Program) -> DataFrame:
    """Add the intermediate results of a program as columns."""
    for stage in program.stages():
        data = data.selectExpr("*", *(f"{text} AS {name}" for name, text in stage))
    return data


def _described(type_: T.DataType) -> str:
    """Return the description of an unsupported type, if possible that of the in-process reader."""
    try:
        return article(str(to_arrow_type(type_)))
    except PySparkException:
        return article(type_.simpleString())


def added_column(columns: Collection[str], sql: str, name: str) -> Column:
    """Return a column that IDS adds to a table with ``columns``.

    The column is identified by its metadata. Its name is ``name`` unless the table already has a
    column with that name.
    """
    return F.expr(sql).alias(unused(name, columns), metadata={_MARK: name})


def mark_of(field: T.StructField) -> str | None:
    """Return the ``name`` passed to ``added_column``; None for the table's own columns."""
    mark: str | None = field.metadata.get(_MARK)
    return mark


def with_origin(df: DataFrame) -> DataFrame:
    """Add ``ids_origin``, which increases in the order of the input.

    It is a struct of the file, the offset at which the task started to read the file, and the row's
    number in the task. For Kafka, it contains the topic, partition and offset. DataFrames from
    ``read`` already have this column. Rows of DataFrames without files are numbered partition by
    partition. On a stream, the row number may be NULL; then call this again on the micro-batch,
    before its rows are shuffled.
    """
    if ORIGIN in df.columns:
        origin = df.schema[ORIGIN].dataType
        if df.isStreaming or not (isinstance(origin, T.StructType) and origin["row"].nullable):
            return df
        row = f"coalesce({ORIGIN}.row, {_ROW_NUMBER})"
        return df.withColumn(ORIGIN, F.expr(_origin(f"{ORIGIN}.file", f"{ORIGIN}.start", row)))
    file = _file_of(df) or [F.lit("").alias("file"), F.expr("0L").alias("start")]
    row_number = F.expr(LATER if df.isStreaming else _ROW_NUMBER).alias("row")
    return df.withColumn(ORIGIN, F.struct(*file, row_number))


def name_origin(*, encoded: bool, row: str | None = None) -> str:
    """Return the SQL for the origin of a row that is read from a file.

    A task reads its part of a file in order, so within (file, start) Spark's row counter increases.
    ``row`` is SQL to use instead of the counter. Set ``encoded`` if Spark may report encoded file
    names (a space as ``%20``), which sort differently.
    """
    name = "_metadata.file_name"
    decoded = f"url_decode(replace({name}, '+', '%2B'))" if encoded else name
    return _origin(decoded, "_metadata.file_block_start", row or _ROW_NUMBER)


def _origin(file: str, start: str, row: str) -> str:
    return f"named_struct('file', {file}, 'start', {start}, 'row', {row})"


def _file_of(df: DataFrame) -> list[Column] | None:
    """Return columns for a row's file and the task's start offset; None if there are no files."""
    # Spark Connect logs a missing column as an error, but here it is expected
    log = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    was, log.disabled = log.disabled, True
    try:
        # metadataColumn works even if the table has its own column called _metadata
        file = df.metadataColumn("_metadata")
        found = [file["file_path"].alias("file"), file["file_block_start"].alias("start")]
        types = [type_ for _, type_ in df.select(*found).dtypes]
    except AnalysisException:
        return None
    finally:
        log.disabled = was
    return found if types == ["string", "bigint"] else None


def _watermarks(data: DataFrame) -> dict[str, int]:
    """Return the columns with a watermark, and the delay of each in milliseconds.

    An empty name stands for a column that was dropped or changed after ``withWatermark``.
    """
    fields = data.schema.fields
    found = {field.name: int(field.metadata[DELAY]) for field in fields if DELAY in field.metadata}
    if found or not data.isStreaming or not hasattr(data, "_jdf"):
        return found
    return {"": 0} if _has_watermark(data._jdf.queryExecution().analyzed()) else {}


def _has_watermark(plan: Any) -> bool:
    """Return whether a logical plan of Spark contains a watermark."""
    children = plan.children()
    return plan.nodeName() == "EventTimeWatermark" or any(
        _has_watermark(children.apply(number)) for number in range(children.size())
    )


def lateness_of(plan: SelectPlan, frame: Frame, asked: int | None) -> int:
    """Return how late a row may be, in µs: ``asked``, or the delay of the table's watermark."""
    if not frame.watermarks:
        return asked or 0
    column = plan.order_by[0]
    if column not in frame.watermarks:
        others = " and ".join(repr(name) for name in frame.watermarks if name)
        marked = f"on {others}" if others else "on a column that was dropped or changed since"
        raise ScriptError(
            f"the watermark of {plan.table!r} is {marked}, but its window is ordered by {column!r}",
            hint="put withWatermark on the column of ORDER BY, or leave it out and set lateness",
        )
    if asked is not None:
        raise ScriptError(
            f"table {plan.table!r} already has a watermark, and lateness is set as well",
            hint="remove one of them",
        )
    return frame.watermarks[column] * 1_000


def mapped(
    data: DataFrame, function: Callable[[Batches], Batches], schema: T.StructType | str
) -> DataFrame:
    """Call ``data.mapInArrow`` with a function that uses IDS."""
    context = local_context(data.sparkSession)
    if context is None:
        check_workers(data.sparkSession)
        return data.mapInArrow(function, schema)
    with _CHANGING, _this_python(context):
        return data.mapInArrow(function, schema)


def whole_partition(batches: Batches, work: Callable[[pa.Table], pa.Table]) -> Batches:
    """Apply ``work`` to all rows of a partition as one table, unless the partition is empty."""
    held = [batch for batch in batches if batch.num_rows]
    if held:
        table = work(pa.Table.from_batches(held).combine_chunks())
        yield from table.to_batches(max_chunksize=_BATCH)


def check_workers(session: SparkSession) -> None:
    """Raise SetupError if the workers lack IDS or have another version of it.

    This runs one job per session.
    """
    if local_context(session) is not None:
        return
    name = getattr(session, "session_id", None) or session.sparkContext.applicationId
    if name in _CHECKED:
        return
    package = _PACKAGE

    def answer(_: Batches) -> Batches:
        # a nested function is pickled by value, so workers without IDS can load it
        from importlib.metadata import PackageNotFoundError, version

        import ids.spark.count_windows  # noqa: F401

        try:
            found = version(package)
        except PackageNotFoundError:  # not an installed package
            found = ""
        yield pa.RecordBatch.from_pydict({"version": [found]})

    with translated():
        found = session.range(0, 1, 1, 1).mapInArrow(answer, "version string").first()
    assert found is not None
    theirs, ours = found[0], _installed()
    if theirs and ours and theirs != ours:
        raise unfit_workers(f"has IDS {theirs}, this one has {ours}")
    _CHECKED.add(name)


@contextmanager
def _this_python(context: SparkContext) -> Iterator[None]:
    """Within the block, create Spark functions that run with this Python and its version of IDS."""
    python, environment = context.pythonExec, context.environment
    paths = [str(Path(ids.__file__).parents[1]), environment.get("PYTHONPATH", "")]
    context.pythonExec = sys.executable
    context.environment = environment | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    try:
        yield
    finally:
        context.pythonExec, context.environment = python, environment


def _installed() -> str:
    """Return the installed version of IDS, or '' if the package is not installed."""
    try:
        return version(_PACKAGE)
    except PackageNotFoundError:
        return ""
