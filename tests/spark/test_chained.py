"""A streaming DataFrame in, a streaming DataFrame out: a batch's emits, as far as they are safe."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import ids
from ids.errors import DataError, IdsError, ScriptError
from tests.spark.tables import events, same
from tests.spark.test_time_windows import REGISTERED, WINDOWS


def narrow(aggregate: str, window: str, emit: str = "CHANGES") -> str:
    """A query of every kind of item: a stream plans all of them anew for each micro-batch."""
    items = (
        f"{aggregate} AS a, SHAPLEY_DELTA({aggregate}, slow) AS d, COUNT(*) AS c, "
        f"SHAPLEY_ATTRIBUTE({aggregate}, eu AND NOT premium WITH (SHARE, LIFT)) AS s"
    )
    where = "WHERE bytes IS NOT NULL OR latency < 60"
    window = f"WINDOW w AS ({WINDOWS[window]}) EMIT {emit};"
    return f"{REGISTERED} SELECT {items} FROM events {where} {window}"


def ordered_files(table: pa.Table, folder: Path, files: int, late: timedelta) -> pa.Table:
    """The rows, none later than ``late`` behind the others, then one long after all of them."""
    jitter = int(late / timedelta(microseconds=1))
    instants = table["event_time"].cast("int64").to_numpy()
    noise = (instants * 7919) % max(1, jitter)
    table = table.take(pa.array((instants + noise).argsort(kind="stable")))
    last = table.slice(table.num_rows - 1)
    after = pa.array([int(instants.max()) + 86_400_000_000], pa.timestamp("us", "UTC"))
    table = pa.concat_tables([table, last.set_column(0, "event_time", after)])
    folder.mkdir()
    for number in range(files):
        start = table.num_rows * number // files
        stop = table.num_rows * (number + 1) // files
        path = folder / f"{number:03}.parquet"
        pq.write_table(table.slice(start, stop - start), path)
        os.utime(path, (1_000_000_000 + number,) * 2)  # Spark takes files by their age
    return table


def drained(spark: SparkSession, stream: DataFrame, checkpoint: Path) -> pa.Table:
    found: list[pa.Table] = []
    stream.writeStream.foreachBatch(lambda batch, _: found.append(batch.toArrow())).option(
        "checkpointLocation", str(checkpoint)
    ).trigger(availableNow=True).start().awaitTermination()
    return pa.concat_tables(found)


@pytest.mark.parametrize(
    ("aggregate", "window", "late", "files"),
    [
        pytest.param(
            "VAR_POP(latency)", "sliding", timedelta(seconds=20), 3, marks=pytest.mark.slow
        ),
        ("AVG(level)", "keyed", timedelta(0), 2),
    ],
)
def test_a_stream_emits_what_a_batch_does(
    spark: SparkSession, tmp_path: Path, aggregate: str, window: str, late: timedelta, files: int
) -> None:
    table = ordered_files(events(seed=11, rows=600), tmp_path / "in", files, late)
    script = narrow(aggregate, window)
    schema = spark.createDataFrame(table).schema
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    stream = ids.spark.sql(
        script, events=source.parquet(str(tmp_path / "in")), lateness=late, value_range=(1e-3, 1e10)
    )
    assert stream.isStreaming
    found = drained(spark, stream, tmp_path / "checkpoint")
    expected = ids.sql(script, events=table)
    safe = pa.compute.less(expected["emit_at"], table["event_time"][-1])
    expected = expected.filter(safe)
    assert expected.num_rows > 50
    order = [("emit_at", "ascending"), *((k, "ascending") for k in found.column_names[:2])]
    assert {*map(str, found.to_pylist())} == {*map(str, expected.to_pylist())}
    same(expected.sort_by(order), found.sort_by(order))


def test_what_a_stream_cannot_do_is_said_before_it_starts(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = ordered_files(events(seed=1, rows=40), tmp_path / "in", 1, timedelta(0))
    schema = spark.createDataFrame(table).schema
    source = spark.readStream.schema(schema).parquet(str(tmp_path / "in"))
    with pytest.raises(ScriptError, match="EMIT FINAL answers at the end of the input"):
        ids.spark.sql(narrow("AVG(latency)", "sliding", "FINAL"), events=source)
    window = "WINDOW w AS (ORDER BY event_time ROWS 5 PRECEDING)"
    rows = f"SELECT AVG(latency) FROM events {window} EMIT CHANGES"
    with pytest.raises(ScriptError, match=r"ids\.spark\.start"):
        ids.spark.sql(rows, events=source)


def test_a_value_out_of_range_ends_the_stream_with_a_line(
    spark: SparkSession, tmp_path: Path
) -> None:
    from ids.spark import translated

    table = ordered_files(events(seed=1, rows=40), tmp_path / "in", 1, timedelta(0))
    source = spark.readStream.schema(spark.createDataFrame(table).schema)
    stream = ids.spark.sql(
        narrow("AVG(level)", "sliding"),
        events=source.parquet(str(tmp_path / "in")),
        value_range=(1.0, 1e6),
    )
    with pytest.raises(IdsError) as caught, translated():
        drained(spark, stream, tmp_path / "checkpoint")
    assert isinstance(caught.value, DataError)
    assert "a value of 'level' is not between 1 and 1e+06 in magnitude" in str(caught.value)
