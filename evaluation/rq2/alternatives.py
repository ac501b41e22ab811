"""What a user would pick instead, all on one stream: pandas, Polars, DuckDB, Spark.

The query is the paper's Listing 1 with four regions: a count window, AVG, an emit at every row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

import ids
from evaluation.baselines import duckdb_window, pandas_rolling, polars_rolling
from evaluation.bench import Bench
from evaluation.engines import registering
from evaluation.repeated import Repeated, in_turns
from evaluation.size import Size
from evaluation.step import Findings, Row, Step
from evaluation.subject import REGIONS, SUBJECTS
from evaluation.values import equality

__all__ = ["FRAMED", "OURS", "compared", "contenders", "events", "script", "steps"]

OURS = "IDS"
FRAMED = "DuckDB, window frame"


def steps(size: Size) -> list[Step]:
    """One step, all that runs in this process."""
    return [
        Step(
            "rq2-alternatives",
            "pandas, Polars and DuckDB on the same stream",
            size.of(quick=3.0, full=75.0),
            _work,
            needs=("synthetic",),
        )
    ]


def _work(bench: Bench) -> Findings:
    rows, window = bench.size.of(quick=50_000, full=2_000_000), 10_000
    table = events(bench, rows)
    work = contenders(table, window, REGIONS)
    ours, *others = work
    answer = work[ours]()
    for label in others:
        _refuse_other_answers(label, work[label](), answer)
    took = in_turns(work, bench.size.repetitions)
    bench.said(1.0)
    return {"rq2_alternatives": compared(took, OURS, rows, window)}


def contenders(
    table: pa.Table, window: int, regions: Sequence[str]
) -> dict[str, Callable[[], object]]:
    """Each runs the whole stream and gives fourteen columns or more; ours is the first."""
    named = list(regions)
    return {
        OURS: partial(ids.sql, script(named, window), server_events=table),
        "Polars": partial(polars_rolling.run, table, window, named),
        "pandas": partial(pandas_rolling.run, table, window, named),
        "DuckDB, running sums": partial(duckdb_window.run, table, window, named),
        FRAMED: partial(duckdb_window.run_framed, table, window, named),
    }


def script(regions: Sequence[str], window: int) -> str:
    """The query in the language of IDS."""
    conditions = {f"r{k}": equality("region", region) for k, region in enumerate(regions)}
    items = ",\n  ".join(
        f"SHAPLEY_ATTRIBUTE(AVG(latency), r{k} WITH (SHARE, LIFT)) AS value_{k}"
        for k in range(len(regions))
    )
    return (
        f"{registering(conditions, 'server_events')}\nSELECT {items}\nFROM server_events\n"
        f"WINDOW w AS (ORDER BY event_time ROWS {window} PRECEDING)\nEMIT CHANGES;"
    )


def events(bench: Bench, rows: int) -> pa.Table:
    """The synthetic stream, no two events at the same microsecond: a sort leaves it as it is."""
    table = bench.events(SUBJECTS["synthetic"], rows)
    at = table.column_names.index("event_time")
    moments = table["event_time"].to_numpy().astype("datetime64[us]").astype(np.int64)
    number = np.arange(rows)
    moments = np.maximum.accumulate(moments - number) + number
    return table.set_column(
        at, "event_time", pa.array(moments, pa.int64()).cast(pa.timestamp("us", "UTC"))
    )


def compared(times: Mapping[str, Repeated], ours: str, rows: int, window: int) -> list[Row]:
    """A row for each: rows a second, and how many times as long it takes as ours."""
    return [
        {
            "contender": label,
            "rows": rows,
            "window": window,
            "seconds": spent,
            "rows_s": spent.rate(rows),
            "times_ours": spent.over(times[ours]),
        }
        for label, spent in times.items()
    ]


def _refuse_other_answers(label: str, answer: object, ours: object) -> None:
    """Stop where one does not give our answers: it is not to be timed."""
    assert isinstance(ours, pa.Table)
    assert isinstance(answer, dict)
    for k in range(len(REGIONS)):
        for theirs, name in (("value", ""), ("share", "_share"), ("lift", "_lift")):
            exact = ours[f"value_{k}{name}"].to_numpy()
            found = answer[f"{theirs}_{k}"]
            np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-6, err_msg=label)
