"""What a stream reads: directories, empty ones too, and files that store a column differently."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ids
from ids.errors import SourceError
from ids.spark import Stream, start

SCRIPT = """SELECT SUM(x) AS s, SHAPLEY_ATTRIBUTE(AVG(y), k = 'a') AS a, COUNT(*) AS c FROM e
WINDOW w AS (ORDER BY ts RANGE INTERVAL '20' SECOND PRECEDING SLIDE INTERVAL '10' SECOND)
EMIT CHANGES"""
SCHEMA = "ts EPOCH_SECONDS, x DOUBLE, y DOUBLE, k STRING"


def arrived(path: Path, table: pa.Table, number: int) -> None:
    pq.write_table(table, path)
    os.utime(path, (1_000_000_000 + number,) * 2)


def ended(running: Stream) -> pa.Table:
    running.await_termination()
    return running.table()


def test_files_that_store_a_column_in_another_width_are_one_stream(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    stored = [
        (pa.timestamp("ms"), pa.int32(), pa.float32(), pa.string()),
        (pa.timestamp("us", "UTC"), pa.int64(), pa.float64(), pa.large_string()),
        (pa.timestamp("us"), pa.int16(), pa.float32(), pa.dictionary(pa.int8(), pa.string())),
        (pa.timestamp("ms", "UTC"), pa.uint32(), pa.float64(), pa.string()),
    ]
    for number, (time, whole, broken, text) in enumerate(stored):
        ticks = pa.array(range(number * 10_000, number * 10_000 + 10_000, 1_000))
        instants = ticks.cast(pa.timestamp("ms")).cast(time)
        table = pa.table(
            {
                "ts": instants,
                "x": pa.array(range(10), whole),
                "y": pa.array([k / 4 for k in range(10)], broken),
                "k": pa.array(["a", "b"] * 5, text),
            }
        )
        arrived(folder / f"{number}.parquet", table, number)
    days = tmp_path / "days"
    days.mkdir()
    for number, time in enumerate([pa.date32(), pa.timestamp("us")]):
        day = pa.array([number, number], pa.int32()).cast(pa.date32()).cast(time)
        arrived(days / f"{number}.parquet", pa.table({"ts": day, "x": [1, 2]}), number)
    daily = SCRIPT.replace("AVG(y), k = 'a'", "AVG(x), x > 1").replace("SECOND", "DAY")
    for script, place in ((SCRIPT, folder), (daily, days)):
        options: dict[str, Any] = {
            "checkpoint": tmp_path / f"ck-{place.name}",
            "available_now": True,
        }
        found = ended(start(script, spark=spark, e=place, max_ahead="3 days", **options))
        whole = ids.sql(script, e=place)
        assert 0 < found.num_rows == whole.num_rows - 1
        assert found.equals(whole.slice(0, found.num_rows))


def test_a_stream_waits_for_the_first_file_of_an_empty_directory(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    options: dict[str, Any] = {"checkpoint": tmp_path / "ck", "spark": spark, "e": folder}
    with pytest.raises(SourceError, match=r"in contains no data files yet; declare their columns"):
        start(SCRIPT, available_now=True, **options)
    nothing = start(SCRIPT, available_now=True, schema=SCHEMA, **options)
    assert ended(nothing).num_rows == 0
    rows = "".join(f"{k}.5,{k},{k},a\n" for k in range(60))

    def arrive() -> None:
        sleep(1)
        (folder / ".hidden").write_text("ts,x,y,k\n" + rows)
        (folder / ".hidden").rename(folder / "0.csv")

    later = Thread(target=arrive)
    later.start()
    running = start(SCRIPT, schema=SCHEMA, **options)
    later.join()
    while not running.last_progress.totals.emits and running.is_active:
        sleep(0.1)
    running.stop()
    whole = ids.sql(SCRIPT, e=folder / "0.csv", schema=SCHEMA)
    found = running.table()
    assert 3 < found.num_rows < whole.num_rows
    assert found.equals(whole.slice(0, found.num_rows))


def test_a_file_is_no_table_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("ts,x,y,k\n")
    with pytest.raises(SourceError) as refused:
        start(SCRIPT, checkpoint=tmp_path / "ck", spark=spark, e=tmp_path / "e.csv")
    assert str(refused.value) == (
        f"{tmp_path}/e.csv is a file, but a stream reads a directory; "
        f"give {tmp_path}/ or run the query without a stream"
    )
