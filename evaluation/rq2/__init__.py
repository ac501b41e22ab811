"""RQ2: incremental throughput and attribution latency."""

from collections.abc import Callable
from functools import partial

from evaluation.bench import Bench
from evaluation.rq2 import algorithm1, alternatives, latency, throughput
from evaluation.step import Chapter, Findings, Size, Step

_THROUGHPUT = {1_000: (10.5, 15.0), 10_000: (2.5, 7.0), 100_000: (2.6, 7.4), 1_000_000: (3.5, 11.0)}
_OTHERS = "pandas, Polars and DuckDB on the same stream"
_SPARK = "Spark's window functions on the same stream"


def _steps(size: Size) -> list[Step]:
    # the name, what it does, the seconds of a quick run and of a full one, the work
    works: list[tuple[str, str, tuple[float, float], Callable[[Bench], Findings]]] = [
        *(
            (f"throughput-{n}", f"slides and scans at N = {n:,}", took, partial(throughput.work, n))
            for n, took in _THROUGHPUT.items()
        ),
        ("algorithm1", "Algorithm 1, loops, the live engine", (3.0, 10.0), algorithm1.work),
        ("alternatives", _OTHERS, (3.0, 75.0), alternatives.in_process),
        ("alternatives-spark", _SPARK, (15.0, 95.0), alternatives.on_spark),
        ("latency", "questions to a running engine", (8.0, 60.0), latency.work),
    ]
    return [
        Step(f"rq2-{name}", does, size.of(quick=quick, full=full), work, ("synthetic",))
        for name, does, (quick, full), work in works
    ]


CHAPTER = Chapter("rq2", _steps)
