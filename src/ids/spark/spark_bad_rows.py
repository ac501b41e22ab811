"""Bad rows: refused with a line that names one, or written to a directory with their reasons."""

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
from ids.spark.file_system import files_at
from ids.spark.frame import ORIGIN, Frame, numbered
from ids.spark.kafka_topic import MALFORMED
from ids.spark.spark_prepare import AHEAD, FAULT, Ready
from ids.spark.spark_write import arrow_schema, write, write_parts
from ids.spark.typed_column import Typed

_FILE = "ids_file"
_NUMBER = "ids_number"
_PIECE = (_FILE, "ids_start", "ids_piece")
_QUERY = "ids_query"
# A counter of Spark's has the number of its partition in the bits from 33 on.
_ORIGIN = (
    f"{ORIGIN}.file AS {_PIECE[0]}",
    f"{ORIGIN}.start AS {_PIECE[1]}",
    f"shiftright({ORIGIN}.row, 33) AS {_PIECE[2]}",
    f"{ORIGIN}.row AS ids_place",
)
_NAMED = (
    f"concat('row ', {_NUMBER}, if({_FILE} = '', '', ' of '), substring_index({_FILE}, '/', -1))"
)


def refused(table: str, frame: Frame, rows: Ready) -> DataError:
    """The error for a table with bad rows; names the first in the order of the input.

    Both ``frame`` and ``rows``, made of it, carry the rows' origin.
    """
    bad = _placed(frame, rows).orderBy(_FILE, _NUMBER)
    first = bad.selectExpr(FAULT, _NAMED).first()
    assert first is not None
    return bad_row_error(first[0], table, first[1])


@dataclass(slots=True)
class BatchBadRows:
    """Writes a table's bad rows to ``DIR/TABLE.parquet``, two more columns saying which and why.

    Queries of one script share it: the file holds every bad row of the table once, with the
    reasons of all of them.
    """

    directory: str | Path
    table: str
    found: list[DataFrame] = field(default_factory=list)

    def keep(self, frame: Frame, rows: Ready) -> None:
        """Set the bad rows aside; rewrites the file with those set aside before."""
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
    """The bad rows, each with its file and its number in it, from 1 on.

    What a task read of a file it counted in one go. So the pieces of the files, few, are counted,
    and a row's number is that of the rows in the pieces before its own, and its place there.
    """
    bad = rows.data.filter(F.col(FAULT).isNotNull()).selectExpr("*", *_ORIGIN)
    pieces = frame.data.selectExpr(*_ORIGIN).groupBy(*_PIECE)
    counted = pieces.agg(F.expr("count(*)").alias("ids_n"), F.expr("min(ids_place)").alias("ids_0"))
    before = (
        f"coalesce(sum(ids_n) OVER (PARTITION BY {_FILE} ORDER BY {_PIECE[1]}, {_PIECE[2]} "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0L) AS ids_before"
    )
    offsets = counted.selectExpr(*_PIECE, "ids_0", before)
    number = F.expr("ids_before + ids_place - ids_0 + 1L").alias(_NUMBER)
    return bad.join(F.broadcast(offsets), list(_PIECE)).select("*", number)


def _once(every: DataFrame, own: list[str]) -> DataFrame:
    """Each row once, in the order of the input, its reasons in the order of the queries."""
    reasons = f"array_sort(collect_list(named_struct('q', {_QUERY}, 'reason', {FAULT})))"
    told = f"array_join(array_distinct({reasons}.reason), '; ')"
    values = [numbered(number) for number in range(len(own))]
    first = [F.first(name).alias(name) for name in values]
    rows = every.groupBy(_FILE, _NUMBER).agg(*first, F.expr(told).alias("reasons"))
    ordered = rows.orderBy(_FILE, _NUMBER).select(*values, F.expr(_NAMED), "reasons")
    return ordered.toDF(*own, *notes(own))


def _make(directory: Files) -> None:
    """Make the directory that bad rows go to."""
    try:
        directory.make()
    except OSError as error:
        place, fault = directory.uri.removeprefix("file:"), error.strerror or str(error)
        raise SinkError(f"cannot make {place}: {fault}") from error


def _shown(typed: Typed) -> str:
    """A column as it is written out: an instant is a timestamp again."""
    if typed.kind is None:
        return f"cast({typed.text} as string)"
    return f"timestamp_micros({typed.text})" if typed.kind is Kind.TIME else typed.text


class StreamBadRows:
    """Keeps bad rows in ``DIR/TABLE-00000041.parquet``, with ``ids_reason``.

    A batch that is tried again replaces its file.
    """

    def __init__(self, directory: str | Path, table: str, session: SparkSession) -> None:
        self._files = files_at(directory, session)
        self._table = file_stem(table)

    def keep(self, rows: Ready, number: int) -> None:
        """Keep the bad rows of batch ``number``."""
        _make(self._files)
        bad = _stream_bad(rows).coalesce(1)
        staged = f"_{self._file(number)}"
        names, _ = write_parts(bad, arrow_schema(bad), self._files, staged, Format.PARQUET)
        self._files.move(f"{staged}/{names[0]}", self._file(number))
        self._files.remove(staged)

    def forget(self, number: int) -> None:
        """Batch ``number`` has no bad rows, whatever an earlier try of it found."""
        self._files.remove(self._file(number))

    def _file(self, number: int) -> str:
        return f"{self._table}-{number:08d}.parquet"


def refuse(rows: Ready, faults: int) -> None:
    """Name the first bad row, and the way out."""
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
        f"{first[FAULT]}{place}{more}; mend the input, or set bad rows aside with bad_rows='DIR'"
    )


def _stream_bad(rows: Ready) -> DataFrame:
    names, texts = list(rows.columns), [_shown(typed) for typed in rows.columns.values()]
    if MALFORMED in rows.data.columns:
        names.append(unused(MALFORMED, names))
        texts.append(MALFORMED)
    _, reason = notes(names)
    bad = rows.data.filter(F.col(FAULT).isNotNull())
    return bad.selectExpr(*texts, FAULT).toDF(*names, reason)
