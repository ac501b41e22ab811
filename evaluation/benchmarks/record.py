"""Records: contenders measured side by side in one run, kept as JSON, shown as Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from evaluation.records import circumstances as describe
from evaluation.repeated import in_turns

__all__ = ["RESULTS", "describe", "markdown", "measure", "write"]

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


def measure(
    name: str,
    contenders: Mapping[str, Callable[[], object]],
    *,
    rows: int,
    repetitions: int = 5,
    clock: Callable[[], float] = perf_counter,
    **facts: object,
) -> dict[str, Any]:
    """Time each contender ``repetitions`` times, taking turns, after one warm-up each.

    Turns spread whatever else the machine does over all of them: a ratio holds where a bare time
    does not. The first contender is the one the others' ratios are relative to.
    """
    made = describe()
    times = in_turns(contenders, repetitions, clock)
    first = next(iter(times.values())).best
    return {
        "name": name,
        "rows": rows,
        "repetitions": repetitions,
        **facts,
        "contenders": {
            label: {
                "best_s": spent.best,
                "median_s": spent.median,
                "rows_per_s": rows / spent.best,
                "ratio": spent.best / first,
            }
            for label, spent in times.items()
        },
        **made,
    }


def write(record: Mapping[str, Any], directory: Path = RESULTS) -> Path:
    """Keep a record as ``NAME.json``."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{record['name']}.json"
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def markdown(record: Mapping[str, Any]) -> str:
    """A record as a Markdown table: best and median time, rows per second, ratio of the bests."""
    lines = ["| | best | median | rows/s | time, relative |", "|---|---:|---:|---:|---:|"]
    for label, one in record["contenders"].items():
        lines.append(
            f"| {label} | {one['best_s']:.3f} s | {one['median_s']:.3f} s"
            f" | {one['rows_per_s']:,.0f} | {one['ratio']:.2f} × |"
        )
    return "\n".join(lines)
