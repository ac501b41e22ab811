"""The paper's query end to end, every row an emit: IDS next to pandas, Polars and DuckDB.

Two million rows in an Arrow table, a window of 10,000 rows, four AVG attributions WITH (SHARE,
LIFT): fourteen columns out. IDS sums exactly; the others add and subtract doubles.
"""

from __future__ import annotations

from functools import partial

import ids
from benchmarks.baselines import duckdb_window, pandas_rolling, polars_rolling
from benchmarks.data import REGIONS, server_events
from benchmarks.record import markdown, measure, write

__all__ = ["main"]


def script(regions: list[str], window: int) -> str:
    """The query in the language of IDS."""
    registered = "\n".join(
        f"REGISTER PREDICATE r{k} AS (region = '{region}') ON server_events;"
        for k, region in enumerate(regions)
    )
    items = ",\n  ".join(
        f"SHAPLEY_ATTRIBUTE(AVG(latency), r{k} WITH (SHARE, LIFT)) AS value_{k}"
        for k in range(len(regions))
    )
    return (
        f"{registered}\nSELECT {items}\nFROM server_events\n"
        f"WINDOW w AS (ORDER BY event_time ROWS {window} PRECEDING)\nEMIT CHANGES;"
    )


def main(rows: int = 2_000_000, window: int = 10_000) -> None:
    """Measure, keep, show."""
    table, regions = server_events(rows), REGIONS[:4]
    contenders = {
        "IDS": partial(ids.sql, script(regions, window), server_events=table),
        "Polars": partial(polars_rolling.run, table, window, regions),
        "pandas": partial(pandas_rolling.run, table, window, regions),
        "DuckDB, running sums": partial(duckdb_window.run, table, window, regions),
    }
    record = measure(
        "continuous", contenders, rows=rows, repetitions=9, window=window, predicates=len(regions)
    )
    write(record)
    print(markdown(record))
