"""Whole scripts over DataFrames, files and topics: what ``ids.query`` does, on Spark."""

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
from ids.plan import Schema, SelectPlan, Tables, nothing_asked, planned
from ids.query import shown, to_table
from ids.source import Declared, Source, misread_of, open_table, unfit_rows
from ids.spark.count_windows import count_windows
from ids.spark.failures import translated
from ids.spark.file_system import check_shared, path_at
from ids.spark.frame import Frame, beside, numbered
from ids.spark.kafka_topic import is_kafka
from ids.spark.preflight import check_batch
from ids.spark.session import has_session, session_of
from ids.spark.spark_bad_rows import BatchBadRows, refused
from ids.spark.spark_prepare import Ready, ready
from ids.spark.table_location import locate, schema_at, source_schema
from ids.spark.table_reader import catalog_table, read, retyped
from ids.spark.time_windows import VALUE_RANGE, streamed_windows, time_windows
from ids.spark.typed_column import UNFIT, Typed, quoted

_SOME = 1_000  # rows of a DataFrame that are looked at to tell what text is meant for


@dataclass(frozen=True, slots=True)
class Result:
    """What one statement gave: its DataFrame, its keys, and how many bad rows were set aside."""

    statement: Statement
    table: DataFrame
    keys: tuple[str, ...] = ()
    bad_rows: int = 0


def sql(
    script: str,
    /,
    *,
    spark: SparkSession | None = None,
    bad_rows: str | Path | None = None,
    lateness: Duration | None = None,
    value_range: tuple[float, float] = VALUE_RANGE,
    seed: int = 0,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    **tables: object,
) -> DataFrame:
    """Run a script on Spark; the last SELECT's emits as a DataFrame.

    A table is a DataFrame, or whatever ``ids.sql`` takes. A batch DataFrame in gives a batch
    DataFrame out, in the order of the emits; a streaming one gives a streaming one, to be written
    in append mode. A script without a SELECT gives what its last SHOW or EXPLAIN shows.

    spark     the session to work in: by default that of the tables, or the active one
    bad_rows  a directory where rows that no window can take are set aside (batch)
    lateness  by how much a row of a stream may be late; as a watermark of the table's own says, or
              not at all, unless it is given
    value_range  the smallest (but 0) and the largest magnitude of a stream's values
    seed      decides which rows an APPROXIMATE item samples
    schema    types of some columns, "ts EPOCH_SECONDS, latency DOUBLE", or a dict of them by table
    null      a text, or several, that means NULL in CSV and JSON Lines files

    In batch, one job at once looks at how far the values reach; the rest runs when the result is
    asked for. No setting of the session is touched.
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
        **tables,
    )
    selects = [r for r in results if isinstance(r.statement, Select)]
    return (selects or results)[-1].table


def sql_all(
    script: str,
    /,
    *,
    spark: SparkSession | None = None,
    bad_rows: str | Path | None = None,
    lateness: Duration | None = None,
    value_range: tuple[float, float] = VALUE_RANGE,
    seed: int = 0,
    schema: str | Mapping[str, str] | None = None,
    null: str | Sequence[str] = (),
    **tables: object,
) -> list[Result]:
    """Run a script on Spark; what each SELECT, SHOW and EXPLAIN gives, in their order.

    The arguments are those of ``sql``.
    """
    results = list(
        run_script(
            script,
            tables,
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
    """Run a script statement by statement; yields what each SELECT, SHOW and EXPLAIN gives."""
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
        # a mistake in any statement is told before the first one runs
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
    """A table of a script: a DataFrame or a table of the catalog as it is, files through Spark,
    the rest through Arrow.

    ``columns`` are declared, and ``nulls`` mean NULL in text files.
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
    """The frame with what is known in process of columns that Spark cannot tell about."""
    nothing = {name: Typed("NULL", None) for name, kind in known.kinds.items() if kind is None}
    unsupported = frame.unsupported | dict(known.unsupported)
    held = frame.columns | nothing
    return replace(frame, columns=held, unsupported=unsupported, misread=known.misread)


def _in_memory(session: SparkSession, source: Source, columns: Iterable[str]) -> DataFrame:
    """A table in memory, and why values of its columns are not of their declared types."""
    table = to_table(source.read(source.schema))
    own = table.column_names
    for name in columns:
        reasons = np.full(source.rows, None, dtype=object)
        rows, why = unfit_rows(source, [name])
        reasons[rows] = why
        table = table.append_column(UNFIT + name, pa.array(reasons, pa.string()))
    # by number, since names may differ only in case
    places = [numbered(number) for number in range(table.num_columns)]
    data = session.createDataFrame(table.rename_columns(places))
    held = [F.col(place).alias(name) for place, name in zip(places, own, strict=False)]
    marks = zip(places[len(own) :], table.column_names[len(own) :], strict=True)
    return data.select(*held, *(beside(own, F.col(place), mark) for place, mark in marks))


def _misread_in(data: DataFrame, columns: Mapping[str, str], name: str) -> Misread | None:
    """What a text column of a DataFrame seems to have been meant for, by some of its rows."""
    if name in columns or data.isStreaming:
        return None
    some = data.select(quoted(name)).limit(_SOME).toArrow()
    return misread_of(open_table(some, name), name)


def _batch(statement: Select, plan: SelectPlan, frame: Frame, kept: BatchBadRows | None) -> Result:
    bad = 0

    def on_faults(_: Ready, faults: int) -> None:
        nonlocal bad
        # a row's place is that before WHERE
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
            "APPROXIMATE over a streaming DataFrame has no streaming DataFrame as its result",
            item.approximate.at,
            "run it with ids.spark.start, or leave the clause out",
        )
    if isinstance(plan.window, CountWindow):
        raise ScriptError(
            "ROWS over a streaming DataFrame has no streaming DataFrame as its result",
            hint="run it with ids.spark.start, or use RANGE",
        )
    return streamed_windows(plan, frame, lateness, value_range)
