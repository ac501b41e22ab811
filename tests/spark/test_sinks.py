"""Results leave Spark as ``ids.sink`` would write them: whole, in order, or not at all."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from ids import sink
from ids.errors import DataError, SinkError
from ids.sink import faults_named, opened, resolve
from ids.spark import spark_write as sinks

SCHEMA = pa.schema(
    [
        ("region", pa.string()),
        ("emit_at", pa.timestamp("us", "UTC")),
        ("n", pa.int64()),
        ("ok", pa.bool_()),
        ("phi", pa.float64()),
    ]
)
SUFFIXES = ["parquet", "csv", "jsonl"]

texts = st.one_of(st.none(), st.text(st.characters(codec="utf-8", exclude_characters="\0")))
rows = st.tuples(
    texts,
    st.one_of(st.none(), st.integers(-(10**15), 10**16)),
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
    st.one_of(st.none(), st.booleans()),
    st.one_of(st.none(), st.floats(allow_nan=False)),
)


def table_of(given_rows: list[Any]) -> pa.Table:
    columns = list(zip(*given_rows, strict=True)) or [()] * len(SCHEMA)
    arrays = [
        pa.array(c, pa.int64()).cast(f.type)
        if pa.types.is_timestamp(f.type)
        else pa.array(c, f.type)
        for c, f in zip(columns, SCHEMA, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def written_to(target: str, batches: Iterable[pa.RecordBatch]) -> int:
    place = resolve(target)
    with faults_named(target), opened(place) as stream:
        return sinks.write_batches(batches, SCHEMA, stream, place.format)


def leftovers(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(st.lists(rows, max_size=30), st.lists(st.integers(0, 12), max_size=6))
def test_batches_become_the_very_bytes_of_the_whole_table(
    tmp_path_factory: pytest.TempPathFactory,
    suffix: str,
    given_rows: list[Any],
    cuts: list[int],
) -> None:
    folder = tmp_path_factory.mktemp("out")
    table = table_of(given_rows)
    batches: list[pa.RecordBatch] = []
    start = 0
    for size in [*cuts, table.num_rows]:
        batches += table.slice(start, size).to_batches() or [pa.RecordBatch.from_pylist([], SCHEMA)]
        start += size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sinks, "_GROUP", 7)
        written = written_to(f"{folder}/a.{suffix}", batches)
    assert written == sink.write(table, folder / f"b.{suffix}") == table.num_rows
    ours, theirs = folder / f"a.{suffix}", folder / f"b.{suffix}"
    if suffix == "parquet":  # the row groups differ
        assert pq.read_table(ours).equals(pq.read_table(theirs))
        assert pq.read_schema(ours).equals(pq.read_schema(theirs))
    else:
        assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("suffix", [*SUFFIXES, "/"])
@settings(max_examples=3, suppress_health_check=list(HealthCheck))
@given(st.lists(rows, max_size=20))
def test_a_dataframe_is_written_as_the_table_it_is(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    suffix: str,
    given_rows: list[Any],
) -> None:
    folder = tmp_path_factory.mktemp("out")
    table = table_of(given_rows)
    frame = spark.createDataFrame(table)
    names = ("here/", "there/") if suffix == "/" else (f"a.{suffix}", f"b.{suffix}")
    assert sinks.write(frame, f"{folder}/{names[0]}") == table.num_rows
    sink.write(table, f"{folder}/{names[1]}")
    assert leftovers(folder) == sorted(name.rstrip("/") for name in names)
    ours, theirs = (folder / name for name in names)
    if suffix == "/":
        done, *parts = leftovers(ours)
        assert done == "_SUCCESS"
        assert parts == [f"part-{number:05d}.parquet" for number in range(len(parts))]
        whole = pa.concat_tables([pq.read_table(ours / part) for part in parts])
        assert whole.equals(pq.read_table(theirs))
        ours, theirs = ours / parts[0], theirs / "part-00000.parquet"
        assert pq.read_schema(ours).equals(pq.read_schema(theirs))
    elif suffix == "parquet":
        assert pq.read_table(ours).equals(pq.read_table(theirs))
        assert pq.read_schema(ours).equals(pq.read_schema(theirs))
    else:
        assert ours.read_bytes() == theirs.read_bytes()


def test_the_order_of_the_result_is_the_order_of_the_file(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.range(0, 50_000, 1, 5).selectExpr("id AS n").orderBy("n", ascending=False)
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    try:
        assert sinks.write(frame, tmp_path / "out.csv") == 50_000
        assert frame.rdd.getNumPartitions() > 1
    finally:
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
    lines = (tmp_path / "out.csv").read_text().split()
    assert lines == ["n", *map(str, range(49_999, -1, -1))]


def test_an_earlier_output_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    for _ in range(2):
        sinks.write(spark.range(3), tmp_path / "a.parquet")
        sinks.write(spark.range(3), f"{tmp_path}/dir/")
    assert leftovers(tmp_path) == ["a.parquet", "dir"]
    assert pq.read_table(tmp_path / "a.parquet").column("id").to_pylist() == [0, 1, 2]


@pytest.mark.parametrize("target", ["a.parquet", "a.csv", "a.jsonl", "dir/"])
def test_a_job_that_fails_leaves_what_was_there(
    spark: SparkSession, tmp_path: Path, target: str
) -> None:
    failing = spark.range(9).selectExpr(
        "IF(id > 7, CAST(raise_error('row 8 is bad; mend it') AS LONG), id) AS n"
    )
    with pytest.raises(DataError, match=r"^row 8 is bad; mend it$"):
        sinks.write(failing, f"{tmp_path}/{target}")
    assert leftovers(tmp_path) == []
    sinks.write(spark.range(3), f"{tmp_path}/{target}")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(DataError):
        sinks.write(failing, f"{tmp_path}/{target}")
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("target", ["a.parquet", "a.csv", "a.jsonl", "dir/"])
def test_a_disk_that_fills_up_is_one_line_and_leaves_nothing(tmp_path: Path, target: str) -> None:
    def batches() -> Any:
        yield table_of([("x", 0, 1, True, 0.5)]).to_batches()[0]
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(SinkError, match=r"cannot write .*No space left on device"):
        written_to(f"{tmp_path}/{target}", batches())
    assert leftovers(tmp_path) == []


def test_what_cannot_be_written_is_refused_before_any_work(
    spark: SparkSession, tmp_path: Path
) -> None:
    for target in ("out.xlsx", "nowhere/out.csv"):
        with pytest.raises(SinkError):
            sinks.write(spark.range(1), tmp_path / target)
    with pytest.raises(SinkError, match=r"cannot write column 'a' \(array<int>\); write numbers"):
        sinks.write(spark.sql("SELECT array(1) AS a"), tmp_path / "out.parquet")
    assert leftovers(tmp_path) == []
