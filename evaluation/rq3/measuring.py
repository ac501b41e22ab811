"""The steps of RQ3: a process of its own for every configuration and window."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any

from evaluation.bench import Bench
from evaluation.processes import said_by
from evaluation.rq3.analytic import ATOMS, analytic
from evaluation.rq3.configurations import CONFIGURATIONS, PREDICATES, Configuration
from evaluation.size import Size
from evaluation.step import Findings, Row, Step

__all__ = ["steps"]

_WINDOWS = (1_000, 10_000, 100_000, 1_000_000)
_AT_ONCE = 2  # bytes do not depend on what else the machine does


def steps(size: Size) -> list[Step]:
    """One step for each window."""
    windows = size.of(quick=_WINDOWS[:-1], full=_WINDOWS)
    return [
        Step(
            f"rq3-memory-{window}",
            f"memory of {window:,} rows, five configurations",
            8.0 if window < 1_000_000 else 25.0,
            partial(_work, window=window),
        )
        for window in windows
    ]


def _work(bench: Bench, window: int) -> Findings:
    found: dict[str, Row] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = {pool.submit(_measured, key, window): key for key in CONFIGURATIONS}
        for done in as_completed(asked):
            key = asked[done]
            found[key] = _row(CONFIGURATIONS[key], window, done.result())
            bench.said(len(found) / len(CONFIGURATIONS))
    return {"rq3_memory": [found[key] for key in CONFIGURATIONS]}


def _measured(key: str, window: int) -> dict[str, int]:
    """What the process says, in bytes."""
    said: dict[str, int] = said_by("evaluation.rq3.child", key, window)
    return said


def _row(configuration: Configuration, window: int, said: dict[str, Any]) -> Row:
    if (said["rows"], said["atoms"]) != (window, ATOMS):
        raise AssertionError(f"a window of {window} rows and {ATOMS} atoms is {said}")
    expected = analytic(configuration, window)
    return {
        "configuration": configuration.key,
        "label": configuration.label,
        "window": window,
        "predicates": len(PREDICATES),
        "atoms": said["atoms"],
        "analytic_summaries": expected.summaries,
        "analytic_retained": expected.retained,
        "analytic_index": expected.index,
        "analytic_sample": expected.sample,
        "analytic": expected.total,
        "held_summaries": said["summaries"],
        "held_retained": said["retained"],
        "held_index": said["index"],
        "held_sample": said["sampler"],
        "held": sum(said[part] for part in ("summaries", "retained", "index", "sampler")),
        "heap_peak": said["heap"],
        "resident_peak": said["resident"],
    }
