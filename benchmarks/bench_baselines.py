"""Which of the others is quickest at the paper's query: four regions, AVG, every row an emit?"""

from __future__ import annotations

from functools import partial

from benchmarks.baselines import duckdb_window, pandas_rolling, polars_rolling
from benchmarks.data import REGIONS, server_events
from benchmarks.record import markdown, measure, write

__all__ = ["main"]


def main(rows: int = 1_000_000, window: int = 10_000) -> None:
    """Measure, keep, show."""
    table, regions = server_events(rows), REGIONS[:4]
    contenders = {
        "Polars": polars_rolling.run,
        "pandas": pandas_rolling.run,
        "DuckDB, running sums": duckdb_window.run,
    }
    record = measure(
        "baselines",
        {label: partial(run, table, window, regions) for label, run in contenders.items()},
        rows=rows,
        window=window,
        predicates=len(regions),
    )
    write(record)
    print(markdown(record))
