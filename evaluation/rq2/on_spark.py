"""The same query on Spark: its own window functions, and ``ids.spark.sql``.

Spark's window functions give what an attribution is made of, count, sum and sum of squares of the
window and of each region, in doubles, and no attribution. For a frame that moves they add up every
row of it at every row, so fewer rows are run than in process: enough to fill the window once and
to slide it half as far again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

import ids
from evaluation.bench import Bench
from evaluation.repeated import in_turns
from evaluation.rq2 import alternatives
from evaluation.sessions import CORES, session, to_nowhere
from evaluation.size import Size
from evaluation.step import Findings, Step
from evaluation.subject import REGIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FUNCTIONS", "IN_PROCESS", "SPARK_SQL", "steps"]

FUNCTIONS = "Spark, window functions"
SPARK_SQL = "IDS on Spark"
IN_PROCESS = "IDS, the same few rows"


def steps(size: Size) -> list[Step]:
    """One step, with a session of its own."""
    return [
        Step(
            "rq2-alternatives-spark",
            "Spark's window functions on the same stream",
            size.of(quick=15.0, full=95.0),
            _work,
            needs=("synthetic",),
        )
    ]


def _work(bench: Bench) -> Findings:
    from evaluation.baselines.spark_groupby import rows_window

    window = bench.size.of(quick=1_000, full=10_000)
    rows = bench.size.of(quick=5_000, full=15_000)
    table = alternatives.events(bench, rows).select(["event_time", "region", "latency"])
    path = bench.scratch / "events.parquet"
    pq.write_table(table, path)
    query = alternatives.script(REGIONS, window)
    with session(CORES) as spark:
        _refuse_other_sums(spark, str(path))
        frame = spark.read.parquet(str(path)).coalesce(1).cache()
        frame.count()
        work: dict[str, Callable[[], object]] = {
            IN_PROCESS: partial(ids.sql, query, server_events=table),
            FUNCTIONS: lambda: to_nowhere(rows_window(frame, window, REGIONS)),
            SPARK_SQL: lambda: to_nowhere(ids.spark.sql(query, server_events=frame)),
        }
        took = in_turns(work, bench.size.repetitions)
    return {"rq2_alternatives": alternatives.compared(took, IN_PROCESS, rows, window)}


def _refuse_other_sums(spark: SparkSession, path: str) -> None:
    """Stop unless on a few rows Spark's sums are those that our answers are made of."""
    from evaluation.baselines.spark_groupby import rows_window

    few, window = spark.read.parquet(path).orderBy("event_time").limit(400), 100
    sums = rows_window(few, window, REGIONS).orderBy("event_time").toArrow().to_pandas()
    query = alternatives.script(REGIONS, window)
    ours = ids.spark.sql(query, server_events=few).orderBy("emit_at").toArrow().to_pandas()
    for k in range(len(REGIONS)):
        share = sums[f"n{k + 1}"] * sums["a0"] / sums["n0"] ** 2
        np.testing.assert_allclose(ours[f"value_{k}_share"], share, rtol=1e-9)
