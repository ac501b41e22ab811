"""RQ3: memory by component and configuration, on paper and as a process really takes it."""

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from evaluation.bench import Bench
from evaluation.rq3.memory import CONFIGURATIONS, measured
from evaluation.step import Chapter, Findings, Row, Size, Step


def _steps(size: Size) -> list[Step]:
    windows = {1_000: 8.0, 10_000: 8.0, 100_000: 8.0, **size.of(quick={}, full={1_000_000: 25.0})}
    does = "memory of {:,} rows, five configurations"
    return [
        Step(f"rq3-memory-{window}", does.format(window), about, partial(_work, window=window))
        for window, about in windows.items()
    ]


def _work(bench: Bench, window: int) -> Findings:
    """A process of its own for every configuration, two at once: bytes do not mind the company."""
    rows: list[Row] = []
    with ProcessPoolExecutor(2, get_context("spawn"), max_tasks_per_child=1) as pool:
        for row in pool.map(measured, CONFIGURATIONS, [window] * len(CONFIGURATIONS)):
            rows.append(row)
            bench.said(len(rows) / len(CONFIGURATIONS))
    return {"rq3_memory": rows}


CHAPTER = Chapter("rq3", _steps)
