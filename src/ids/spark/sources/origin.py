"""Where a row stood in the input: the order of tuples whose ORDER BY columns are equal."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ids.model.table import unused

__all__ = ["LATER", "ORIGIN", "beside", "mark_of", "name_origin", "with_origin"]

ORIGIN = "ids_origin"

_MARK = "ids"

_PLACE = "monotonically_increasing_id()"
LATER = "CAST(NULL AS BIGINT)"  # Spark counts no rows on a stream


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
        return _settled(df)
    file = _file_of(df) or [F.lit("").alias("file"), F.expr("0L").alias("start")]
    place = F.expr(LATER if df.isStreaming else _PLACE).alias("row")
    return df.withColumn(ORIGIN, F.struct(*file, place))


def name_origin(*, encoded: bool, place: str | None = None) -> str:
    """The origin of a row of one of the files of a directory, as SQL.

    A task reads its share of a file in one go, so within (file, start) the counter ascends; a
    ``place`` says where the row stands if not the counter. ``encoded`` where a name may hold what
    Spark writes as ``%20``, which sorts elsewhere.
    """
    name = "_metadata.file_name"
    decoded = f"url_decode(replace({name}, '+', '%2B'))" if encoded else name
    return _of_file(decoded, place or _PLACE)


def _of_file(name: str, place: str) -> str:
    return _struct(name, "_metadata.file_block_start", place)


def _struct(file: str, start: str, row: str) -> str:
    return f"named_struct('file', {file}, 'start', {start}, 'row', {row})"


def _settled(df: DataFrame) -> DataFrame:
    origin = df.schema[ORIGIN].dataType
    if df.isStreaming or not (isinstance(origin, T.StructType) and origin["row"].nullable):
        return df
    row = f"coalesce({ORIGIN}.row, {_PLACE})"
    return df.withColumn(ORIGIN, F.expr(_struct(f"{ORIGIN}.file", f"{ORIGIN}.start", row)))


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
