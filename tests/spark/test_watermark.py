"""Watermarks: that of the user's own is taken, and none starts later than the rows do."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

import ids
from ids.errors import DataError, ScriptError
from ids.spark import start, translated
from tests.spark.streams import UTC, arrive
from tests.spark.tables import events, same
from tests.spark.test_chained import drained, narrow, ordered_files

SECOND = 1_000_000
END = 3_600 * SECOND
FRAMES = {
    "time": "RANGE INTERVAL '9' SECOND PRECEDING SLIDE INTERVAL '3' SECOND",
    "odd": "RANGE INTERVAL '14' SECOND PRECEDING SLIDE INTERVAL '7' SECOND",
    "count": "ROWS 4 PRECEDING SLIDE 2 ROWS",
}


def script(frame: str) -> str:
    return (
        "SELECT COUNT(*) AS c, SHAPLEY_DELTA(SUM(x), x > 2) AS d, AVG(x) AS a FROM t "
        f"WINDOW w AS (ORDER BY at {FRAMES[frame]}) EMIT CHANGES"
    )


def around_1970() -> pa.Table:
    """Rows years before 1970, on both sides of it, at its very instant, and one at the end."""
    years = -40 * 365 * 86_400 * SECOND
    ticks = np.array([years, years + 1, -9, -6, -3, -3, -1, 0, 0, 1, 3, 4, 9])
    ticks[2:] *= SECOND
    ticks = np.append(ticks, [12 * SECOND + 1, END])
    return pa.table({"at": pa.array(ticks, UTC), "x": np.arange(len(ticks), dtype=float)})


def stream(spark: SparkSession, table: pa.Table, folder: Path) -> DataFrame:
    if not folder.exists():
        arrive(table, folder, [5, table.num_rows - 1])
    source = spark.readStream.schema(spark.createDataFrame(table).schema)
    return source.option("maxFilesPerTrigger", 1).parquet(str(folder))


def before_the_end(emits: pa.Table) -> pa.Table:
    return emits.filter(pc.less(emits["emit_at"], pa.scalar(END, UTC)))


@pytest.mark.parametrize(
    "frame", [pytest.param(n, marks=pytest.mark.slow) if n == "odd" else n for n in FRAMES]
)
def test_rows_around_1970_are_answered_as_in_process(
    spark: SparkSession, tmp_path: Path, frame: str
) -> None:
    table = around_1970()
    expected = ids.sql(script(frame), t=table)
    batch = spark.createDataFrame(table).coalesce(1)
    same(expected, ids.spark.sql(script(frame), t=batch).toArrow())
    expected = before_the_end(expected)
    assert pc.count_distinct(pc.less_equal(expected["emit_at"], pa.scalar(0, UTC))).as_py() == 2
    given = stream(spark, table, tmp_path / "in")
    running = start(
        script(frame), t=given, checkpoint=tmp_path / "ck", max_ahead=None, available_now=True
    )
    running.await_termination()
    same(expected, running.table())
    assert running.last_progress.totals.late == 0
    if frame == "odd":
        found = drained(spark, ids.spark.sql(script(frame), t=given), tmp_path / "chained")
        same(expected, found.sort_by("emit_at"))


@pytest.mark.slow
def test_a_watermark_of_the_users_own_is_the_lateness(spark: SparkSession, tmp_path: Path) -> None:
    late = timedelta(seconds=20)
    table = ordered_files(events(seed=11, rows=600), tmp_path / "in", 3, late)
    text = narrow("AVG(level)", "keyed")
    source = spark.readStream.schema(spark.createDataFrame(table).schema)
    rows = source.option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    own = rows.withColumnRenamed("event_time", "t").withWatermark("t", "20 seconds")
    own = own.filter("level > 0").withColumnRenamed("t", "event_time")
    expected = ids.sql(text, events=table)
    expected = expected.filter(pc.less(expected["emit_at"], table["event_time"][-1]))
    found = drained(
        spark, ids.spark.sql(text, events=own, value_range=(1e-3, 1e10)), tmp_path / "ck"
    )
    order = [("emit_at", "ascending"), *((k, "ascending") for k in found.column_names[:2])]
    same(expected.sort_by(order), found.sort_by(order))
    lateness = {}
    for name, given in (("own", own), ("none", rows)):
        running = start(
            text, events=given, checkpoint=tmp_path / name, max_ahead=None, available_now=True
        )
        running.await_termination()
        lateness[name] = running.last_progress.totals.late
    assert lateness["own"] == 0 < lateness["none"]


def test_an_instant_is_open_until_a_watermark_of_the_users_own_has_passed_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    # the second file comes when the watermark is at 3 seconds
    ticks = np.array([1, 2, 5, 3, 3, 8, 30]) * SECOND
    table = pa.table({"at": pa.array(ticks, UTC), "x": np.arange(7.0)})
    arrive(table, tmp_path / "in", [3, 6])
    given = stream(spark, table, tmp_path / "in").withWatermark("at", "2 seconds")
    found = drained(spark, ids.spark.sql(script("time"), t=given), tmp_path / "ck")
    expected = ids.sql(script("time"), t=table)
    expected = expected.filter(pc.less(expected["emit_at"], pa.scalar(28 * SECOND, UTC)))
    same(expected, found.sort_by("emit_at"))


def test_a_watermark_that_does_not_fit_is_refused_in_one_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = around_1970()
    rows = stream(spark, table, tmp_path / "in").selectExpr("*", "at + INTERVAL 1 DAY AS seen")
    remedy = "; put withWatermark on the column of ORDER BY, or leave it out and set lateness"
    dropped = rows.withWatermark("seen", "1 minute").drop("seen")
    for given, asked, line in (
        (
            rows.withWatermark("at", "1 minute"),
            {"lateness": "1 minute"},
            "table 't' already has a watermark, and lateness is set as well; remove one of them",
        ),
        (
            rows.withWatermark("seen", "1 minute"),
            {},
            f"the watermark of 't' is on 'seen', but its window is ordered by 'at'{remedy}",
        ),
        (
            dropped,
            {},
            "the watermark of 't' is on a column that was dropped or changed since, but its window "
            f"is ordered by 'at'{remedy}",
        ),
    ):
        with pytest.raises(ScriptError) as caught:
            ids.spark.sql(script("time"), t=given, **asked)  # type: ignore[arg-type]
        assert str(caught.value) == line
        with pytest.raises(ScriptError) as caught:
            start(script("time"), t=given, checkpoint=tmp_path / "ck", **asked)  # type: ignore[arg-type]
        assert str(caught.value) == line
    early = ids.spark.sql(script("time"), t=rows.withWatermark("at", "1 minute"))
    with pytest.raises(DataError, match="an event time 'at' of t is before 1970"), translated():
        drained(spark, early, tmp_path / "early")
