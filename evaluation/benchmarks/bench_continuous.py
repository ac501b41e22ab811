"""The paper's query end to end, every row an emit: IDS next to pandas, Polars and DuckDB.

Two million rows in an Arrow table, a window of 10,000 rows, four AVG attributions WITH (SHARE,
LIFT): fourteen columns out. IDS sums exactly; the others add and subtract doubles.
"""

from __future__ import annotations

from evaluation.benchmarks.data import REGIONS, server_events
from evaluation.benchmarks.record import markdown, measure, write
from evaluation.rq2.alternatives import FRAMED, contenders

__all__ = ["main"]


def main(rows: int = 2_000_000, window: int = 10_000) -> None:
    """Measure, keep, show."""
    regions = REGIONS[:4]
    work = contenders(server_events(rows), window, regions)
    del work[FRAMED]  # nine times as slow as DuckDB's running sums
    record = measure(
        "continuous", work, rows=rows, repetitions=9, window=window, predicates=len(regions)
    )
    write(record)
    print(markdown(record))
