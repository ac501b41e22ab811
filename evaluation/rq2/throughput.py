"""Incremental maintenance against a scan of every window: tuples a second, cell by cell."""

from __future__ import annotations

from itertools import product

import numpy as np

from evaluation.bench import Bench
from evaluation.repeated import in_turns
from evaluation.rq2.slides import ATOMS, EVERYTHING, PREDICATES, Maintained, Stream
from evaluation.step import SUBJECTS, Findings, Row, Value

_STEPS = (1, 10, 100)
# What a game needs is the degree of its moments: (m, A) or (m, A, B).
_GAMES = {"AVG": 1, "VAR": 2}


def work(window: int, bench: Bench) -> Findings:
    """Every number of predicates, game, step and what is kept, at one window size."""
    tuples = bench.size.of(quick=400_000, full=1_000_000)
    # A scan costs as much at every slide: a few of them tell what all would take.
    most = bench.size.of(quick=1_000_000, full=4_000_000) // window
    stream = Stream(bench.events(SUBJECTS["synthetic"], window + tuples), "latency")
    rows: list[Row] = []
    settings = list(product(PREDICATES, _GAMES))
    for done, (count, game) in enumerate(settings):
        prepared = stream.prepared(PREDICATES[count], _GAMES[game])
        facts: dict[str, Value] = {
            "predicates": count,
            "live": prepared.refinement.atoms,
            "game": game,
        }
        for kept, step in product((ATOMS, EVERYTHING), _STEPS):
            slides = tuples // step
            maintained = Maintained(prepared, window, step, kept)
            scans = max(2, min(most, slides))
            rows.append(facts | cell(maintained, slides, scans, bench.size.repetitions))
        bench.said((done + 1) / len(settings))
    return {"rq2_throughput": rows}


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
