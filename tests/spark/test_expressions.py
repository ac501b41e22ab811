"""Any condition is on Spark what it is in process, three-valued, on wild values; so are cells."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ids.errors import DataError
from ids.language import parse_predicate
from ids.model import Expression, Not, Table, microseconds_of, parse_timestamp
from ids.predicates import bind, truth
from ids.source import to_table
from ids.spark import translated
from ids.spark.cell_columns import cells_of
from ids.spark.expression_sql import compiled
from ids.spark.frame import Frame
from tests.language.timestamps import OURS, REFUSED, TIMESTAMPS
from tests.predicates.strategies import COLUMNS, KINDS, conditions, guarded
from tests.predicates.strategies import rows as some_rows
from tests.predicates.strategies import table as table_of


def truths(spark: SparkSession, table: Table, conditions: list[Expression]) -> list[list[int]]:
    frame = Frame.of(spark.createDataFrame(to_table(table)))
    texts = [compiled(condition, frame.columns).text for condition in conditions]
    found = frame.data.selectExpr(*(f"({text}) AS c{i}" for i, text in enumerate(texts))).collect()
    return [[-1 if row[i] is None else int(row[i]) for row in found] for i in range(len(texts))]


def decisions(
    spark: SparkSession, table: Table, conditions: list[Expression], raw: tuple[str, ...] = ()
) -> list[list[bool]]:
    """Where each condition holds, as the cells tell."""
    frame = Frame.of(spark.createDataFrame(to_table(table)))
    decided = cells_of(conditions, frame.columns, raw)
    rows = frame.data.withColumns({name: F.expr(text) for name, text in decided.subjects})
    rows = rows.select(*(F.expr(text).alias(name) for name, text in decided.groups))
    found = rows.selectExpr(
        *(f"coalesce({text}, false) AS c{i}" for i, text in enumerate(decided.predicates))
    ).collect()
    return [[row[i] for row in found] for i in range(len(conditions))]


@settings(
    max_examples=5,
    phases=[Phase.generate],  # to shrink would run thousands of jobs
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(cells=some_rows(), wild=st.lists(conditions(), min_size=25, max_size=35))
def test_a_condition_is_the_same_in_the_jvm(
    spark: SparkSession, cells: list[dict[str, Any]], wild: list[Expression]
) -> None:
    assume(cells)
    table = table_of(cells)
    kept, expected = [], []
    for condition in wild:
        try:
            expected.append(truth(condition, table).tolist())
            kept.append(condition)
        except DataError:  # integers that leave 64 bits: refused on both sides
            continue
    for condition, theirs, ours in zip(kept, expected, truths(spark, table, kept), strict=True):
        assert ours == theirs, condition


@settings(
    max_examples=4,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    cells=some_rows(),
    wild=st.lists(conditions(), min_size=6, max_size=10),
    raw=st.sampled_from([(), ("s",), ("s", "t")]),
)
def test_a_cell_decides_every_predicate(
    spark: SparkSession, cells: list[dict[str, Any]], wild: list[Expression], raw: tuple[str, ...]
) -> None:
    assume(cells)
    table = table_of(cells)
    kept, expected = [], []
    # what is unknown shows only where it is negated: false and NULL hold nowhere
    for condition in (*wild, *map(Not, wild)):
        try:
            expected.append(truth(condition, table) == 1)
            kept.append(condition)
        except DataError:
            continue
    assume(kept)
    found = decisions(spark, table, kept, raw)
    for condition, ours, theirs in zip(kept, found, expected, strict=True):
        assert np.array_equal(ours, theirs), condition


@pytest.mark.slow
@settings(
    max_examples=2,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(cells=some_rows(), wild=st.lists(guarded(1), min_size=25, max_size=35))
def test_integers_leave_64_bits_on_the_same_rows_in_the_jvm(
    spark: SparkSession, cells: list[dict[str, Any]], wild: list[Expression]
) -> None:
    assume(cells)
    table = table_of(cells)
    kept, expected, refused = [], [], []
    for condition in wild:
        try:
            expected.append(truth(condition, table).tolist())
            kept.append(condition)
        except DataError:
            refused.append(condition)
    # side by side, so that Spark may share what they have in common
    for condition, theirs, ours in zip(kept, expected, truths(spark, table, kept), strict=True):
        assert ours == theirs, condition
    decided = decisions(spark, table, kept)
    for condition, theirs, held in zip(kept, expected, decided, strict=True):
        assert held == [each == 1 for each in theirs], condition
    for condition in refused[:4]:
        for look in (truths, decisions):
            with pytest.raises(DataError, match="overflow 64 bits; use doubles"), translated():
                look(spark, table, [condition])
                pytest.fail(str(condition))


def test_a_guard_keeps_a_query_from_integers_that_leave_64_bits(spark: SparkSession) -> None:
    import ids

    rows = {
        "at": [1, 2, 3, 4],
        "i": [1, 2**62, 5, None],
        "y": [None, 1, 2, 3],
    }
    script = (
        "SELECT SHAPLEY_ATTRIBUTE(SUM(y), i < 10 AND i * 4 > 5) AS p, SUM(COALESCE(y, i * 4)) AS s "
        "FROM t WHERE i IS NULL OR i < 1000 OR i * 4 - i > 7 OR y = 1 "
        "WINDOW w AS (ORDER BY at ROWS 2 PRECEDING) EMIT CHANGES"
    )
    with pytest.raises(DataError, match=r"integers in i \* 4 - i overflow 64 bits"):
        ids.sql(script, t=rows)
    script = script.replace("OR i * 4 - i > 7 OR y = 1", "OR y = 1 OR i * 4 - i > 7")
    expected = ids.sql(script, t=rows).to_pylist()
    assert [row["s"] for row in expected] == [4.0, 5.0, 3.0, 5.0]
    assert ids.spark.sql(script, t=rows).toArrow().to_pylist() == expected
    many = " + ".join(["i"] * 60)  # a text of 2**60 characters, if each part stood in it twice
    script = script.replace("i * 4 - i > 7", f"{many} > 7")
    assert ids.spark.sql(script, t=rows).toArrow().to_pylist() == expected


def test_integers_that_leave_64_bits_are_refused(spark: SparkSession) -> None:
    import ids

    script = (
        "SELECT SUM(x * x) FROM t WINDOW w AS (ORDER BY at RANGE INTERVAL '1' SECOND PRECEDING "
        "SLIDE INTERVAL '1' SECOND) EMIT CHANGES"
    )
    rows = spark.sql("SELECT timestamp_micros(1) AS at, 4611686018427387904L AS x")
    with pytest.raises(DataError, match="overflow 64 bits; use doubles"):
        ids.spark.sql(script, t=rows).collect()


@st.composite
def unparenthesised(draw: st.DrawFn) -> str:
    """A condition whose meaning is that of the precedences alone."""

    def number() -> str:
        first = draw(st.sampled_from(["i", "j", "-i", "+j"]))
        joints = st.sampled_from([" + ", " - ", " * ", "-", "*", " % 3 + "])
        other = st.tuples(joints, st.sampled_from(["i", "-j", "2", "-3"]))
        others = draw(st.lists(other, max_size=3))
        return first + "".join(f"{joint} {right}" for joint, right in others)

    def test() -> str:
        op = draw(
            st.sampled_from(
                ["b", "IS NULL", "BETWEEN", "IN", *["=", "<>", "<", "<=", ">", ">=", "<=>"]]
            )
        )
        negation = draw(st.sampled_from(["", "NOT "]))
        if op == "b":
            return draw(st.sampled_from(["b", "c", "b = c", "b IS NOT TRUE", "TRUE"]))
        if op == "BETWEEN":
            return f"{number()} {negation}BETWEEN {number()} AND {number()}"
        if op == "IN":
            return f"{number()} {negation}IN (1, -2, 0)"
        return f"{number()} {op}" + ("" if op == "IS NULL" else f" {number()}")

    tests = [draw(st.sampled_from(["", "NOT ", "!", "NOT NOT "])) + test() for _ in range(5)]
    joints = [draw(st.sampled_from([" AND ", " OR "])) for _ in tests]
    kept = draw(st.integers(1, 5))
    return "".join(map("".join, zip(tests[:kept], [*joints[: kept - 1], ""], strict=True)))


@settings(
    max_examples=3,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(texts=st.lists(unparenthesised(), min_size=30, max_size=40))
def test_operators_bind_as_in_spark(spark: SparkSession, texts: list[str]) -> None:
    cells = product([-2, 0, 3, None], [1, -5, None], [True, None], [False, True])
    rows = [dict.fromkeys(COLUMNS) | dict(zip("ijbc", cell, strict=True)) for cell in cells]
    table = table_of(rows)
    kinds = {name: KINDS[of] for name, of in COLUMNS.items()}
    ours = [truth(bind(parse_predicate(text), kinds), table).tolist() for text in texts]
    frame = spark.createDataFrame(to_table(table))
    found = frame.selectExpr(*(f"{text} AS c{n}" for n, text in enumerate(texts))).collect()
    for n, text in enumerate(texts):
        theirs = [-1 if row[n] is None else int(row[n]) for row in found]
        assert ours[n] == theirs, text


def test_texts_are_the_timestamps_that_spark_reads(spark: SparkSession) -> None:
    import ids

    texts = [*TIMESTAMPS, *REFUSED]
    rows = spark.createDataFrame([(text,) for text in texts], "text string")
    cast = [row[0] for row in rows.selectExpr("unix_micros(try_cast(text AS timestamp))").collect()]
    instants = [parse_timestamp(text) for text in texts]
    assert cast == [None if instant is None else microseconds_of(instant) for instant in instants]

    read = TIMESTAMPS | OURS
    both = [form for text in read for form in (f"'{text}'", f"TIMESTAMP '{text}'")]
    items = [f"SHAPLEY_ATTRIBUTE(COUNT(*), at >= {form}) AS a{i}" for i, form in enumerate(both)]
    window = "WINDOW w AS (ORDER BY at ROWS 99 PRECEDING) EMIT FINAL"
    script = f"SELECT {', '.join(items)} FROM t {window}"
    wanted = {datetime.fromisoformat(instant) for instant in read.values()}
    table = {"at": sorted({*wanted, *(at - timedelta(microseconds=1) for at in wanted)})}
    (here,) = ids.sql(script, t=table).to_pylist()
    assert ids.spark.sql(script, t=table).toArrow().to_pylist() == [here]
    assert all(here[f"a{i}"] == here[f"a{i + 1}"] > 0 for i in range(0, len(both), 2))
