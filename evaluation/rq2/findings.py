"""What the rows of RQ2 say, as the numbers that remarks, comparisons and figures share."""

from __future__ import annotations

from statistics import median
from typing import Any

from evaluation.chapter import Tables
from evaluation.repeated import Repeated
from evaluation.rq2.maintaining import ATOMS

__all__ = ["cells", "latencies", "only", "overall", "span"]

Row = dict[str, Any]


def cells(tables: Tables, **equal: object) -> list[Row]:
    """The cells of the throughput grid that have these values, by window size."""
    return sorted(tables.where("rq2_throughput", **equal), key=lambda row: int(row["window"]))


def only(rows: list[Row], column: str) -> float | None:
    """The median of a quantity in the one row there is, or the only one that was measured."""
    if not rows:
        return None
    value = rows[0][column]
    return value.median if isinstance(value, Repeated) else float(value)


def overall(tables: Tables, step: int, kept: str = ATOMS) -> float | None:
    """The median of the tuples a second over all window sizes, predicates and games."""
    found = [row["ids_tuples_s"].median for row in cells(tables, step=step, kept=kept)]
    return median(found) if found else None


def span(rows: list[Row], column: str = "speedup") -> tuple[float, float] | None:
    """The least and the largest of a quantity, of the median in each row.

    Not of the mean: the extreme of many means is the one that was disturbed the most.
    """
    middles = [row[column].median for row in rows]
    return (min(middles), max(middles)) if middles else None


def latencies(tables: Tables, path: str, reading: str, percentile: str = "p50") -> dict[int, float]:
    """µs by K."""
    rows = tables.where("rq2_latency", path=path, reading=reading)
    return {int(row["predicates"]): row[percentile].mean for row in rows}
