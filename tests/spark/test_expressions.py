"""Any condition is on Spark what it is in process, three-valued, on wild values; so are cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from ids.engine.arrow import to_table
from ids.errors import DataError
from ids.model.expression import Expression
from ids.model.table import Table
from ids.predicates.truth import truth
from ids.spark.cells import cells_of
from ids.spark.expressions import compiled
from ids.spark.frames import Frame
from tests.predicates.strategies import conditions
from tests.predicates.strategies import rows as some_rows
from tests.predicates.strategies import table as table_of


def truths(spark: SparkSession, table: Table, conditions: list[Expression]) -> list[list[int]]:
    frame = Frame.of(spark.createDataFrame(to_table(table)))
    texts = [compiled(condition, frame.columns).text for condition in conditions]
    found = frame.data.selectExpr(*(f"({text}) AS c{i}" for i, text in enumerate(texts))).collect()
    return [[-1 if row[i] is None else int(row[i]) for row in found] for i in range(len(texts))]


@settings(
    max_examples=8,
    phases=[Phase.generate],  # to shrink would run thousands of jobs
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(cells=some_rows(), wild=st.lists(conditions(), min_size=15, max_size=25))
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
    max_examples=6,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    cells=some_rows(),
    wild=st.lists(conditions(), min_size=5, max_size=12),
    raw=st.sampled_from([(), ("s",), ("s", "t")]),
)
def test_a_cell_decides_every_predicate(
    spark: SparkSession, cells: list[dict[str, Any]], wild: list[Expression], raw: tuple[str, ...]
) -> None:
    assume(cells)
    table = table_of(cells)
    kept, expected = [], []
    for condition in wild:
        try:
            expected.append(truth(condition, table) == 1)
            kept.append(condition)
        except DataError:
            continue
    assume(kept)
    frame = Frame.of(spark.createDataFrame(to_table(table)))
    decided = cells_of(kept, frame.columns, raw)
    rows = frame.data.withColumns({name: F.expr(text) for name, text in decided.subjects})
    rows = rows.select(*(F.expr(text).alias(name) for name, text in decided.groups))
    found = rows.selectExpr(
        *(f"coalesce({text}, false) AS c{i}" for i, text in enumerate(decided.predicates))
    ).collect()
    for i, holds in enumerate(expected):
        assert np.array_equal([row[i] for row in found], holds), kept[i]


def test_integers_that_leave_64_bits_are_refused(spark: SparkSession) -> None:
    import ids

    script = (
        "SELECT SUM(x * x) FROM t WINDOW w AS (ORDER BY at RANGE INTERVAL '1' SECOND PRECEDING "
        "SLIDE INTERVAL '1' SECOND) EMIT CHANGES"
    )
    rows = spark.sql("SELECT timestamp_micros(1) AS at, 4611686018427387904L AS x")
    with pytest.raises(DataError, match="leave 64 bits; compute in doubles"):
        ids.spark.sql(script, t=rows).collect()
