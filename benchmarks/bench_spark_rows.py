"""``ROWS 1000 PRECEDING`` over 200,000 rows on Spark, next to Spark's own window functions

AVG and the attribution of one predicate at every row; Spark's window function computes the average
and the predicate's sum and count over the same frames, and no attribution.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import ids
from benchmarks.baselines.spark_groupby import rows_window
from benchmarks.record import markdown, measure, write
from benchmarks.spark_data import requests, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["main"]

ROWS = 200_000
SIZE = 1_000
SCRIPT = f"""
SELECT AVG(latency) AS average,
       SHAPLEY_ATTRIBUTE(AVG(latency), region = 'region-1' WITH (SHARE, LIFT)) AS eu
FROM events WINDOW w AS (ORDER BY event_time ROWS {SIZE} PRECEDING) EMIT CHANGES
"""


def main() -> None:
    """Measure, keep, show."""
    rows = requests(session(), ROWS)
    contenders: dict[str, Callable[[], object]] = {
        "ids.spark.sql": lambda: _run(ids.spark.sql(SCRIPT, events=rows)),
        "Spark's window functions": partial(_run, rows_window(rows, SIZE)),
    }
    record = measure("spark_rows", contenders, rows=ROWS, repetitions=2, window=SIZE)
    print(markdown(record))
    write(record)


def _run(data: DataFrame) -> None:
    data.write.format("noop").mode("overwrite").save()
