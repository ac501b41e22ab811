"""``ROWS 1000 PRECEDING`` over 200,000 rows on Spark, next to Spark's own window functions

VAR_POP and the attributions of four predicates at every row. Spark's window functions compute what
these would be made of, count, sum and sum of squares of the window and of each predicate, in
doubles, and no attribution.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import ids
from evaluation.baselines.spark_groupby import rows_window
from evaluation.benchmarks.record import markdown, measure, write
from evaluation.benchmarks.spark_data import requests, session
from evaluation.sessions import to_nowhere

if TYPE_CHECKING:
    pass

__all__ = ["main"]

ROWS = 200_000
SIZE = 1_000
REGIONS = ("region-1", "region-2", "region-3", "region-4")
ITEMS = ", ".join(
    f"SHAPLEY_ATTRIBUTE(VAR_POP(latency), region = '{r}' WITH (SHARE, LIFT)) AS r{i}"
    for i, r in enumerate(REGIONS)
)
SCRIPT = f"""
SELECT VAR_POP(latency) AS variance, {ITEMS}
FROM events WINDOW w AS (ORDER BY event_time ROWS {SIZE} PRECEDING) EMIT CHANGES
"""


def main() -> None:
    """Measure, keep, show."""
    rows = requests(session(), ROWS)
    contenders: dict[str, Callable[[], object]] = {
        "ids.spark.sql": lambda: to_nowhere(ids.spark.sql(SCRIPT, events=rows)),
        "Spark's window functions": partial(to_nowhere, rows_window(rows, SIZE, REGIONS)),
    }
    record = measure("spark_rows", contenders, rows=ROWS, repetitions=3, window=SIZE)
    print(markdown(record))
    write(record)
