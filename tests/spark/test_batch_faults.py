"""What goes wrong in a batch is one line, or set aside; no output looks whole that is not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ids
from ids.errors import IdsError, SourceError
from ids.sink import write_jsonl
from ids.spark import run_script, translated, write
from tests.spark.tables import events, same

WINDOW = "ORDER BY event_time RANGE INTERVAL '10' MINUTE PRECEDING SLIDE INTERVAL '1' MINUTE"
ITEMS = "AVG(latency) AS mean, SHAPLEY_ATTRIBUTE(AVG(latency), region = 'EU') AS phi"
QUERY = f"SELECT {ITEMS} FROM events WINDOW w AS ({WINDOW}) EMIT CHANGES;"


def parts(folder: Path, count: int, rows: int) -> list[Path]:
    folder.mkdir()
    files = [folder / f"part {number}.parquet" for number in range(count)]
    for number, file in enumerate(files):
        pq.write_table(events(number, rows), file, row_group_size=200)
    return files


def test_files_that_disagree_on_a_column_are_named_as_in_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    row = '{"event_time":"2024-01-01T00:00:00Z","region":"EU","latency":%s}\n'
    for name, value in {"a.jsonl": "1", "b.jsonl": '"lots"'}.items():
        (tmp_path / name).write_text(row % value)
    with pytest.raises(IdsError) as here:
        ids.sql(QUERY, events=tmp_path)
    with pytest.raises(IdsError) as there:
        ids.spark.sql(QUERY, spark=spark, events=str(tmp_path))
    assert "column 'latency' is number in a.jsonl, but text in b.jsonl" in str(here.value)
    assert str(there.value) == str(here.value)


# ── corrupt files ────────────────────────────────────────────────────────────────────────────────


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def overwritten(file: Path) -> None:
    held = bytearray(file.read_bytes())
    held[4 : len(held) // 2] = os.urandom(len(held) // 2 - 4)
    file.write_bytes(held)


@pytest.mark.parametrize("spoil", [cut_short, overwritten])
def test_a_corrupt_file_among_good_ones_is_named_in_one_line(
    spark: SparkSession, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    _, second, _ = parts(tmp_path / "in", 3, 500)
    spoil(second)
    out = tmp_path / "out.parquet"
    with pytest.raises(SourceError) as caught, translated():
        write(ids.spark.sql(QUERY, spark=spark, events=str(tmp_path / "in")), out)
    assert str(second) in str(caught.value) and "\n" not in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


# ── the disk is full ─────────────────────────────────────────────────────────────────────────────


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "ids-test", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no small disk can be had: {error}")
    if done.returncode:
        pytest.skip(f"no small disk can be had: {done.stderr.strip()}")
    try:
        yield
    finally:
        # lazily: Spark keeps a file open that it could not write to its end
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.jsonl", "out/"])
@pytest.mark.parametrize("size", ["64k", "400k"])  # too small for the spool, or for the file
def test_a_full_disk_is_one_line_and_leaves_nothing_behind(
    spark: SparkSession, tmp_path: Path, name: str, size: str
) -> None:
    noise = spark.range(40_000).selectExpr("id AS n", "rand(7) AS phi").coalesce(1)
    with small_disk(tmp_path / "disk", size):
        target = f"{tmp_path}/disk/{name}"
        with pytest.raises(IdsError) as caught:
            write(noise, target)
        assert "\n" not in str(caught.value)
        assert "No space left on device" in str(caught.value) or "no space left" in str(
            caught.value
        )
        assert list((tmp_path / "disk").iterdir()) == []


# ── bad rows ─────────────────────────────────────────────────────────────────────────────────────


def soiled(seed: int, rows: int) -> pa.Table:
    """Events, a few without an event time, or with a measure that is no number."""
    rng = np.random.default_rng(seed)
    table = events(seed, rows).select(["event_time", "region", "latency", "level"])
    for name, share in (("event_time", 0.04), ("latency", 0.06), ("level", 0.06)):
        column, spoilt = table[name].combine_chunks(), pa.array(rng.random(rows) < share)
        worst = None if name == "event_time" else float("nan" if seed % 2 else "inf")
        spoiled = pa.compute.if_else(spoilt, pa.scalar(worst, column.type), column)
        table = table.set_column(table.column_names.index(name), name, spoiled)
    return table


def written(folder: Path, form: str) -> Path:
    folder.mkdir()
    for seed in range(3):
        table, file = soiled(seed, 150), folder / f"part {seed}.{form}"
        if form == "parquet":
            pq.write_table(table, file, row_group_size=40)
        elif form == "csv":
            pa.csv.write_csv(table, file)
        else:
            with file.open("wb") as stream:
                write_jsonl(table, stream)
    return folder


TWICE = QUERY + (
    "SELECT SUM(level) AS s, COUNT(latency) AS c FROM events WHERE region <> 'US' OR level > 0 "
    "WINDOW w AS (PARTITION BY region ORDER BY event_time ROWS 30 PRECEDING) EMIT CHANGES;"
)


@contextmanager
def in_small_pieces(spark: SparkSession) -> Iterator[None]:
    """Several tasks a file, and several files a task."""
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = [spark.conf.get(name) for name in names]
    try:
        for name, value in zip(names, ("4000", "0"), strict=True):
            spark.conf.set(name, value)
        yield
    finally:
        for name, usual in zip(names, before, strict=True):
            assert usual is not None
            spark.conf.set(name, usual)


@pytest.mark.parametrize("form", ["parquet", "csv", pytest.param("jsonl", marks=pytest.mark.slow)])
def test_bad_rows_set_aside_are_those_of_the_in_process_engine(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    data = written(tmp_path / "in", form)
    expected = list(ids.query.run_script(TWICE, {"events": data}, bad_rows=tmp_path / "ours"))
    with in_small_pieces(spark):
        tables = {"events": data}
        found = list(run_script(TWICE, tables, spark=spark, bad_rows=tmp_path / "theirs"))
        for ours, theirs in zip(expected, found, strict=True):
            assert ours.bad_rows == theirs.bad_rows > 0
            same(ours.table, theirs.table.toArrow())
    ours, theirs = (
        pq.read_table(tmp_path / side / "events.parquet") for side in ("ours", "theirs")
    )
    twice = any("; " in reason for reason in ours["ids_reason"].to_pylist())
    assert twice or form == "jsonl"  # JSON has no NaN
    same(_bits(ours), _bits(theirs))


def _bits(table: pa.Table) -> pa.Table:
    """NaN is not equal to itself: doubles as texts."""
    for number, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            table = table.set_column(number, field.name, table[number].cast(pa.string()))
    return table


def test_a_bad_row_is_named_as_in_process(spark: SparkSession, tmp_path: Path) -> None:
    data = written(tmp_path / "in", "parquet")
    script = TWICE.split(";")[1] + ";"
    with pytest.raises(IdsError) as ours:
        ids.sql(script, events=data)
    with in_small_pieces(spark), pytest.raises(IdsError) as theirs:
        ids.spark.sql(script, spark=spark, events=data)
    assert str(theirs.value) == str(ours.value)


def test_bad_rows_of_a_dataframe_are_numbered_before_where(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = soiled(1, 500).append_column("place", pa.array(range(500)))
    spread = spark.createDataFrame(table).repartitionByRange(4, "place")
    data = spread.sortWithinPartitions("place")
    list(ids.query.run_script(TWICE, {"events": table}, bad_rows=tmp_path / "ours"))
    list(run_script(TWICE, {"events": data}, bad_rows=tmp_path / "theirs"))
    ours, theirs = (
        pq.read_table(tmp_path / side / "events.parquet") for side in ("ours", "theirs")
    )
    same(_bits(ours), _bits(theirs))
