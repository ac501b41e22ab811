"""Event times at the ends of what a timestamp holds: the same on Spark as in process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import ids
from ids.errors import DataError, IdsError
from tests.spark.parity import plain
from tests.spark.streams import arrive, expected, run

FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # year 1, year 9999
FRAMES = {
    "time": f"RANGE INTERVAL {2**61} MICROSECOND PRECEDING SLIDE INTERVAL {2**60} MICROSECOND",
    "count": "ROWS 2 PRECEDING",
}
SECOND = "RANGE INTERVAL 2 SECOND PRECEDING SLIDE INTERVAL 1 SECOND"


def script(frame: str) -> str:
    return f"""SELECT SHAPLEY_ATTRIBUTE(SUM(x), x > 1) AS a, COUNT(*) AS c FROM events
        WINDOW w AS (ORDER BY event_time {FRAMES[frame]}) EMIT CHANGES"""


def table(times: list[int], zone: str | None = "UTC") -> pa.Table:
    column = pa.array(times, pa.timestamp("us", zone))
    return pa.table({"event_time": column, "x": [float(n) for n in range(len(times))]})


@pytest.mark.parametrize("frame", FRAMES)
def test_years_1_to_9999_are_answered_and_others_are_bad_rows(
    spark: SparkSession, tmp_path: Path, frame: str
) -> None:
    asked = script(frame)
    for zone in ("UTC", None):
        inside = table([FIRST, FIRST + 1, 0, LAST - 1, LAST], zone)
        pq.write_table(inside, tmp_path / f"{zone}.parquet")
        right = plain(ids.sql(asked, events=inside))
        assert plain(ids.spark.sql(asked, events=spark.createDataFrame(inside)).toArrow()) == right
        at = tmp_path / f"{zone}.parquet"
        assert plain(ids.spark.sql(asked, events=at, spark=spark).toArrow()) == right
        far = [-(2**63), FIRST - 1, LAST + 1, 2**63 - 1]
        fault = "event time 'event_time' outside the years 1 to 9999"
        pq.write_table(table([0, *far, 5], zone), tmp_path / "far.parquet")
        with pytest.raises(IdsError, match=f"{fault} in events, row 2"):
            ids.spark.sql(asked, events=tmp_path / "far.parquet", spark=spark)
        aside = tmp_path / f"{zone}"
        ids.spark.sql(asked, events=tmp_path / "far.parquet", spark=spark, bad_rows=aside)
        kept = pq.read_table(aside / "events.parquet")
        assert kept["ids_reason"].to_pylist() == [fault] * 4
        assert kept["ids_row"].to_pylist() == [f"row {n} of far.parquet" for n in (2, 3, 4, 5)]
        for time in far:
            with pytest.raises(DataError, match=f"{fault} in events, row 2"):
                ids.sql(asked, events=table([0, time, 5], zone))


@pytest.mark.parametrize("frame", FRAMES)
def test_a_stream_sets_such_rows_aside(spark: SparkSession, tmp_path: Path, frame: str) -> None:
    times = [-(2**63), 0, 1_000_000, 2**63 - 1, FIRST - 1, LAST + 1, 2_000_000, 3_000_000]
    arrive(table(times), tmp_path / "in", [3, 6])
    asked = script(frame).replace(FRAMES["time"], SECOND)
    running = run(spark, asked, tmp_path / "in", bad_rows=tmp_path / "bad")
    totals = running.last_progress.totals
    assert (totals.bad, totals.late, totals.ahead) == (4, 0, 0)
    kept = pa.array([0, 1_000_000, 2_000_000, 3_000_000])
    sound = table(times).filter(pc.is_in(pa.array(times), kept))
    assert plain(running.table()) == plain(expected(asked, sound))
