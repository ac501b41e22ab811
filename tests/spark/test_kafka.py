"""Kafka in and out: topics at rest on a real broker, in the slow set, and the rest without one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from ids.errors import SourceError
from ids.source import declared
from ids.spark import is_kafka, packages_for, read, session
from ids.spark.kafka_topic import MALFORMED, Topic, decoded, messages, struct_of
from tests.spark.broker import Kafka
from tests.spark.kafka_jobs import MESSAGES, SCHEMA

# 2024-01-01T00:00:00.5Z, and 2024-03-31 02:30:00 without a zone
READ = [
    ["eu", 1.5, 9007199254740993, 1704067200500000, None],
    [None, None, None, 1711852200000000, None],
    [None, None, None, None, "{not json"],
    ["us", None, None, None, '{"region": "us", "latency": "slow"}'],
    [None, None, None, None, ""],
]


@pytest.fixture(scope="module")
def jobs(kafka: Kafka) -> dict[str, Any]:
    """What was read and written."""
    result: dict[str, Any] = kafka.run("round_trip")
    return result


@pytest.mark.slow
def test_a_topic_is_read_as_a_batch_and_as_a_stream_alike(jobs: dict[str, Any]) -> None:
    assert jobs["batch"] == READ
    assert jobs["stream"] == READ


@pytest.mark.slow
def test_a_result_reaches_a_topic_with_its_keys(jobs: dict[str, Any]) -> None:
    count, rows = jobs["written"]
    assert count == 2
    assert sorted(value["n"] for _, value in rows) == [1, 3]
    for key, value in rows:
        assert key == {"region": value["region"]}
        assert set(value) == {"region", "emit_at", "n", "phi"}
    assert {value["emit_at"] for _, value in rows} == {
        "2024-01-01T00:00:00.250000Z",
        "1969-12-31T23:59:59.000000Z",
    }


@pytest.mark.slow
def test_a_broker_or_a_topic_that_is_not_there_is_one_line(jobs: dict[str, Any]) -> None:
    assert jobs["no broker"].startswith("SourceError: cannot connect to a Kafka broker")
    assert jobs["unknown topic"].startswith("SourceError: the Kafka topic does not exist")


def test_messages_that_are_no_such_object_are_kept_apart(spark: SparkSession) -> None:
    rows = [(text, "t", 0, place) for place, text in enumerate(MESSAGES)]
    sent = spark.createDataFrame(rows, "value STRING, topic STRING, partition INT, offset BIGINT")
    table = decoded(sent, struct_of(declared(SCHEMA))).orderBy("ids_origin")
    shown = table.selectExpr("region", "latency", "hits", "unix_micros(at)", MALFORMED)
    assert [list(row) for row in shown.collect()] == READ


def test_a_message_is_the_json_of_its_row(spark: SparkSession) -> None:
    result = spark.sql("SELECT 'it''s' AS `a b`, TIMESTAMP'1969-12-31 23:59:59.5Z' AS t, NULL AS n")
    (row,) = messages(result, ["a b"]).collect()
    assert json.loads(row.key) == {"a b": "it's"}
    assert json.loads(row.value) == {"a b": "it's", "t": "1969-12-31T23:59:59.500000Z", "n": None}
    (row,) = messages(result).collect()
    assert row.key is None


def test_the_connector_is_of_sparks_own_version(spark: SparkSession) -> None:
    assert packages_for(["a.parquet", "b/"]) == []
    (package,) = packages_for(["a.parquet", "kafka://h/t"])
    assert package == f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"


@pytest.mark.parametrize(
    ("conf", "fetched"),
    [
        ({}, "g:a_2.13:1"),
        ({"spark.jars": "/j/a_2.12-1.jar"}, "g:a_2.13:1"),
        ({"spark.jars": "/j/b-1.jar,/j/a_2.13-2.jar"}, None),
        ({"spark.jars.packages": "g:b:1"}, "g:b:1,g:a_2.13:1"),
        ({"spark.jars.packages": "g:a_2.13:2,g:b:1"}, "g:a_2.13:2,g:b:1"),
    ],
)
def test_a_connector_that_the_settings_give_is_not_fetched(
    monkeypatch: pytest.MonkeyPatch, conf: dict[str, str], fetched: str | None
) -> None:
    monkeypatch.setattr(session, "_started", lambda settings, *_, **__: settings)
    settings: Any = session.local_session("local[1]", packages=["g:a_2.13:1"], **conf)
    assert settings.get("spark.jars.packages") == fetched


@pytest.mark.parametrize(
    ("place", "servers", "options"),
    [
        ("kafka://h/t", "h:9092", {}),
        ("kafka://h:1,g/t?a=b%20c&d=", "h:1,g:9092", {"a": "b c", "d": ""}),
        ("kafka://[::1]:9093/t", "[::1]:9093", {}),
    ],
)
def test_a_topic_has_servers_a_name_and_options(
    place: str, servers: str, options: dict[str, str]
) -> None:
    assert is_kafka(place)
    assert Topic.parse(place) == Topic(servers, "t", options)


@pytest.mark.parametrize("place", ["kafka://", "kafka://h", "kafka://h/", "kafka:///t"])
def test_a_place_without_a_topic_is_refused(place: str) -> None:
    with pytest.raises(SourceError, match="names no topic; use kafka://host"):
        Topic.parse(place)


def test_a_topic_needs_a_schema_that_can_be_read(spark: SparkSession) -> None:
    with pytest.raises(SourceError, match=r"declare its columns with schema="):
        read(spark, "kafka://h/t")
    with pytest.raises(SourceError, match="unknown type STRNG"):
        read(spark, "kafka://h/t", schema="a STRNG,")
