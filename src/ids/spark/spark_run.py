"""Run scripts over DataFrames, files and topics on Spark, as ``ids.query`` does in process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ids.errors import ScriptError
from ids.model import (
    CountWindow,
    Duration,
    Misread,
    Select,
    Statement,
    checked_seed,
    microseconds,
)
from ids.plan import Schema, SelectPlan, Tables, merged_tables, nothing_asked, planned
from ids.query import shown
from ids.source import Declared, Source, misread_of, open_table, to_table, unfit_rows
from ids.spark.count_windows import count_windows
from ids.spark.expression_sql import UNFIT, Typed, quoted
from ids.spark.failures import translated
from ids.spark.file_system import check_shared, path_at
from ids.spark.frame import Frame, added_column, numbered
from ids.spark.kafka_topic import is_kafka
from ids.spark.preflight import check_batch, locate, schema_at, source_schema
from ids.spark.session import has_session, session_of
from ids.spark.spark_bad_rows import BatchBadRows, refused
from ids.spark.spark_prepare import Ready, ready
from ids.spark.table_reader import catalog_table, read, retyped
from ids.spark.time_windows import VALUE_RANGE, streamed_windows, time_windows

_SOME = 1_000  # rows of a DataFrame that are read to guess the intended type of a text column


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one statement of a script.

    statement  the parsed SELECT, SHOW or EXPLAIN
    table      its rows
    keys       the PARTITION BY columns of a SELECT
    bad_rows   how many bad rows were set aside
    """

    statement: Statement
    table: DataFrame
    keys: tuple[str, ...] = ()
    bad_rows: int = 0


def sql(
    script: str,
    /,
    *,
    tables: Mapping[str, object] | None = None,
    spark: SparkSession | None = None,
    bad_rows: str | Path | None = None,
    lateness: Duration | None = None,
    value_range: tuple[float, float] = VALUE_RANGE,
    seed: int = 0,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    **named_tables: object,
) -> DataFrame:
    """Run a script on Spark and return the emits of its last SELECT as a DataFrame.

    script       str: statements separated by semicolons
    tables       dict, or keyword arguments, by name: a DataFrame (batch or streaming), a file, a
                 directory, a table of Spark's catalog, ``kafka://host:9092/topic``, or anything
                 that ``ids.sql`` accepts
    spark        SparkSession; default: the tables' session, or the active one, or a new local one
    bad_rows     str or Path: a directory for bad rows and their reasons (batch only); by default a
                 bad row raises DataError
    lateness     str or timedelta: how late a row of a stream may be, as in ``"10 seconds"``;
                 default: the delay of the table's own watermark, or 0
    value_range  (float, float), default (1e-9, 1e12): the smallest nonzero and the largest
                 magnitude of a stream's values; any other value stops the stream with an error
    seed         int, default 0: determines which rows an APPROXIMATE item samples
    schema       str or dict: types of some columns, as in ``"ts EPOCH_SECONDS, latency DOUBLE"``,
                 or a dict of such texts by table; required for a topic
    null         str, or several: texts that mean NULL in CSV and JSON Lines files

    Returns one row per emit: the PARTITION BY columns, ``emit_at``, ``n`` (rows in the window),
    then the items. A batch result is sorted in the order of the emits. For a streaming table, the
    result is a streaming DataFrame, to be written in append mode. If the script has no SELECT, the
    result of its last SHOW or EXPLAIN is returned. A batch query immediately runs one job to
    determine the range of the values; everything else runs lazily, when the result is used.

    Raises ScriptError for a mistake in the script, SourceError for a table that cannot be read,
    DataError for a bad row, and SetupError if Spark cannot start or its workers lack IDS.

    Example::

        script = "SELECT SUM(x) AS s FROM t WINDOW w AS (ORDER BY i ROWS 2 PRECEDING) EMIT CHANGES"
        ids.spark.sql(script, t=spark.createDataFrame([(1, 5.0), (2, 7.0)], "i INT, x DOUBLE"))
    """
    results = sql_all(
        script,
        spark=spark,
        bad_rows=bad_rows,
        lateness=lateness,
        value_range=value_range,
        seed=seed,
        schema=schema,
        null=null,
        tables=merged_tables(tables, named_tables),
    )
    selects = [r for r in results if isinstance(r.statement, Select)]
    return (selects or results)[-1].table


def sql_all(
    script: str,
    /,
    *,
    tables: Mapping[str, object] | None = None,
    spark: SparkSession | None = None,
    bad_rows: str | Path | None = None,
    lateness: Duration | None = None,
    value_range: tuple[float, float] = VALUE_RANGE,
    seed: int = 0,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    **named_tables: object,
) -> list[Result]:
    """Run a script on Spark and return the results of all SELECT, SHOW and EXPLAIN, in order.

    The parameters are those of ``sql``.
    """
    results = list(
        run_script(
            script,
            merged_tables(tables, named_tables),
            spark=spark,
            bad_rows=bad_rows,
            lateness=lateness,
            value_range=value_range,
            seed=seed,
            schema=schema,
            null=null,
        )
    )
    if not results:
        raise nothing_asked()
    return results


