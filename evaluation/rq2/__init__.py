"""RQ2: incremental throughput and attribution latency."""

from functools import partial

from evaluation.rq2 import alternatives, latency, throughput
from evaluation.step import Chapter, Size, Step

_STEPS = (  # name, what it does, seconds of a quick run and a full one, work
    ("throughput-1000", "slides at N = 1,000", 10.5, 15.0, partial(throughput.work, 1_000)),
    ("throughput-10000", "slides at N = 10,000", 2.5, 7.0, partial(throughput.work, 10_000)),
    ("throughput-100000", "slides at N = 100,000", 2.6, 7.4, partial(throughput.work, 100_000)),
    ("throughput-1000000", "slides at N = 10⁶", 3.5, 11.0, partial(throughput.work, 1_000_000)),
    ("algorithm1", "Algorithm 1, loops, the live engine", 3.0, 10.0, throughput.one_row),
    ("alternatives", "pandas, Polars, DuckDB", 3.0, 75.0, alternatives.in_process),
    ("alternatives-spark", "Spark's window functions", 15.0, 95.0, alternatives.on_spark),
    ("latency", "questions to a running engine", 8.0, 60.0, latency.work),
)


def _steps(size: Size) -> list[Step]:
    return [
        Step(f"rq2-{name}", does, size.of(quick=quick, full=full), work, ("synthetic",))
        for name, does, quick, full, work in _STEPS
    ]


CHAPTER = Chapter("rq2", _steps)
