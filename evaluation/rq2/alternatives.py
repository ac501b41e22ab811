"""What a user would pick instead, for the paper's Listing 1: AVG of four regions at every row."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import ids
from evaluation.baselines import rolling
from evaluation.bench import CORES, Bench, equality, registering, session, to_nowhere
from evaluation.step import REGIONS, SUBJECTS, Findings, Repeated, Row, in_turns

_OTHERS: dict[str, rolling.Run] = {
    "Polars": rolling.by_polars,
    "pandas": rolling.by_pandas,
    "DuckDB, running sums": rolling.by_duckdb,
    "DuckDB, window frame": rolling.by_duckdb_frame,
}


def in_process(bench: Bench) -> Findings:
    """Each runs the whole stream to fourteen columns, once it has given our answers."""
    rows, window = bench.size.of(quick=50_000, full=2_000_000), 10_000
    table = _events(bench, rows)
    ours = partial(ids.sql, _script(window), server_events=table)
    exact = ours()
    work: dict[str, Callable[[], object]] = {"IDS": ours}
    for label, run in _OTHERS.items():
        work[label] = partial(run, table, window, REGIONS)
        for name, found in run(table, window, REGIONS).items():
            np.testing.assert_allclose(found, exact[name], rtol=1e-6, atol=1e-6, err_msg=label)
    return _compared(in_turns(work, bench.size.repetitions), rows, window)


def on_spark(bench: Bench) -> Findings:
    """Fewer rows, for Spark adds up a frame at every row; its sums are ours on the first."""
    from evaluation.baselines.spark_groupby import rows_window

    rows, window = bench.size.of(quick=(5_000, 1_000), full=(15_000, 10_000))
    table = _events(bench, rows).select(["event_time", "region", "latency"])
    path = str(bench.scratch / "events.parquet")
    pq.write_table(table, path)
    with session(CORES) as spark:
        few = spark.read.parquet(path).orderBy("event_time").limit(400)
        sums = rows_window(few, 100, REGIONS).orderBy("event_time").toArrow().to_pandas()
        ours = ids.spark.sql(_script(100), server_events=few).orderBy("emit_at").toArrow()
        for k in range(len(REGIONS)):
            share = sums[f"n{k + 1}"] * sums["a0"] / sums["n0"] ** 2
            np.testing.assert_allclose(ours[f"value_{k}_share"], share, rtol=1e-9)
        frame = spark.read.parquet(path).coalesce(1).cache()
        frame.count()
        query = _script(window)
        work: dict[str, Callable[[], object]] = {
            "IDS, the same few rows": partial(ids.sql, query, server_events=table),
            "Spark, window functions": lambda: to_nowhere(rows_window(frame, window, REGIONS)),
            "IDS on Spark": lambda: to_nowhere(ids.spark.sql(query, server_events=frame)),
        }
        return _compared(in_turns(work, bench.size.repetitions), rows, window)


def _script(window: int) -> str:
    """The query in the language of IDS."""
    conditions = {f"r{k}": equality("region", region) for k, region in enumerate(REGIONS)}
    asked = "SHAPLEY_ATTRIBUTE(AVG(latency), r{0} WITH (SHARE, LIFT)) AS value_{0}"
    items = ", ".join(asked.format(k) for k in range(len(REGIONS)))
    return f"""{registering(conditions, "server_events")} SELECT {items} FROM server_events
               WINDOW w AS (ORDER BY event_time ROWS {window} PRECEDING) EMIT CHANGES;"""


def _events(bench: Bench, rows: int) -> pa.Table:
    """The synthetic stream, a microsecond from event to event: a sort leaves it as it is."""
    table = bench.events(SUBJECTS["synthetic"], rows)
    times = pa.array(np.arange(rows)).cast(pa.timestamp("us", "UTC"))
    return table.set_column(0, "event_time", times)


def _compared(times: Mapping[str, Repeated], rows: int, window: int) -> Findings:
    """A row for each: rows a second, and how many times as long it takes as ours, the first."""
    ours = next(iter(times.values()))
    found: list[Row] = [
        {"contender": label, "rows": rows, "window": window, "seconds": spent,
         "rows_s": spent.rate(rows), "times_ours": spent.over(ours)}
        for label, spent in times.items()
    ]  # fmt: skip
    return {"rq2_alternatives": found}
