"""Whole scripts over DataFrames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from ids.engine.arrow import to_table
from ids.engine.script import shown
from ids.errors import ScriptError
from ids.model.query import Select, Statement
from ids.model.sampling import checked_seed
from ids.model.window import CountWindow, Duration, microseconds
from ids.plan import SelectPlan, Tables, nothing_asked, planned
from ids.source import Source, open_table
from ids.source.folder import find_files
from ids.source.sampling import sample
from ids.spark.aside import Aside, refused
from ids.spark.batch import time_windows
from ids.spark.chained import REACH, streamed_windows
from ids.spark.counting import count_windows
from ids.spark.declared import declared_schema
from ids.spark.failures import translated
from ids.spark.frames import Frame, Typed
from ids.spark.limits import refuse_samples
from ids.spark.preflight import check_batch
from ids.spark.rows import Ready, ready
from ids.spark.session import has_session, session_of
from ids.spark.sources import read
from ids.spark.topic import is_kafka

__all__ = ["Result", "opened", "run_script", "sql", "sql_all"]


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
    reach: tuple[float, float] = REACH,
    seed: int = 0,
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
    reach     the smallest (but 0) and the largest magnitude of a stream's values
    seed      decides which rows an APPROXIMATE item samples

    In batch, one job at once looks at how far the values reach; the rest runs when the result is
    asked for. No setting of the session is touched.
    """
    results = sql_all(
        script,
        spark=spark,
        bad_rows=bad_rows,
        lateness=lateness,
        reach=reach,
        seed=seed,
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
    reach: tuple[float, float] = REACH,
    seed: int = 0,
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
            reach=reach,
            seed=seed,
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
    reach: tuple[float, float] = REACH,
    seed: int = 0,
    schemas: Mapping[str, str] | None = None,
) -> Iterator[Result]:
    """Run a script statement by statement; yields what each SELECT, SHOW and EXPLAIN gives.

    ``schemas`` declares columns of tables in files.
    """
    seed = checked_seed(seed)
    span = None if lateness is None else microseconds(lateness)
    if not has_session(tables.values(), spark):
        check_batch(script, tables)
    session = session_of(tables.values(), spark)
    known = schemas or {}
    frames = Tables(tables, lambda data, name: opened(session, data, name, known.get(name)))
    asides: dict[str, Aside] = {}
    with translated():
        for step in planned(script, lambda statement: frames.of(statement).schema):
            statement, plan = step.statement, step.plan
            if not isinstance(statement, Select) or plan is None:
                yield Result(statement, session.createDataFrame(shown(step)))
                continue
            plan = replace(plan, seed=seed)
            frame = frames.of(statement)
            if frame.data.isStreaming:
                table = _streamed(plan, frame, span, reach)
                yield Result(statement, table, plan.partition_by)
                continue
            aside = None
            if bad_rows is not None:
                fresh = Aside(Path(bad_rows), statement.table)
                aside = asides.setdefault(statement.table.lower(), fresh)
            yield _batch(statement, plan, frame, aside)


def opened(session: SparkSession, data: object, name: str, schema: str | None = None) -> Frame:
    """A table of a script: a DataFrame as it is, files through Spark, the rest through Arrow.

    ``schema`` declares columns of files, as in ``ids.spark.sources.read``.
    """
    if isinstance(data, DataFrame):
        return Frame.of(data)
    if isinstance(data, str | Path):
        return _of_files(Frame.of(read(session, data, schema=schema)), data, name, schema)
    source = open_table(data, name)
    frame = Frame.of(session.createDataFrame(to_table(source.read(source.schema))))
    return _as_in_process(frame, source)


def _of_files(frame: Frame, place: str | Path, name: str, schema: str | None) -> Frame:
    """What the files say of columns that Spark cannot tell about."""
    if is_kafka(place):
        return frame
    format_, files = find_files(Path(place))
    if format_ == "parquet":
        return _as_in_process(frame, open_table(place, name))
    declared = declared_schema(schema).kinds if schema else {}
    return _without_type(frame, sample(files, format_).untyped - set(declared))


def _as_in_process(frame: Frame, source: Source) -> Frame:
    """The frame with what the in-process reader knows of columns that Spark cannot tell about."""
    return replace(_without_type(frame, source.untyped), unsupported=dict(source.unsupported))


def _without_type(frame: Frame, columns: Iterable[str]) -> Frame:
    """The frame with columns that hold nothing, and are of no type."""
    return replace(frame, columns=frame.columns | dict.fromkeys(columns, Typed("NULL", None)))


def _batch(statement: Select, plan: SelectPlan, frame: Frame, aside: Aside | None) -> Result:
    set_aside = 0

    def on_faults(_: Ready, faults: int) -> None:
        nonlocal set_aside
        # a row's place is that before WHERE
        placed = frame.placed()
        if aside is None:
            raise refused(plan.table, placed, ready(plan, placed))
        aside.keep(placed, ready(plan, placed))
        set_aside = faults

    answer = count_windows if isinstance(plan.window, CountWindow) else time_windows
    table = answer(plan, frame, on_faults)
    return Result(statement, table, plan.partition_by, set_aside)


def _streamed(
    plan: SelectPlan, frame: Frame, lateness: int | None, reach: tuple[float, float]
) -> DataFrame:
    refuse_samples(plan)
    if isinstance(plan.window, CountWindow):
        raise ScriptError(
            "ROWS over a streaming DataFrame has no streaming DataFrame as its result",
            hint="run it with ids.spark.start, or use RANGE",
        )
    return streamed_windows(plan, frame, lateness, reach)
