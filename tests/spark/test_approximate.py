"""APPROXIMATE on Spark gives the table of ``ids.sql``: the same rows drawn, the same bits."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import ids
from ids.errors import ScriptError
from ids.plan import planned
from ids.source import open_table, to_table
from ids.spark.count_windows import count_windows
from ids.spark.frame import Frame
from ids.spark.spark_prepare import Ready
from ids.state import contents, priorities, tie_breaks
from tests.spark.tables import events, same

WINDOWS = {
    "sliding": "ORDER BY event_time RANGE INTERVAL '10' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE",
    "tumbling": "ORDER BY event_time RANGE INTERVAL '5' MINUTE PRECEDING SLIDE INTERVAL '5' MINUTE",
    "keyed": "PARTITION BY tier ORDER BY event_time "
    "RANGE INTERVAL '5' MINUTE PRECEDING SLIDE INTERVAL '10' SECOND",
    "rows": "ORDER BY event_time ROWS 400 PRECEDING SLIDE 70 ROWS",
    "keyed rows": "PARTITION BY region ORDER BY event_time ROWS 200 PRECEDING SLIDE 9 ROWS",
}


def sampled(
    aggregate: str, predicate: str, size: int, more: str = "", kind: str = "ATTRIBUTE"
) -> str:
    parts = " WITH (SHARE, LIFT)" if kind == "ATTRIBUTE" and size != 20 else ""
    sample = f"APPROXIMATE USING RESERVOIR SAMPLE {size}{more}"
    return f"SHAPLEY_{kind}({aggregate}, {predicate}{parts} {sample})"


SLOW = "latency > 40 AND NOT cached"
LATENCY = [
    "AVG(latency)",
    "SHAPLEY_DELTA(AVG(latency), region = 'EU')",
    sampled("AVG(latency)", "region = 'EU'", 40),
    sampled("AVG(latency)", SLOW, 40, " CONFIDENCE 0.8"),
    sampled("AVG(latency)", SLOW, 20),
    sampled("VAR_SAMP(latency)", SLOW, 33),
    sampled("SUM(latency)", SLOW, 40, " CONFIDENCE 0.5", kind="DELTA"),
]
OTHERS = [
    sampled("VAR_POP(latency + 1e12)", SLOW, 33),
    sampled("AVG(latency + 1e12)", SLOW, 33),
    sampled("SUM(bytes)", "region IS NULL", 5) + " AS `odd.name`",
    sampled("COUNT(*)", "tier = 'basic'", 40),
    sampled("COUNT(shop)", "tier = 'basic'", 40),
    sampled("VAR_POP(level)", "cached", 24, kind="DELTA"),
]
ITEMS = LATENCY + OTHERS


def query(window: str, items: list[str], emit: str = "CHANGES") -> str:
    return (
        f"SELECT {', '.join(items)} FROM events WHERE bytes IS NOT NULL OR latency < 60 "
        f"WINDOW w AS ({WINDOWS[window]}) EMIT {emit}"
    )


def repeated(seed: int) -> pa.Table:
    """Events with rows that are there several times, and one value that very many have."""
    table = events(seed, rows=2_000)
    latency = table["latency"].to_numpy().copy()
    latency[::3] = 50.0
    latency[::40] = math.nan
    column = pa.array(latency, from_pandas=True)
    table = table.set_column(table.schema.get_field_index("latency"), "latency", column)
    return pa.concat_tables([table, table.slice(0, 300), table.slice(0, 50)])


def spread(spark: SparkSession, table: pa.Table, partitions: int, seed: int) -> DataFrame:
    shuffled = spark.createDataFrame(table).orderBy(F.xxhash64("event_time", "bytes", F.lit(seed)))
    return shuffled.repartition(partitions)


@pytest.mark.parametrize(
    ("window", "items", "partitions", "emit"),
    [
        ("sliding", LATENCY, 2, "CHANGES"),
        pytest.param("keyed", OTHERS, 7, "CHANGES", marks=pytest.mark.slow),
        ("tumbling", LATENCY[2:4] + OTHERS[2:4], 1, "FINAL"),
    ],
    ids=["sliding", "keyed", "tumbling"],
)
def test_time_windows_are_sampled_as_in_process(
    spark: SparkSession, window: str, items: list[str], partitions: int, emit: str
) -> None:
    table = repeated(partitions)
    script = query(window, items, emit)
    expected = ids.sql(script, events=table, seed=partitions)
    errors = np.concatenate(
        [expected[n].to_numpy() for n in expected.column_names if "_error" in n]
    )
    assert (errors > 0).mean() > 0.1, "some windows are sampled"
    if window != "tumbling":
        assert (errors == 0).mean() > 0.02, "some are not"
    frame = spread(spark, table, partitions, 1)
    same(expected, ids.spark.sql(script, events=frame, seed=partitions).toArrow())


@pytest.mark.parametrize(
    ("window", "target", "emit"),
    [("rows", 500, "CHANGES"), ("keyed rows", None, "CHANGES"), ("keyed rows", 300, "FINAL")],
)
def test_count_windows_are_sampled_as_in_process(
    spark: SparkSession, window: str, target: int | None, emit: str
) -> None:
    table = repeated(5)
    script = query(window, ITEMS, emit)
    expected = ids.sql(script, events=table)
    # rows at one instant are told apart by their order in the input, so the frame must keep it
    frame = Frame.of(spark.createDataFrame(table).coalesce(1))
    plan = next(planned(script, lambda _: frame.schema)).plan
    assert plan is not None
    same(expected, count_windows(plan, frame, _no_faults, target).toArrow())


def _no_faults(rows: Ready, faults: int) -> None:
    raise AssertionError(f"{faults} faults")


def test_a_seed_draws_other_rows(spark: SparkSession) -> None:
    table = events(1, rows=500)
    script = (
        f"SELECT {sampled('AVG(latency)', 'cached', 40)} AS a, "
        f"SHAPLEY_ATTRIBUTE(AVG(latency), cached) AS b FROM events "
        f"WINDOW w AS ({WINDOWS['tumbling']}) EMIT CHANGES"
    )
    frame = spark.createDataFrame(table)
    some, others = (ids.spark.sql(script, events=frame, seed=s).toArrow() for s in (0, -(2**63)))
    assert some["a"] != others["a"]
    assert some["b"] == others["b"]
    assert some.schema.field("a_mechanism").type == pa.string()
    assert set(some["a_mechanism"].to_pylist()) == {"sample"}


def test_hashes_are_those_of_spark(spark: SparkSession) -> None:
    texts = ["", "a", "abcd", "Oslo, Ørsta", "x" * 31, "y" * 32, "ß" * 33, "z" * 100, None]
    numbers = [0.0, -0.0, 1.0, -1.5, 1e300, 5e-324, math.nan, math.inf, None]
    wholes = [0, 1, -1, 2**62, -(2**63), 2**53 + 1, 7, 42, None]
    flags = [True, False, None] * 3
    instants = [0, 1, -1, 10**15, -(10**15), 5, 6, 7, None]
    table = pa.table(
        {
            "s": pa.array(texts, "string"),
            "x": pa.array(numbers, "float64"),
            "k": pa.array(wholes, "int64"),
            "b": pa.array(flags, "bool"),
            "t": pa.array(instants, pa.timestamp("us", "UTC")),
        }
    )
    source = open_table(table, "t")
    read = source.read(source.schema)
    seed = -123456789
    own = contents(read, ["s", "x", "k", "b", "t"], seed)
    frame = spark.createDataFrame(to_table(read)).coalesce(1)
    far = "if(k > 9007199254740992L OR k < -9007199254740992L, k, NULL)"
    each = f"xxhash64(s), xxhash64(x), xxhash64(double(k), {far}), xxhash64(bigint(b))"
    content = f"xxhash64(bigint({seed}), {each}, xxhash64(unix_micros(t)))"
    theirs = frame.selectExpr(
        f"{content} AS content",
        f"xxhash64({content}, 0L) AS priority",
        f"xxhash64(xxhash64({content}, 0L)) AS tie",
    ).toArrow()
    assert len(set(own.tolist())) == len(own)
    assert theirs["content"].to_pylist() == own.tolist()
    assert theirs["priority"].to_pylist() == priorities(own).tolist()
    assert theirs["tie"].to_pylist() == tie_breaks(priorities(own)).tolist()


def test_a_sample_that_no_pane_holds_is_refused(spark: SparkSession) -> None:
    script = (
        "SELECT SHAPLEY_ATTRIBUTE(AVG(latency), cached APPROXIMATE USING RESERVOIR SAMPLE 90000)"
        f" FROM events WINDOW w AS ({WINDOWS['tumbling']}) EMIT CHANGES"
    )
    with pytest.raises(ScriptError, match=r"90,000 rows over a time window .* at most 80,000"):
        ids.spark.sql(script, events=events(1, rows=10))


def test_many_predicates_are_sampled_as_in_process(spark: SparkSession) -> None:
    table = events(9, rows=600)
    items = [sampled("AVG(latency)", f"bytes % 11 = {n}", 16) for n in range(10)]
    script = (
        f"SELECT COUNT(*), {', '.join(items)} FROM events "
        f"WINDOW w AS ({WINDOWS['tumbling']}) EMIT CHANGES"
    )
    found = ids.spark.sql(script, events=spark.createDataFrame(table)).toArrow()
    same(ids.sql(script, events=table), found)
