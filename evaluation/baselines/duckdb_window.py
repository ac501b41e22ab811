"""DuckDB, twice: the frame as one would write it, and the faster form by running sums."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from evaluation.baselines.factor import Columns, lift_factors

__all__ = ["run", "run_framed"]


def run(table: pa.Table, window: int, regions: list[str]) -> Columns:
    """Running sums, which DuckDB streams, minus those of ``window`` rows before.

    About nine times as fast as the frame; its error grows with the stream (4e-11 after 500,000
    rows). The rows must come in order of time.
    """
    names = ["total", *(f"{moment}_{k}" for k in range(len(regions)) for moment in "mA")]
    running = [f"{sql} OVER (ROWS UNBOUNDED PRECEDING) AS {n}" for n, sql in _moments(regions)]
    within = [f"{n} - coalesce(lag({n}, {window}) OVER (), 0) AS {n}" for n in names]
    return _evaluate(
        table,
        window,
        regions,
        f"""SELECT least(i, {window}) AS n, {", ".join(within)}
            FROM (SELECT row_number() OVER () AS i, {", ".join(running)} FROM events)""",
    )


def run_framed(table: pa.Table, window: int, regions: list[str]) -> Columns:
    """Every moment over the frame itself: CASE is three times as fast here as FILTER."""
    moments = [f"{sql} OVER w AS {name}" for name, sql in _moments(regions, case=True)]
    return _evaluate(
        table,
        window,
        regions,
        f"""SELECT count(*) OVER w AS n, {", ".join(moments)} FROM events
            WINDOW w AS (ORDER BY event_time ROWS BETWEEN {window - 1} PRECEDING AND CURRENT ROW)
        """,
    )


def _moments(regions: list[str], case: bool = False) -> list[tuple[str, str]]:
    found = [("total", "sum(latency)")]
    for k, region in enumerate(regions):
        holds = "region = '" + region.replace("'", "''") + "'"
        if case:
            found.append((f"m_{k}", f"sum(({holds})::INT)"))
            found.append((f"A_{k}", f"sum(CASE WHEN {holds} THEN latency ELSE 0 END)"))
        else:
            found.append((f"m_{k}", f"count(*) FILTER ({holds})"))
            found.append((f"A_{k}", f"sum(latency) FILTER ({holds})"))
    return found


def _evaluate(table: pa.Table, window: int, regions: list[str], moments: str) -> Columns:
    answers = "".join(
        f", m_{k} / n * mean AS share_{k}"
        f", factor * (coalesce(A_{k}, 0) - m_{k} * mean) AS lift_{k}"
        f", share_{k} + lift_{k} AS value_{k}"
        for k in range(len(regions))
    )
    query = f"""
        SELECT n {answers} FROM (
            SELECT *, total / n AS mean, (SELECT list(factor) FROM factors)[n] AS factor
            FROM ({moments})
        )"""
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")  # it would run across ours
        connection.register("events", table.select(["event_time", "region", "latency"]))
        connection.register("factors", pa.table({"factor": lift_factors(window)[1:]}))
        found: Columns = connection.execute(query).fetchnumpy()
    return found
