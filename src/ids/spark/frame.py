"""A Spark table as IDS sees it: every column under a number and in one of four kinds.

Columns are called ``c0``, ``c1``, … from here on, and whatever we add ``ids_…``. So no name of the
user's can clash with ours, and names that differ only in case stay apart in any session. Beside
them is where a row was in the input (``ids_origin``), which orders rows whose ORDER BY columns are
equal; and a watermark that a streaming DataFrame brings along is known: its delay is the lateness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.errors import AnalysisException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_type

from ids.errors import ScriptError
from ids.exact import Program
from ids.model import Misread, unused
from ids.plan import Schema, SelectPlan, just_text
from ids.source import REPEATED, article
from ids.spark.typed_column import UNFIT, Typed, typed_value, unfit_of

ORIGIN = "ids_origin"
LATER = "CAST(NULL AS BIGINT)"  # Spark counts no rows on a stream
DELAY = "spark.watermarkDelayMs"  # where Spark itself notes it, in the metadata of the column

_MARK = "ids"
_PLACE = "monotonically_increasing_id()"


@dataclass(frozen=True, slots=True)
class Frame:
    """A table's rows, the columns IDS reads of it, and why it does not read the others.

    data         columns ``c0``, ``c1``, … and those that our own sources add (``ids_origin``)
    columns      by the names that users know, as SQL over ``data``
    unsupported  by the names that users know
    watermarks   the columns that a stream's user has put a watermark on, and its delay in ms
    misread      tells of a column of text what it seems to have been meant for
    """

    data: DataFrame
    columns: dict[str, Typed]
    unsupported: dict[str, str]
    watermarks: dict[str, int] = field(default_factory=dict)
    misread: Callable[[str], Misread | None] = just_text

    @classmethod
    def of(cls, data: DataFrame) -> Frame:
        """Take a DataFrame by its schema; no job runs."""
        columns: dict[str, Typed] = {}
        unsupported: dict[str, str] = {}
        taken: dict[str, Column] = {}
        unfit: dict[str, str] = {}
        fields = data.schema.fields
        repeated = {name for name, times in Counter(f.name for f in fields).items() if times > 1}
        for number, given in enumerate(fields):
            name, mark = numbered(number), mark_of(given)
            typed = typed_value(name, given.dataType)
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
        """The same rows, each with its origin: where it was in the input."""
        return replace(self, data=with_origin(self.data))

    @property
    def schema(self) -> Schema:
        """What a plan needs to know; a column of Spark's VOID holds nothing."""
        kinds = {name: typed.kind for name, typed in self.columns.items()}
        return Schema(kinds, self.unsupported, self.misread)


def numbered(number: int) -> str:
    """The column that is number ``number`` of a table's own."""
    return f"c{number}"


def by_number(data: DataFrame) -> DataFrame:
    """The columns under numbers: some sessions take names that differ only in case for the same."""
    return data.toDF(*map(numbered, range(len(data.columns))))


def applied(data: DataFrame, program: Program) -> DataFrame:
    """The named intermediates of a program as columns."""
    for stage in program.stages():
        data = data.selectExpr("*", *(f"{text} AS {name}" for name, text in stage))
    return data


def _described(type_: T.DataType) -> str:
    """A type IDS does not read, in the words of the in-process reader where it has them."""
    try:
        return article(str(to_arrow_type(type_)))
    except PySparkException:
        return article(type_.simpleString())


def beside(columns: Collection[str], column: Column, name: str) -> Column:
    """A column of ours for a table that has ``columns``.

    It is called ``name`` if no column is, and known by its metadata whatever it is called.
    """
    return column.alias(unused(name, columns), metadata={_MARK: name})


def mark_of(field: T.StructField) -> str | None:
    """Which column of ours this is; None for one of the table's own."""
    mark: str | None = field.metadata.get(_MARK)
    return mark


