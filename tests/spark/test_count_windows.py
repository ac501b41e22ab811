"""Count windows on Spark are those of ``ids.sql``, to the last bit, however rows are spread."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import ids
from ids.plan import planned
from ids.spark import read
from ids.spark.count_windows import count_windows
from ids.spark.frame import Frame
from ids.spark.spark_prepare import Ready
from tests.spark.tables import events, same

PREDICATES = {
    "plain": ("region = 'EU'", "region = 'EU' AND NOT tier = 'premium'", "cached OR latency > 40"),
    "odd": (
        "region = 'it''s' OR region IS NULL",
        "latency BETWEEN 10 AND 20.5 OR bytes % 7 = 3",
        "tier LIKE 'pre%' AND hour(event_time) = 0",
    ),
    "many": tuple(f"latency > {k} AND bytes % 3 = {k % 3}" for k in range(66)),
}


def query(
    aggregates: list[str], window: str, *, form: str = "plain", where: str = "", emit: str = ""
) -> str:
    items = [f"{aggregate} AS a{i}" for i, aggregate in enumerate(aggregates)]
    for i, predicate in enumerate(PREDICATES[form]):
        aggregate = aggregates[i % len(aggregates)]
        items.append(f"SHAPLEY_ATTRIBUTE({aggregate}, {predicate} WITH (SHARE, LIFT)) AS s{i}")
        items.append(f"SHAPLEY_DELTA({aggregates[0]}, {predicate}) AS d{i}")
    return (
        f"SELECT {', '.join(items)} FROM events {where} "
        f"WINDOW w AS ({window}) EMIT {emit or 'CHANGES'};"
    )


def answered(script: str, data: DataFrame, target: int | None) -> DataFrame:
    frame = Frame.of(data)
    plan = next(planned(script, lambda _: frame.schema)).plan
    assert plan is not None
    return count_windows(plan, frame, _no_faults, target)


def _no_faults(rows: Ready, faults: int) -> None:
    raise AssertionError(f"{faults} faults")


def in_files(folder: Path, table: pa.Table, files: int) -> Path:
    """The table in so many files, in order."""
    borders = [table.num_rows * k // files for k in range(files + 1)]
    for number, (start, stop) in enumerate(pairwise(borders)):
        pq.write_table(table.slice(start, stop - start), folder / f"part-{number}.parquet")
    return folder


@pytest.mark.parametrize(
    ("aggregates", "window", "options", "files", "target"),
    [
        (["AVG(latency)"], "ORDER BY event_time ROWS 100 PRECEDING", {}, 1, None),
        (["SUM(latency)", "COUNT(*)"], "ORDER BY event_time ROWS 40 PRECEDING", {}, 7, 170),
        (
            ["VAR_POP(level)", "AVG(bytes)"],
            "PARTITION BY region ORDER BY event_time ROWS 30 PRECEDING SLIDE 7 ROWS",
            {"form": "odd"},
            2,
            90,
        ),
        pytest.param(
            ["VARIANCE(latency)", "COUNT(shop)"],
            "PARTITION BY shop, cached ORDER BY event_time, region ROWS 9 PRECEDING SLIDE 11 ROWS",
            {"where": "WHERE bytes IS NOT NULL OR latency < 60"},
            7,
            60,
            marks=pytest.mark.slow,
        ),
        (["M3(latency)", "M4(level)"], "ORDER BY event_time ROWS 25 PRECEDING", {}, 2, 400),
        (
            ["AVG(latency)"],
            "ORDER BY latency, event_time ROWS 5 PRECEDING SLIDE 3 ROWS",
            {"where": "WHERE latency IS NOT NULL", "form": "odd"},
            2,
            100,
        ),
        pytest.param(
            ["SUM(bytes)"],
            "PARTITION BY tier ORDER BY region, event_time ROWS 12 PRECEDING",
            {"where": "WHERE region IS NOT NULL"},
            7,
            80,
            marks=pytest.mark.slow,
        ),
        (
            ["AVG(latency)", "VAR_SAMP(level)"],
            "PARTITION BY region ORDER BY event_time ROWS 30 PRECEDING SLIDE 7 ROWS",
            {"emit": "FINAL"},
            2,
            90,
        ),
        (
            ["AVG(latency)"],
            "ORDER BY bytes ROWS 50 PRECEDING SLIDE 4 ROWS",
            {"form": "many", "where": "WHERE bytes IS NOT NULL"},
            1,
            300,
        ),
    ],
)
def test_every_answer_is_that_of_the_in_process_engine(
    spark: SparkSession,
    tmp_path: Path,
    aggregates: list[str],
    window: str,
    options: dict[str, str],
    files: int,
    target: int | None,
) -> None:
    folder = in_files(tmp_path, events(seed=files, rows=1_500), files)
    script = query(aggregates, window, **options)
    found = answered(script, read(spark, folder), target)
    same(ids.sql(script, events=folder), found.toArrow())


def test_bits_do_not_depend_on_partitions_or_order_of_the_input(spark: SparkSession) -> None:
    table = events(seed=5, rows=800)
    table = table.append_column("id", pa.array(np.arange(800)))
    script = query(["AVG(latency)", "VAR_POP(level)"], "ORDER BY event_time, id ROWS 64 PRECEDING")
    data = spark.createDataFrame(table).orderBy(F.xxhash64("id", F.lit(7)))
    found = answered(script, data.repartition(7), 37).toArrow()
    same(ids.sql(script, events=table), found)


def test_times_that_crowd_are_cut_at_quantiles(spark: SparkSession) -> None:
    table = events(seed=6, rows=900)
    instants = table["event_time"].cast(pa.int64()).to_numpy().copy()
    instants[0] = 0  # one row of 1970 leaves all others in the last of even buckets
    table = table.set_column(0, "event_time", pa.array(instants).cast(pa.timestamp("us", "UTC")))
    script = query(["SUM(latency)"], "ORDER BY event_time ROWS 20 PRECEDING")
    found = answered(script, spark.createDataFrame(table).coalesce(1), 60)
    assert found.rdd.getNumPartitions() > 5
    same(ids.sql(script, events=table), found.toArrow())


@pytest.mark.slow
def test_numbers_that_are_no_numbers_still_have_an_order(spark: SparkSession) -> None:
    rng = np.random.default_rng(7)
    at = rng.normal(0, 1e300, 400)
    at[:8] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e308, -1e308, 5e-324]
    table = pa.table({"at": at, "x": rng.normal(0, 1, 400), "key": rng.choice([0.5, np.nan], 400)})
    for window in ("ORDER BY at ROWS 9 PRECEDING", "PARTITION BY key ORDER BY at ROWS 3 PRECEDING"):
        script = (
            "SELECT SUM(x) AS s, SHAPLEY_ATTRIBUTE(AVG(x), at > 0) AS p FROM events "
            f"WINDOW w AS ({window}) EMIT CHANGES;"
        )
        found = answered(script, spark.createDataFrame(table).coalesce(1), 50).toArrow()
        expected = ids.sql(script, events=table)
        assert found["s"].to_pylist() == expected["s"].to_pylist()
        assert found["p"].to_pylist() == expected["p"].to_pylist()


def test_no_rows_give_no_emits(spark: SparkSession) -> None:
    table = events(seed=1, rows=20)
    script = query(["AVG(latency)"], "ORDER BY event_time ROWS 3 PRECEDING", where="WHERE FALSE")
    found = ids.spark.sql(script, events=spark.createDataFrame(table)).toArrow()
    same(ids.sql(script, events=table), found)


def test_magnitudes_far_apart_are_summed_exactly(spark: SparkSession) -> None:
    x = np.array([1e15, 1e-9, -1e15, 0.1, 3.0] * 30)
    table = pa.table({"at": np.arange(150), "x": x})
    script = (
        "SELECT SUM(x) AS s, VAR_POP(x) AS v, SHAPLEY_ATTRIBUTE(SUM(x), x > 0) AS p FROM t "
        "WINDOW w AS (ORDER BY at ROWS 7 PRECEDING) EMIT CHANGES;"
    )
    same(ids.sql(script, t=table), ids.spark.sql(script, t=spark.createDataFrame(table)).toArrow())


def test_no_task_sorts_the_whole_input(spark: SparkSession) -> None:
    data = spark.createDataFrame(events(seed=2, rows=900))
    script = query(["AVG(latency)"], "ORDER BY event_time ROWS 20 PRECEDING")
    found = answered(script, data, 100)
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "SinglePartition" not in plan
    assert re.search(r"Sort \[.*\], false", plan), "sorted within its own task"
    assert not re.search(r"Sort \[.*\], true", plan)
    sizes = found.groupBy(F.spark_partition_id()).count().toArrow()["count"].to_pylist()
    assert len(sizes) >= 8
    assert sum(sizes) == 900
    assert max(sizes) < 200