def run_script(
    script: str,
    tables: Mapping[str, object],
    *,
    spark: SparkSession | None = None,
    bad_rows: str | Path | None = None,
    lateness: Duration | None = None,
    value_range: tuple[float, float] = VALUE_RANGE,
    seed: int = 0,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
) -> Iterator[Result]:
    """Run a script statement by statement; yield the result of each SELECT, SHOW and EXPLAIN."""
    seed, known = checked_seed(seed), Declared.of(schema, null, tables)
    span = None if lateness is None else microseconds(lateness)
    if not has_session(tables.values(), spark):
        check_batch(script, tables, known)
    session = session_of(tables.values(), spark)
    check_shared(session, bad_rows)
    frames = Tables(
        tables, lambda data, name: opened(session, data, name, known.columns(name), known.nulls)
    )
    kept: dict[str, BatchBadRows] = {}  # by table
    with translated():
        # all statements are planned before the first one runs, so mistakes are reported early
        for step in list(planned(script, lambda statement: frames.of(statement).schema)):
            statement, plan = step.statement, step.plan
            if not isinstance(statement, Select) or plan is None:
                yield Result(statement, session.createDataFrame(shown(step)))
                continue
            plan = replace(plan, seed=seed)
            frame = frames.of(statement)
            if frame.data.isStreaming:
                table = _streamed(plan, frame, span, value_range)
                yield Result(statement, table, plan.partition_by)
                continue
            name = statement.table.lower()
            if bad_rows is not None and name not in kept:
                kept[name] = BatchBadRows(bad_rows, statement.table)
            yield _batch(statement, plan, frame, kept.get(name))


def opened(
    session: SparkSession,
    data: object,
    name: str,
    columns: Mapping[str, str] = {},
    nulls: Sequence[str] = (),
) -> Frame:
    """Open a table of a script: a DataFrame, a table of the catalog, files, or data in memory.

    ``columns`` contains declared types; the texts in ``nulls`` mean NULL in text files.
    """
    table = catalog_table(session, data)
    data = data if table is None else table
    if isinstance(data, DataFrame):
        frame = Frame.of(retyped(data, columns, f"table {name!r}"))
        return replace(frame, misread=partial(_misread_in, data, columns))
    if isinstance(data, str | Path):
        if is_kafka(data):
            frame = Frame.of(read(session, data, schema=columns))
            return _as_in_process(frame, schema_at(str(data), columns))
        location = locate(path_at(data, session))
        frame = Frame.of(read(session, location, schema=columns, null=nulls))
        return _as_in_process(frame, location.schema(columns, nulls))
    source = open_table(data, name, columns)
    return _as_in_process(Frame.of(_in_memory(session, source, columns)), source_schema(source))


def _as_in_process(frame: Frame, known: Schema) -> Frame:
    """Add columns that only the in-process reader reports: all NULL, or of unsupported types."""
    nothing = {name: Typed("NULL", None) for name, kind in known.kinds.items() if kind is None}
    unsupported = frame.unsupported | dict(known.unsupported)
    held = frame.columns | nothing
    return replace(frame, columns=held, unsupported=unsupported, misread=known.misread)


def _in_memory(session: SparkSession, source: Source, columns: Iterable[str]) -> DataFrame:
    """Convert a table in memory to a DataFrame.

    For each declared column, another column explains why a value does not fit the declared type.
    """
    table = to_table(source.read(source.schema))
    own = table.column_names
    for name in columns:
        reasons = np.full(source.rows, None, dtype=object)
        rows, why = unfit_rows(source, [name])
        reasons[rows] = why
        table = table.append_column(UNFIT + name, pa.array(reasons, pa.string()))
    # columns are numbered, because their names may differ only in case
    places = [numbered(number) for number in range(table.num_columns)]
    data = session.createDataFrame(table.rename_columns(places))
    held = [F.col(place).alias(name) for place, name in zip(places, own, strict=False)]
    marks = zip(places[len(own) :], table.column_names[len(own) :], strict=True)
    return data.select(*held, *(added_column(own, place, mark) for place, mark in marks))


def _misread_in(data: DataFrame, columns: Mapping[str, str], name: str) -> Misread | None:
    """Guess the intended type of a text column of a DataFrame from some of its rows."""
    if name in columns or data.isStreaming:
        return None
    some = data.select(quoted(name)).limit(_SOME).toArrow()
    return misread_of(open_table(some, name), name)


def _batch(statement: Select, plan: SelectPlan, frame: Frame, kept: BatchBadRows | None) -> Result:
    bad = 0

    def on_faults(_: Ready, faults: int) -> None:
        nonlocal bad
        # rows are numbered before WHERE is applied
        placed = frame.placed()
        if kept is None:
            raise refused(plan.table, placed, ready(plan, placed))
        kept.keep(placed, ready(plan, placed))
        bad = faults

    answer = count_windows if isinstance(plan.window, CountWindow) else time_windows
    table = answer(plan, frame, on_faults)
    return Result(statement, table, plan.partition_by, bad)


def _streamed(
    plan: SelectPlan, frame: Frame, lateness: int | None, value_range: tuple[float, float]
) -> DataFrame:
    for item in plan.sampled:
        assert item.approximate is not None
        raise ScriptError(
            "ids.spark.sql cannot run APPROXIMATE over a streaming DataFrame",
            item.approximate.at,
            "use ids.spark.start, or leave the clause out",
        )
    if isinstance(plan.window, CountWindow):
        raise ScriptError(
            "ids.spark.sql cannot run ROWS over a streaming DataFrame",
            hint="use ids.spark.start, or use RANGE",
        )
    return streamed_windows(plan, frame, lateness, value_range)
