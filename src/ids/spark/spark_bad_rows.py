"""Bad rows: raised as an error that names the first, or written to a directory with reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.errors import DataError, SinkError
from ids.model import Kind, unused
from ids.query import bad_row_error, file_stem, notes
from ids.sink import Files, Format
from ids.spark.expression_sql import Typed
from ids.spark.file_system import files_at
from ids.spark.frame import ORIGIN, Frame, numbered
from ids.spark.kafka_topic import MALFORMED
from ids.spark.spark_prepare import AHEAD, FAULT, Ready
from ids.spark.spark_write import arrow_schema, write, write_parts

_FILE = "ids_file"
_NUMBER = "ids_number"
_PIECE = (_FILE, "ids_start", "ids_piece")
_QUERY = "ids_query"
# monotonically_increasing_id has the number of the partition in bits 33 and up
_ORIGIN = (
    f"{ORIGIN}.file AS {_PIECE[0]}",
    f"{ORIGIN}.start AS {_PIECE[1]}",
    f"shiftright({ORIGIN}.row, 33) AS {_PIECE[2]}",
    f"{ORIGIN}.row AS ids_counter",
)
_NAMED = (
    f"concat('row ', {_NUMBER}, if({_FILE} = '', '', ' of '), substring_index({_FILE}, '/', -1))"
)


def refused(table: str, frame: Frame, rows: Ready) -> DataError:
    """Return the error for a table with bad rows; it names the first in the order of the input.

    Both ``frame`` and ``rows``, its prepared rows, must have ``ids_origin``.
    """
    bad = _placed(frame, rows).orderBy(_FILE, _NUMBER)
    first = bad.selectExpr(FAULT, _NAMED).first()
    assert first is not None
    return bad_row_error(first[0], table, first[1])


@dataclass(slots=True)
class BatchBadRows:
    """Writes a table's bad rows to ``DIR/TABLE.parquet``, with two more columns: which and why.

    The queries of a script share the file: it has every bad row once, with the reasons of all
    queries.
    """

    directory: str | Path
    table: str
    found: list[DataFrame] = field(default_factory=list)

    def keep(self, frame: Frame, rows: Ready) -> None:
        """Rewrite the file with the bad rows of this and all earlier queries."""
        values = [
            F.expr(_shown(typed)).alias(numbered(number))
            for number, typed in enumerate(rows.columns.values())
        ]
        query = F.lit(len(self.found)).alias(_QUERY)
        self.found.append(_placed(frame, rows).select(*values, _FILE, _NUMBER, FAULT, query))
        files = files_at(self.directory, frame.data.sparkSession)
        _make(files)
        every = reduce(DataFrame.unionAll, self.found)
        write(_once(every, list(rows.columns)), f"{files.uri}/{file_stem(self.table)}.parquet")


def _placed(frame: Frame, rows: Ready) -> DataFrame:
    """Return the bad rows, each with its file and its number in the file, starting at 1.

    Each task numbers the rows of its piece of a file consecutively. There are few pieces, so they
    are counted, and a row's number is its number in the piece plus the rows of earlier pieces.
    """
    bad = rows.data.filter(F.col(FAULT).isNotNull()).selectExpr("*", *_ORIGIN)
    pieces = frame.data.selectExpr(*_ORIGIN).groupBy(*_PIECE)
    first = F.expr("min(ids_counter)").alias("ids_0")
    counted = pieces.agg(F.expr("count(*)").alias("ids_n"), first)
    before = (
        f"coalesce(sum(ids_n) OVER (PARTITION BY {_FILE} ORDER BY {_PIECE[1]}, {_PIECE[2]} "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0L) AS ids_before"
    )
    offsets = counted.selectExpr(*_PIECE, "ids_0", before)
    number = F.expr("ids_before + ids_counter - ids_0 + 1L").alias(_NUMBER)
    return bad.join(F.broadcast(offsets), list(_PIECE)).select("*", number)


def _once(every: DataFrame, own: list[str]) -> DataFrame:
    """Merge duplicate rows, in the order of the input, with reasons in the order of queries."""
    reasons = f"array_sort(collect_list(named_struct('q', {_QUERY}, 'reason', {FAULT})))"
    joined = f"array_join(array_distinct({reasons}.reason), '; ')"
    values = [numbered(number) for number in range(len(own))]
    first = [F.first(name).alias(name) for name in values]
    rows = every.groupBy(_FILE, _NUMBER).agg(*first, F.expr(joined).alias("reasons"))
    ordered = rows.orderBy(_FILE, _NUMBER).select(*values, F.expr(_NAMED), "reasons")
    return ordered.toDF(*own, *notes(own))


def _make(directory: Files) -> None:
    """Create the directory for bad rows."""
    try:
        directory.make()
    except OSError as error:
        place, fault = directory.uri.removeprefix("file:"), error.strerror or str(error)
        raise SinkError(f"cannot create {place}: {fault}") from error


def _shown(typed: Typed) -> str:
    """Convert a column for writing: an instant becomes a timestamp."""
    if typed.kind is None:
        return f"cast({typed.text} as string)"
    return f"timestamp_micros({typed.text})" if typed.kind is Kind.TIME else typed.text


class StreamBadRows:
    """Writes the bad rows of each batch to ``DIR/TABLE-00000041.parquet``, with ``ids_reason``.

    If a batch is retried, it replaces its file.
    """

    def __init__(self, directory: str | Path, table: str, session: SparkSession) -> None:
        self._files = files_at(directory, session)
        self._table = file_stem(table)

    def keep(self, rows: Ready, number: int) -> None:
        """Write the bad rows of batch ``number``."""
        _make(self._files)
        bad = _stream_bad(rows).coalesce(1)
        staged = f"_{self._file(number)}"
        names, _ = write_parts(bad, arrow_schema(bad), self._files, staged, Format.PARQUET)
        self._files.move(f"{staged}/{names[0]}", self._file(number))
        self._files.remove(staged)

    def forget(self, number: int) -> None:
        """Remove the file of an earlier try of batch ``number``, which has no bad rows."""
        self._files.remove(self._file(number))

    def _file(self, number: int) -> str:
        return f"{self._table}-{number:08d}.parquet"


def refuse(rows: Ready, faults: int) -> None:
    """Raise DataError with the first bad row of a batch."""
    bad = rows.data.filter(f"{FAULT} IS NOT NULL AND NOT {AHEAD}")
    if ORIGIN in bad.columns:
        bad = bad.orderBy(ORIGIN).select(f"{ORIGIN}.file", f"{ORIGIN}.row", FAULT)
    first = bad.limit(1).toArrow().to_pylist()[0]
    place = ""
    if first.get("file"):
        row = first.get("row")
        place = (f" in row {row + 1} of" if row is not None else " in") + f" {first['file']}"
    more = f" (and {faults - 1:,} more bad rows)" if faults > 1 else ""
    raise DataError(
        f"{first[FAULT]}{place}{more}; correct the input, or set bad rows aside with bad_rows='DIR'"
    )


def _stream_bad(rows: Ready) -> DataFrame:
    names, texts = list(rows.columns), [_shown(typed) for typed in rows.columns.values()]
    if MALFORMED in rows.data.columns:
        names.append(unused(MALFORMED, names))
        texts.append(MALFORMED)
    _, reason = notes(names)
    bad = rows.data.filter(F.col(FAULT).isNotNull())
    return bad.selectExpr(*texts, FAULT).toDF(*names, reason)