def with_origin(df: DataFrame) -> DataFrame:
    """``df`` and a column ``ids_origin``, ascending in the order of the input.

    A struct of three: the file, where in it the task began to read, and the row's place in the
    task (``read`` has put it there already; Kafka has topic, partition and offset). Any other
    DataFrame counts its rows partition by partition. A stream leaves the place open where only
    counting would tell it: ask again for the micro-batch, before anything moves its rows.
    """
    if ORIGIN in df.columns:
        origin = df.schema[ORIGIN].dataType
        if df.isStreaming or not (isinstance(origin, T.StructType) and origin["row"].nullable):
            return df
        row = f"coalesce({ORIGIN}.row, {_PLACE})"
        return df.withColumn(ORIGIN, F.expr(_origin(f"{ORIGIN}.file", f"{ORIGIN}.start", row)))
    file = _file_of(df) or [F.lit("").alias("file"), F.expr("0L").alias("start")]
    place = F.expr(LATER if df.isStreaming else _PLACE).alias("row")
    return df.withColumn(ORIGIN, F.struct(*file, place))


def name_origin(*, encoded: bool, place: str | None = None) -> str:
    """The origin of a row of one of the files of a directory, as SQL.

    A task reads its share of a file in one go, so within (file, start) the counter ascends; a
    ``place`` says where the row is if not the counter. ``encoded`` where a name may hold what
    Spark writes as ``%20``, which sorts elsewhere.
    """
    name = "_metadata.file_name"
    decoded = f"url_decode(replace({name}, '+', '%2B'))" if encoded else name
    return _origin(decoded, "_metadata.file_block_start", place or _PLACE)


def _origin(file: str, start: str, row: str) -> str:
    return f"named_struct('file', {file}, 'start', {start}, 'row', {row})"


def _file_of(df: DataFrame) -> list[Column] | None:
    """The file of a row and where the task began in it; None if rows come from no files."""
    # over Spark Connect the refusal of a column is logged, where it is no fault
    log = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    was, log.disabled = log.disabled, True
    try:
        # asked for as metadata, since a table may have a column of that name
        file = df.metadataColumn("_metadata")
        found = [file["file_path"].alias("file"), file["file_block_start"].alias("start")]
        types = [type_ for _, type_ in df.select(*found).dtypes]
    except AnalysisException:
        return None
    finally:
        log.disabled = was
    return found if types == ["string", "bigint"] else None


def _watermarks(data: DataFrame) -> dict[str, int]:
    """The columns of a DataFrame that have a watermark, and the delay of each in milliseconds.

    The empty name stands for one whose column was dropped or changed since.
    """
    fields = data.schema.fields
    found = {field.name: int(field.metadata[DELAY]) for field in fields if DELAY in field.metadata}
    if found or not data.isStreaming or not hasattr(data, "_jdf"):
        return found
    return {"": 0} if _has_watermark(data._jdf.queryExecution().analyzed()) else {}


def _has_watermark(plan: Any) -> bool:
    """Whether a plan of Spark's holds a watermark anywhere."""
    children = plan.children()
    return plan.nodeName() == "EventTimeWatermark" or any(
        _has_watermark(children.apply(number)) for number in range(children.size())
    )


def lateness_of(plan: SelectPlan, frame: Frame, asked: int | None) -> int:
    """By how much a row may be late, µs: as asked, or else as the table's own watermark says."""
    if not frame.watermarks:
        return asked or 0
    column = plan.order_by[0]
    if column not in frame.watermarks:
        others = " and ".join(repr(name) for name in frame.watermarks if name)
        place = f"on {others}" if others else "on a column that was dropped or changed since"
        raise ScriptError(
            f"the watermark of {plan.table!r} is {place}, its window is ordered by {column!r}",
            hint="put withWatermark on the column of ORDER BY, or leave it out and give a lateness",
        )
    if asked is not None:
        raise ScriptError(
            f"table {plan.table!r} has a watermark of its own, and lateness is given as well",
            hint="leave out either",
        )
    return frame.watermarks[column] * 1_000
