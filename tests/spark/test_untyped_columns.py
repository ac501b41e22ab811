"""A column that holds nothing, and has no type, is NULL in every condition, as in process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ids
from ids.errors import ScriptError
from ids.model import Expression
from ids.plan import Schema, planned
from ids.predicates import truth
from ids.source import open_table
from ids.spark import run_script
from ids.spark.expression_sql import compiled
from ids.spark.preflight import schema_at, source_schema
from ids.spark.spark_run import opened
from tests.spark.parity import plain

CONDITIONS = """
k = 'a' | k > 1 | k = x | k = b | k = k | k <=> NULL | k <=> 'a' | k < TIMESTAMP '2026-01-01 00:00'
k IN ('a', 'b') | k IN (1) | k LIKE 'a%' | k IS NULL | k BETWEEN 1 AND 2 | k IS TRUE
k IS NOT FALSE | k | NOT k | k AND b | k OR b | k + 1 > 0 | -k = 1 | k % 2 = 1
COALESCE(k, 'z') = 'z' | COALESCE(k, x) > 1 | LOWER(k) = 'a' | UPPER(k) LIKE 'A'
TRIM(k) = LOWER(k) | LENGTH(k) > 0 | HOUR(k) = 1 | YEAR(k) = 1 | ABS(k) = 1 | SQRT(k) > 1
"""
ASKED = [each.strip() for line in CONDITIONS.strip().splitlines() for each in line.split("|")]
WINDOW = "WINDOW w AS (ORDER BY t RANGE INTERVAL 3 SECOND PRECEDING SLIDE INTERVAL 1 SECOND)"
EVENTS = pa.table(
    {
        "t": pa.array([1_000_000, 2_000_000, 3_000_000], pa.timestamp("us")),
        "x": [1.0, 2.0, 3.5],
        "k": pa.nulls(3),
        "b": [True, False, True],
    }
)


def select() -> str:
    items = [f"SHAPLEY_ATTRIBUTE(SUM(x), {each}) AS a{n}" for n, each in enumerate(ASKED)]
    return f"SELECT {', '.join(items)} FROM e {WINDOW} EMIT CHANGES"


def test_every_condition_is_what_it_is_in_process(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(EVENTS, tmp_path / "e.parquet")
    pc.write_csv(EVENTS, tmp_path / "e.csv")
    rows = [f'{{"t": "1970-01-01 00:00:0{n}", "x": {n}, "k": null, "b": true}}' for n in (1, 2)]
    (tmp_path / "e.jsonl").write_text("\n".join(rows))
    data: list[Any] = [EVENTS, *(tmp_path / f"e.{kind}" for kind in ("parquet", "csv", "jsonl"))]
    for each, given in [*zip(data, data, strict=True), (spark.createDataFrame(EVENTS), EVENTS)]:
        frame, source = opened(spark, each, "e"), open_table(given, "e")
        here, there = (_predicates(schema) for schema in (source_schema(source), frame.schema))
        assert len(here) == len(there)
        table = source.read(source.schema)
        texts = [compiled(condition, frame.columns).text for condition in there]
        found = frame.data.selectExpr(*(f"({text}) AS c{n}" for n, text in enumerate(texts)))
        for condition, column in zip(here, found.toArrow().columns, strict=True):
            truths = [-1 if value is None else int(value) for value in column.to_pylist()]
            assert truths == truth(condition, table).tolist(), condition


def _predicates(schema: Schema) -> tuple[Expression, ...]:
    plan = next(planned(select(), lambda _: schema)).plan
    assert plan is not None
    return plan.predicates


def test_a_query_about_such_a_column_is_answered_as_in_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    pc.write_csv(EVENTS, tmp_path / "e.csv")
    place = tmp_path / "e.csv"
    right = plain(ids.sql(select(), e=place))
    assert plain(ids.spark.sql(select(), e=place, spark=spark).toArrow()) == right
    for condition in ("k", "NOT k", "LOWER(k) = 'a' OR b"):
        script = f"SELECT COUNT(*) AS c FROM e WHERE {condition} {WINDOW} EMIT CHANGES"
        right = plain(ids.sql(script, e=EVENTS))
        assert plain(ids.spark.sql(script, e=spark.createDataFrame(EVENTS)).toArrow()) == right


def test_a_declared_column_has_its_type(spark: SparkSession, tmp_path: Path) -> None:
    pc.write_csv(EVENTS, tmp_path / "e.csv")
    place = tmp_path / "e.csv"
    assert opened(spark, place, "e").schema == schema_at(str(place))
    assert schema_at(str(place)).kinds["k"] is None
    script = f"SELECT SHAPLEY_ATTRIBUTE(SUM(x), k = 'a') AS a FROM e {WINDOW} EMIT CHANGES"
    with pytest.raises(ScriptError, match="k is a number"):
        list(run_script(script, {"e": place}, spark=spark, schema={"e": "k BIGINT"}))
    (found,) = run_script(script, {"e": place}, spark=spark, schema={"e": "x DOUBLE"})
    assert plain(found.table.toArrow()) == plain(ids.sql(script, e=place))
