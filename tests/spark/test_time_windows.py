"""Time windows on Spark are those of ``ids.sql``, to the last bit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import ids
from ids.errors import DataError, ScriptError
from tests.spark.tables import events, same

REGISTERED = """
REGISTER PREDICATE eu AS (region = 'EU') ON events;
REGISTER PREDICATE premium AS (tier = 'premium') ON events;
REGISTER PREDICATE slow AS (latency > 40 AND NOT cached) ON events;
"""
PREDICATES = {
    "registered": ("eu", "premium", "slow"),
    "compositional": ("eu AND NOT premium", "eu OR slow", "NOT (eu AND slow)"),
    "inline": (
        "region = 'it''s' OR region IS NULL",
        "latency BETWEEN 10 AND 20.5 OR bytes % 7 = 3",
        "tier LIKE 'pre%' AND hour(event_time) = 0",
        "shop IN (1, 3) AND event_time < '2026-01-01 00:20:00'",
    ),
}
WINDOWS = {
    "sliding": "ORDER BY event_time RANGE INTERVAL '10' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE",
    "tumbling": "ORDER BY event_time RANGE INTERVAL '5' MINUTE PRECEDING SLIDE INTERVAL '5' MINUTE",
    "keyed": "PARTITION BY region, shop ORDER BY event_time "
    "RANGE INTERVAL '90' SECOND PRECEDING SLIDE INTERVAL '30' SECOND",
}


def query(aggregates: list[str], form: str, window: str, emit: str = "CHANGES") -> str:
    items = [f"{aggregate} AS a{i}" for i, aggregate in enumerate(aggregates)]
    for i, predicate in enumerate(PREDICATES[form]):
        for j, aggregate in enumerate(aggregates):
            items.append(
                f"SHAPLEY_ATTRIBUTE({aggregate}, {predicate} WITH (SHARE, LIFT)) AS s{i}_{j}"
            )
        items.append(f"SHAPLEY_DELTA({aggregates[0]}, {predicate}) AS d{i}")
    return (
        REGISTERED
        + f"SELECT {', '.join(items)} FROM events WHERE bytes IS NOT NULL OR latency < 60 "
        + f"WINDOW w AS ({WINDOWS[window]}) EMIT {emit};"
    )


def spread(spark: SparkSession, table: pa.Table, partitions: int, seed: int) -> DataFrame:
    shuffled = spark.createDataFrame(table).orderBy(F.xxhash64("event_time", "bytes", F.lit(seed)))
    return shuffled.repartition(partitions)


@pytest.mark.parametrize(
    ("aggregates", "form", "window", "partitions"),
    [
        (["SUM(latency)", "AVG(latency)"], "registered", "sliding", 1),
        (["AVG(latency)", "COUNT(*)"], "inline", "keyed", 2),
        (["VAR_POP(level)", "VAR_SAMP(level)"], "compositional", "tumbling", 7),
        pytest.param(
            ["VARIANCE(latency)", "SUM(bytes)"], "compositional", "keyed", 7, marks=pytest.mark.slow
        ),
        pytest.param(
            ["VAR_POP(latency * 2 - level)", "COUNT(shop)"],
            "inline",
            "sliding",
            2,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_every_answer_is_that_of_the_in_process_engine(
    spark: SparkSession, aggregates: list[str], form: str, window: str, partitions: int
) -> None:
    table = events(seed=partitions)
    script = query(aggregates, form, window)
    found = ids.spark.sql(script, events=spread(spark, table, partitions, 1))
    same(ids.sql(script, events=table), found.toArrow())


def test_bits_do_not_depend_on_partitions_or_order(spark: SparkSession) -> None:
    table = events(seed=3, rows=1_000)
    script = (
        "SELECT SUM(latency), SHAPLEY_ATTRIBUTE(VAR_SAMP(latency), region = 'EU') FROM events "
        f"WINDOW w AS ({WINDOWS['sliding']}) EMIT CHANGES"
    )
    # one query over copies of the table, each spread in its own way, under a key of its own
    copies = [(1, 1), (2, 2), (7, 3)]
    frames = [
        spread(spark, table, partitions, seed).withColumn("copy", F.lit(seed))
        for partitions, seed in copies
    ]
    keyed = script.replace("(ORDER BY", "(PARTITION BY copy ORDER BY")
    found = ids.spark.sql(keyed, events=frames[0].union(frames[1]).union(frames[2])).toArrow()
    expected = ids.sql(script, events=table)
    for _, seed in copies:
        own = found.filter(pc.equal(found["copy"], seed)).drop_columns(["copy"])
        same(expected, own)


def test_emit_final_gives_the_last_of_each_key(spark: SparkSession) -> None:
    table = events(seed=5, rows=800)
    script = query(["AVG(latency)"], "registered", "keyed", "FINAL")
    same(ids.sql(script, events=table), ids.spark.sql(script, events=table, spark=spark).toArrow())


@pytest.mark.slow
def test_more_predicates_than_a_word_has_bits(spark: SparkSession) -> None:
    table = events(seed=7, rows=500)
    items = ["AVG(latency) AS average", "SHAPLEY_DELTA(AVG(latency), cached) AS delta"]
    items += [
        f"SHAPLEY_ATTRIBUTE(VAR_POP(latency), latency > {8 * k} WITH (LIFT)) AS p{k}"
        for k in range(10)
    ]
    items += [f"SHAPLEY_ATTRIBUTE(COUNT(*), bytes % {k + 2} = 1) AS q{k}" for k in range(60)]
    script = (
        f"SELECT {', '.join(items)} FROM events WINDOW w AS ({WINDOWS['tumbling']}) EMIT CHANGES"
    )
    same(ids.sql(script, events=table), ids.spark.sql(script, events=table, spark=spark).toArrow())


def test_no_python_runs_in_a_time_window_query(spark: SparkSession) -> None:
    script = query(["VAR_POP(latency)"], "inline", "keyed")
    found = ids.spark.sql(script, events=spread(spark, events(seed=1, rows=100), 2, 1))
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "HashAggregate" in plan
    for node in ("Python", "Arrow", "Pandas", "UDF"):
        assert node not in plan


def test_no_rows_give_no_emits_and_a_bad_row_is_named(spark: SparkSession) -> None:
    table = events(seed=2, rows=50)
    script = query(["AVG(latency)"], "registered", "sliding")
    empty = spark.createDataFrame(table.slice(0, 0))
    same(ids.sql(script, events=table.slice(0, 0)), ids.spark.sql(script, events=empty).toArrow())
    values = table["latency"].to_pylist()
    values[17] = float("nan")
    bad = table.set_column(4, "latency", pa.array(values, "float64"))
    with pytest.raises(DataError) as in_process:
        ids.sql(script, events=bad)
    with pytest.raises(DataError) as on_spark:
        ids.spark.sql(script, events=bad, spark=spark)
    assert str(on_spark.value) == str(in_process.value)


def test_whole_numbers_beyond_the_doubles_count_as_the_nearest_one(spark: SparkSession) -> None:
    # the first two make a window, in which one more or less shows in the sum
    values = [2**53 + 1, 1, -(2**60) - 7, 2**62 + 3, None, 5]
    times = [1, 2, 1_500_000, 1_500_001, 1_500_002, 1_500_003]
    table = pa.table(
        {
            "at": pa.array(times, pa.timestamp("us", "UTC")),
            "x": pa.array(values, "int64"),
        }
    )
    script = (
        "SELECT SUM(x), VAR_POP(x), SHAPLEY_ATTRIBUTE(AVG(x), x > 9007199254740992) FROM t "
        "WINDOW w AS (ORDER BY at RANGE INTERVAL '1' SECOND PRECEDING SLIDE INTERVAL '1' SECOND) "
        "EMIT CHANGES"
    )
    same(ids.sql(script, t=table), ids.spark.sql(script, t=table, spark=spark).toArrow())


def test_a_game_that_panes_cannot_hold_is_refused_at_once(spark: SparkSession) -> None:
    with pytest.raises(ScriptError, match="M3 over a time window does not run on Spark"):
        ids.spark.sql(
            "SELECT M3(latency) FROM events WINDOW w AS (" + WINDOWS["sliding"] + ") EMIT CHANGES",
            events=events(seed=1, rows=10),
            spark=spark,
        )
