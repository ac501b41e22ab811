"""Records: contenders measured side by side in one run, kept as JSON, shown as Markdown."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

__all__ = ["RESULTS", "describe", "markdown", "measure", "write"]

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
PACKAGES = ("ids-engine", "numpy", "numba", "pyarrow", "pandas", "polars", "duckdb", "pyspark")


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
    load = os.getloadavg()[0]  # a busy machine hurts most those who use all its cores
    for work in contenders.values():
        work()
    times: dict[str, list[float]] = {label: [] for label in contenders}
    for _ in range(repetitions):
        for label, work in contenders.items():
            start = clock()
            work()
            times[label].append(clock() - start)
    first = min(next(iter(times.values())))
    return {
        "name": name,
        "rows": rows,
        "repetitions": repetitions,
        **facts,
        "contenders": {
            label: {
                "best_s": min(spent),
                "median_s": median(spent),
                "rows_per_s": rows / min(spent),
                "ratio": min(spent) / first,
            }
            for label, spent in times.items()
        },
        **describe(load),
    }


def describe(load: float | None = None) -> dict[str, Any]:
    """The machine, the versions and the commit a record was made with."""
    return {
        "machine": {
            "cores": os.cpu_count(),
            "load_before": os.getloadavg()[0] if load is None else load,
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
        },
        "versions": dict(filter(None, map(_version, PACKAGES))),
        "commit": _commit(),
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


def _version(package: str) -> tuple[str, str] | None:
    try:
        return package, version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(HERE), *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
