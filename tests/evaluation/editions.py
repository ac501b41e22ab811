"""A chapter with all that a report can show, and records of it, both made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure as Drawing

from evaluation import records
from evaluation.chapter import Chapter, Comparison, Figure, Section, Table, Tables
from evaluation.drawing import STYLES, canvas, label_lines, plot
from evaluation.publishing import Edition, compose
from evaluation.repeated import Repeated
from evaluation.size import Size
from evaluation.step import Findings, Row, Step

__all__ = ["CHAPTERS", "FINDINGS", "NASTY", "PLAIN", "edition", "keep_record"]

NASTY = """a|b <i>*c*</i> & "d" 'e' `f` _g_ [h](i) $j$ ~k~ #l \\m"""
SIZES = (1_000, 10_000, 100_000)

_RATES: list[Row] = [
    {"method": method, "n": n, "rate": Repeated((least, 1.02 * least, 1.04 * least))}
    for n in SIZES
    for method, least in (("IDS", 7e7), ("scan", 9e9 / n))
]
FINDINGS: dict[str, Findings] = {
    "rq2-ingest": {"rq2_ingest": _RATES},
    "rq2-latency": {"rq2_latency": [{"k": 4, "note": NASTY, "p50": 1.5}]},
}


def _show(tables: Tables) -> Section:
    cells = [
        [f"{row['n']:,}", str(row["method"]), f"{row['rate'].mean:,.0f}"]
        for row in tables["rq2_ingest"]
    ]
    return Section(
        [f"IDS is flat in N. {NASTY}"],
        [
            Comparison("p50 latency, K = 4", "µs", 1.37, 1.1, "lower", "Table 4"),
            Comparison("throughput", "tuples/s", 7.3e7, 7.2e7, "higher", "§7.2"),
            Comparison("p99 latency", "µs", 1.87, 2.9, "lower", "Table 4", f"shared cores {NASTY}"),
            Comparison("speedup", "×", 4.3e5, None, "higher", "§7.2"),
        ],
        [
            Table("Throughput", ["N", "method", "tuples/s"], cells, "Means of 3."),
            Table(NASTY, [NASTY, "p50"], [[NASTY, "1.5 µs"]]),
        ],
    )


def _draw(tables: Tables) -> Drawing:
    drawing, (axes,) = canvas()
    ends = []
    for style, method in zip(STYLES, ("IDS", "scan"), strict=False):
        rows = tables.where("rq2_ingest", method=method)
        plot(axes, [row["n"] for row in rows], [row["rate"] for row in rows], style)
        ends.append((rows[-1]["n"], rows[-1]["rate"].mean, method, style["color"]))
    axes.set(xscale="log", yscale="log", xlabel="window size $N$", ylabel="tuples/s")
    label_lines(axes, ends)
    return drawing


def _steps(_: Size) -> list[Step]:
    return [Step(name, name, 1.0, lambda _: {}) for name in (*FINDINGS, "rq2-real")]


CHAPTERS = [
    Chapter(
        "rq2",
        "RQ2: Throughput & <latency>",
        "How does the advantage change with N?",
        _steps,
        _show,
        (
            Figure("rq2-ingest", "IDS is flat in N. The scan falls.", ("rq2_ingest",), _draw),
            Figure("rq2-again", f"The same again. {NASTY}", ("rq2_ingest",), _draw),
            Figure("rq2-real", "Nobody measured this.", ("rq2_real",), _draw),
        ),
    ),
    Chapter("rq3", "RQ3: Memory", "How much?", lambda _: [], lambda _: Section()),
]


PLAIN = [replace(chapter, figures=()) for chapter in CHAPTERS]
"""The same without figures, for tests that need none: to draw takes longest."""


def keep_record(directory: Path, step: str, findings: Findings, **facts: Any) -> None:
    """One record, as a run keeps it."""
    record: dict[str, Any] = {
        "step": step,
        "fingerprint": {"size": "full"},
        "skipped": None,
        "machine": {
            "cores": 2,
            "load_before": 0.1,
            "python": "3.12.1",
            "platform": "Linux x86_64",
        },
        "versions": {"ids-engine": "0.1.0", "numpy": "2.4.0"},
        "commit": "0123456789abcdef",
        "seconds": 61.0,
    }
    records.write(directory / f"{step}.json", record | facts, findings)


def edition(directory: Path, chapters: Sequence[Chapter] = CHAPTERS, **facts: Any) -> Edition:
    """An edition of the hand-made chapter, kept in ``directory``."""
    for step, findings in FINDINGS.items():
        keep_record(directory, step, findings, **facts)
    keep_record(directory, "rq2-real", {}, **{**facts, "skipped": "no trips were given"})
    return compose(chapters, directory)
