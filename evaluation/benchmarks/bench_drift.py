"""How far off are running sums after a million slides, next to exact rational arithmetic?

What is measured, and how, is ``evaluation.rq1.drift``.
"""

from __future__ import annotations

from typing import Any

from evaluation.benchmarks.record import describe, write
from evaluation.rq1.drift import STREAMS, WINDOW, drift

__all__ = ["STREAMS", "drift", "main"]


def main(slides: int = 1_000_000) -> None:
    """Measure, keep, show."""
    print("| stream | state | AVG, off by | VAR_POP, off by |\n|---|---|---:|---:|")
    errors: dict[str, Any] = {}
    for stream in STREAMS:
        for label, (average, variance) in drift(stream, slides).items():
            print(f"| {stream} | {label} | {average:.1e} | {variance:.1e} |")
            errors.setdefault(stream, {})[label] = {"avg": average, "var_pop": variance}
    record = {"name": "drift", "slides": slides, "window": WINDOW, "relative_errors": errors}
    write({**record, **describe()})
