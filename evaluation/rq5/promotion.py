"""One promotion: what it costs, and what a provisional one misses until it is rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

import ids
from evaluation.bench import Bench
from evaluation.engines import as_text, registered
from evaluation.repeated import Repeated
from evaluation.rq5.trace import conditions
from evaluation.step import Findings, Row

NAME = "asked"
KNOWN = 4  # predicates registered where one more is promoted
ROUNDS = 5  # of a repetition, which is their median
LARGEST = 200  # rows of a slide, at most


def costs(
    bench: Bench, windows: Sequence[int], clock: Callable[[], float] = perf_counter
) -> Findings:
    """One promotion and one demotion in windows of several sizes, taking turns.

    A repetition is the median of some rounds.
    """
    events, value = as_text(bench.events(bench.real, max(windows))), bench.real.value
    asked = conditions(events, bench.real)
    condition = next(c for c in asked if c.startswith(f"{value} >"))
    engines = [_promotable(events, value, rows, asked[:KNOWN], condition) for rows in windows]

    def up_and_down(engine: ids.Engine) -> tuple[float, float]:
        start = clock()
        engine.register(NAME, condition)
        middle = clock()
        engine.drop(NAME)
        return middle - start, clock() - middle

    spent = [
        [np.median([up_and_down(engine) for _ in range(ROUNDS)], axis=0) for engine in engines]
        for _ in range(bench.size.repetitions)
    ]
    found: list[Row] = []
    for engine, mine in zip(engines, zip(*spent, strict=True), strict=True):
        up, down = map(Repeated.of, zip(*mine, strict=True))
        found.append({
            "workload": bench.real.workload, "predicates": KNOWN, "condition": condition,
            "window": engine.rows, "atoms": engine.atoms, "promotion": up,
            "promotion_a_tuple": up.scaled(1 / engine.rows), "demotion": down,
        })  # fmt: skip
    return {"rq5_costs": found}


def _promotable(
    events: pa.Table, value: str, rows: int, known: Sequence[str], condition: str
) -> ids.Engine:
    """A full window of so many rows; promoting and demoting is checked once, and warm."""
    names = {f"known_{number}": one for number, one in enumerate(known)}
    engine = registered(ids.Engine(ids.CountWindow(rows), value), names)
    engine.ingest(events.slice(0, rows))
    scanned, atoms = engine.attribute("AVG", condition), engine.atoms
    engine.register(NAME, condition)
    looked_up = engine.attribute("AVG", NAME)
    if (scanned[:3], scanned.touched > 0, looked_up.touched) != (looked_up[:3], True, 0):
        raise AssertionError(f"{condition} is another answer once it is promoted")
    engine.drop(NAME)
    if engine.atoms != atoms:
        raise AssertionError(f"{condition} left atoms behind when it was demoted")
    return engine


def provisional(bench: Bench, window: int, slides: int, sample: int = 1_000) -> Findings:
    """What a predicate promoted from a sample misses at every slide; the last is after a rebuild.

    The engines have seen every row before the predicate is promoted, and see the first ones again
    afterwards: no value can then be beyond their scale, which would rebuild at once.
    """
    events, rng = as_text(bench.events(bench.real, 2 * window)), bench.rng("rq5-provisional")
    condition = conditions(events, bench.real)[1]
    promotion = ids.Promotion(threshold=1, bootstrap="sample", rebuild_after=inf)
    inside, sampling = ids.CountWindow(window), ids.Sampling(sample)
    engine = ids.Engine(inside, bench.real.value, sampling=sampling, promotion=promotion)
    exact = registered(ids.Engine(inside, bench.real.value), {NAME: condition})
    for begin in range(0, events.num_rows, window):  # a slide larger than the window is cut
        for each in (engine, exact):
            each.ingest(events.slice(begin, window))
    touched = engine.attribute("AVG", condition).touched
    rows: list[dict[str, Any]] = []
    errors, place = [], 0
    for slide in range(slides + 1):
        if slide == slides:
            engine.rebuild()
        errors.append(missed(engine, exact))
        rows.append({"slide": slide, "moved": place, **_seen(engine, exact, condition)})
        size = int(rng.integers(1, LARGEST + 1))
        delta = events.take(np.arange(place, place + size) % events.num_rows)
        engine.ingest(delta)
        exact.ingest(delta)
        place += size
        bench.said((slide + 1) / (slides + 1))
    short: Row = {
        "workload": bench.real.workload, "condition": condition, "window": window,
        "sample": sample, "touched": touched, "slides": slides, "moved": rows[-1]["moved"],
        "distinct_errors": len(set(errors[:-1])),
        "began_exact": not any(errors[0]), "rebuilt_exact": not any(errors[-1]),
        "bounded": all(abs(r["avg"] - r["avg_exact"]) <= r["avg_error"] for r in rows),
        "last_mechanism": rows[-1]["mechanism"],
    }  # fmt: skip
    return {"rq5_provisional": rows, "rq5_invariance": [short]}


def missed(estimated: ids.Engine, exact: ids.Engine) -> tuple[int, ...]:
    """What the sums of a predicate differ in from exact ones, as whole numbers.

    For every measure: rows, then Σ q and Σ q² in units of the measure's grid. One engine promoted
    the predicate from its sample, the other always had it.
    """
    ours, other = estimated._core, exact._core
    assert ours is not None
    assert other is not None
    found: list[int] = []
    for number, (mine, its) in enumerate(zip(ours.measures, other.measures, strict=True)):
        if ours.provisional:
            (one,) = ours.provisional.values()
            words = one.sums[number][0]
        else:
            (name,) = estimated.promoted
            words = mine.marginals[ours.membership.names.index(name)]
        if mine.scale != its.scale:
            raise AssertionError("sums in different units cannot be compared")
        rows, sums = mine.exact(words)
        truly, true_sums = its.exact(its.marginals[other.membership.names.index(NAME)])
        found += [rows - truly, *(a - b for a, b in zip(sums, true_sums, strict=True))]
    return tuple(found)


def _seen(engine: ids.Engine, exact: ids.Engine, condition: str) -> dict[str, Any]:
    """What whoever asks sees of it: rows counted, and AVG with its bound."""
    counts = [int(each.attribute("COUNT", condition).value) for each in (engine, exact)]
    ours, truly = (each.attribute("AVG", condition) for each in (engine, exact))
    return {
        "mechanism": ours.mechanism, "rows_missed": counts[0] - counts[1], "rows_exact": counts[1],
        "avg": ours.value, "avg_exact": truly.value, "avg_error": ours.error,
    }  # fmt: skip
