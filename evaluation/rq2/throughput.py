"""Incremental maintenance against a scan of every window: tuples a second, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import numpy as np

from evaluation.bench import Bench
from evaluation.repeated import in_turns
from evaluation.rq2.maintaining import ATOMS, EVERYTHING, Maintained
from evaluation.rq2.stream import PREDICATES, Prepared, Stream, equals
from evaluation.size import Size
from evaluation.step import Findings, Row, Step, Value
from evaluation.subject import SUBJECTS

__all__ = ["GAMES", "STEPS", "WINDOWS", "cell", "steps"]

WINDOWS = (1_000, 10_000, 100_000, 1_000_000)
STEPS = (1, 10, 100)
# What a game needs is the degree of its moments: (m, A) or (m, A, B).
GAMES = {"AVG": 1, "VAR": 2}


def steps(size: Size) -> list[Step]:
    """A step for each window size."""
    return [
        Step(
            f"rq2-throughput-{window}",
            f"slides and scans at N = {window:,}",
            _seconds(size, window),
            partial(_work, window=window),
            needs=("synthetic",),
        )
        for window in WINDOWS
    ]


def _seconds(size: Size, window: int) -> float:
    compiling = 8.0 if window == WINDOWS[0] else 0.0
    return compiling + size.of(quick=2.5, full=7.0) + size.of(quick=1e-6, full=4e-6) * window


def _work(bench: Bench, window: int) -> Findings:
    tuples = bench.size.of(quick=400_000, full=1_000_000)
    stream = Stream(bench.events(SUBJECTS["synthetic"], window + tuples), "latency")
    rows: list[Row] = []
    settings = list(product(PREDICATES, GAMES))
    for done, (count, game) in enumerate(settings):
        predicates = [equals(test) for test in PREDICATES[count]]
        prepared = stream.prepared(predicates, GAMES[game])
        facts: dict[str, Value] = {"predicates": count, "live": prepared.live, "game": game}
        rows += [facts | found for found in _cells(bench, prepared, window, tuples)]
        bench.said((done + 1) / len(settings))
    return {"rq2_throughput": rows}


def _cells(
    bench: Bench, prepared: Prepared, window: int, tuples: int
) -> Iterator[dict[str, Value]]:
    # A scan costs as much at every slide: a few of them tell what all would take.
    most = bench.size.of(quick=1_000_000, full=4_000_000) // window
    for kept, step in product((ATOMS, EVERYTHING), STEPS):
        maintained = Maintained(prepared, window, step, kept)
        slides = tuples // step
        yield cell(maintained, slides, max(2, min(most, slides)), bench.size.repetitions)


def cell(maintained: Maintained, slides: int, scans: int, repetitions: int) -> dict[str, Value]:
    """Both ways side by side, after making sure that they give the same summaries."""
    incremental, scan = maintained.incremental(slides), maintained.scan(scans)
    if not np.array_equal(incremental(), maintained.scan(1, before=slides - 1)()):
        raise AssertionError(f"slides and scan disagree: {maintained.window}, {maintained.step}")
    took = in_turns({"ids": incremental, "scan": scan}, repetitions)
    ids, scanned = took["ids"], took["scan"]
    return {
        "window": maintained.window,
        "step": maintained.step,
        "kept": maintained.kept,
        "slides": slides,
        "scans": scans,
        "ids_tuples_s": ids.rate(slides * maintained.step),
        "scan_tuples_s": scanned.rate(scans * maintained.step),
        "ids_slides_s": ids.rate(slides),
        "scan_slides_s": scanned.rate(scans),
        "speedup": scanned.scaled(1 / scans).over(ids.scaled(1 / slides)),
    }
