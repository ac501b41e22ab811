"""Promotion: what a Zipfian trace of ad hoc questions touches, what promoting costs and misses."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import ids
from evaluation.bench import Bench, as_text, equality, filled, frequent, literal, registered
from evaluation.step import Findings, Repeated, Row, Subject, in_turns

Clock = Callable[[], float]
CONDITIONS = 40
MOST = 8  # predicates that a policy may keep
EVERY = 20  # questions between two points of a curve
NAME = "asked"
KNOWN = 4  # predicates registered where one more is promoted
ROUNDS = 5  # of a repetition, which is their median
LARGEST = 200  # rows of a slide, at most
POLICIES: dict[str, ids.Promotion | None] = {
    "static": None,
    "oracle": None,
    "adaptive, f = 10": ids.Promotion(MOST, threshold=10, replaces=False),
    "ours": ids.Promotion(MOST),
}
"""The oracle knows the trace and has registered what it asks about most; the third is the paper's
own; ours promotes at the second question, and what is asked about least gives way."""


class Replay(NamedTuple):
    """A trace put to an engine, question by question.

    touched   int64[questions]    rows that each question looked at
    promoted  bool[questions]     whether it promoted: its rows then were the rebuild's
    value     float64[questions]  its answer
    seconds   float64[questions]  that it took, the slide before it left out
    """

    touched: np.ndarray
    promoted: np.ndarray
    value: np.ndarray
    seconds: np.ndarray


QUANTITIES: dict[str, Callable[[Replay], float]] = {
    "promotions": lambda r: r.promoted.sum(),
    "adhoc": lambda r: r.touched[~r.promoted].sum(),
    "rebuild": lambda r: r.touched[r.promoted].sum(),
    "scans": lambda r: (r.touched > 0).sum(),
    "seconds": lambda r: r.seconds.sum(),
    "scan_seconds": lambda r: np.median(r.seconds[(r.touched > 0) & ~r.promoted]),
}


def trace(bench: Bench, alpha: int, window: int, questions: int) -> Findings:
    """As many traces as there are repetitions, each put to every policy."""
    subject, seeds = bench.real, bench.size.repetitions
    events = as_text(bench.events(subject, window + questions))
    asked = conditions(events, subject)
    warm_up = zipfian(asked, alpha, bench.rng("rq5-warm-up"), 50)
    for policy in POLICIES:
        replay(events, subject.value, window, policy, warm_up)
    replays: dict[str, list[Replay]] = {policy: [] for policy in POLICIES}
    for seed in range(seeds):
        one = zipfian(asked, alpha, bench.rng(f"rq5-{alpha}-{seed}"), questions)
        for policy, made in replays.items():
            made.append(replay(events, subject.value, window, policy, one))
        bench.said((seed + 1) / seeds)
    facts: Row = {"workload": subject.workload, "window": window, "questions": questions}
    return compared(alpha, replays, facts)


def compared(alpha: int, replays: dict[str, list[Replay]], facts: Row) -> Findings:
    """Every policy's replays of the same traces beside static's; all must answer the same."""
    static = replays["static"]
    table: list[Row] = []
    curve: list[Row] = []
    for policy, made in replays.items():
        pairs = list(zip(static, made, strict=True))
        if not all(np.array_equal(scan.value, one.value) for scan, one in pairs):
            raise AssertionError(f"{policy} answers otherwise than a scan")
        gain = Repeated.of(scan.touched.sum() / one.touched.sum() for scan, one in pairs)
        found = {name: Repeated.of(map(count, made)) for name, count in QUANTITIES.items()}
        table.append({"alpha": alpha, "policy": policy, **facts, "gain": gain, **found})
        total = np.mean([np.cumsum(one.touched) for one in made], axis=0)
        curve += [
            {"alpha": alpha, "policy": policy, "question": k, "touched": float(total[k - 1])}
            for k in (1, *range(EVERY, len(total) + 1, EVERY))
        ]
    return {"rq5_trace": table, "rq5_curve": curve}


def replay(
    events: pa.Table, value: str, window: int, policy: str, asked: Sequence[str],
    clock: Clock = perf_counter,
) -> Replay:  # fmt: skip
    """Ask the trace's questions, each after one row more; ``events`` has enough of them."""
    engine = ids.Engine(ids.CountWindow(window), value, promotion=POLICIES[policy])
    if policy == "oracle":
        often = enumerate(Counter(asked).most_common(MOST))
        registered(engine, {f"known_{number}": condition for number, (condition, _) in often})
    engine.ingest(events.slice(0, window))
    found = []
    for number, condition in enumerate(asked):
        engine.ingest(events.slice(window + number, 1))
        start = clock()
        one = engine.attribute("AVG", condition)
        seconds = clock() - start
        found.append((one.rows_read, one.reason == "this question promoted it", one.value, seconds))
    return Replay(*map(np.array, zip(*found, strict=True)))


def zipfian(
    asked: Sequence[str], alpha: float, rng: np.random.Generator, questions: int
) -> list[str]:
    """Questions by Zipf's law; which condition has which rank is drawn, too."""
    weights = 1.0 / np.arange(1, len(asked) + 1) ** alpha
    ranked = rng.permutation(np.array(asked))
    return [str(c) for c in rng.choice(ranked, questions, p=weights / weights.sum())]


def conditions(events: pa.Table, subject: Subject) -> list[str]:
    """Forty, of frequent values and quantiles: some hold on most rows, some on few."""
    equal = [[equality(a, v) for v, _ in frequent(events, a)[:6]] for a in subject.attributes]
    found = [condition for each in equal for condition in each]
    name, column = subject.value, events[subject.value].to_numpy()

    def at(percent: int) -> str:
        return literal(np.quantile(column, percent / 100, method="lower").item())

    found += [f"{name} > {at(percent)}" for percent in (25, 50, 75, 90, 95, 99)]
    found += [f"{name} BETWEEN {at(a)} AND {at(b)}" for a, b in ((10, 40), (40, 60), (60, 90))]
    quarters = np.unique(pc.hour(events["event_time"]).to_numpy() // 6).tolist()  # of the day
    if len(quarters) > 1:
        found += [f"HOUR(event_time) BETWEEN {6 * q} AND {6 * q + 5}" for q in quarters]
    for one, other in combinations(equal, 2):
        found += [f"{a} AND {b}" for a in one[:4] for b in other[:3]]
    distinct = list(dict.fromkeys(found))
    if len(distinct) < CONDITIONS:
        raise ValueError(f"{subject.workload} has columns for {len(distinct)} conditions only")
    return distinct[:CONDITIONS]


def costs(bench: Bench, windows: Sequence[int], clock: Clock = perf_counter) -> Findings:
    """One promotion and one demotion in windows of several sizes, taking turns."""
    events, value = as_text(bench.events(bench.real, max(windows))), bench.real.value
    asked = conditions(events, bench.real)
    condition = next(c for c in asked if c.startswith(f"{value} >"))
    known = {f"known_{number}": one for number, one in enumerate(asked[:KNOWN])}
    engines: list[ids.Engine] = []
    turns: dict[str, Callable[[], object]] = {}
    for rows in windows:
        engine = registered(ids.Engine(ids.CountWindow(rows), value), known)
        engines.append(filled(engine, events.slice(0, rows), rows))
        refuse_another_answer(engine, condition)
        turns[f"up {rows}"] = partial(engine.register, NAME, condition)
        turns[f"down {rows}"] = partial(engine.drop, NAME)
    spent = {
        turn: Repeated.of(np.median(np.reshape(times.samples, (-1, ROUNDS)), axis=1))
        for turn, times in in_turns(turns, ROUNDS * bench.size.repetitions, clock).items()
    }
    found: list[Row] = [
        {"workload": bench.real.workload, "predicates": KNOWN, "condition": condition,
         "window": engine.rows, "atoms": engine.atoms, "promotion": spent[f"up {engine.rows}"],
         "promotion_a_tuple": spent[f"up {engine.rows}"].scaled(1 / engine.rows),
         "demotion": spent[f"down {engine.rows}"]} for engine in engines
    ]  # fmt: skip
    return {"rq5_costs": found}


def refuse_another_answer(engine: ids.Engine, condition: str) -> None:
    """Stop unless a promotion answers as a scan does, and a demotion leaves no atom behind."""
    scanned, atoms = engine.attribute("AVG", condition), engine.atoms
    engine.register(NAME, condition)
    looked_up = engine.attribute("AVG", NAME)
    if (scanned[:3], scanned.rows_read > 0, looked_up.rows_read) != (looked_up[:3], True, 0):
        raise AssertionError(f"{condition} is another answer once it is promoted")
    engine.drop(NAME)
    if engine.atoms != atoms:
        raise AssertionError(f"{condition} left atoms behind when it was demoted")


def provisional(bench: Bench, window: int, slides: int, sample: int = 1_000) -> Findings:
    """What a predicate promoted from a sample misses at every slide; after the last, rebuilt."""
    events, rng = as_text(bench.events(bench.real, 2 * window)), bench.rng("rq5-provisional")
    condition = conditions(events, bench.real)[1]
    promotion = ids.Promotion(threshold=1, bootstrap="sample", rebuild_after=inf)
    inside, sampling = ids.CountWindow(window), ids.Sampling(sample)
    engine = ids.Engine(inside, bench.real.value, sampling=sampling, promotion=promotion)
    exact = registered(ids.Engine(inside, bench.real.value), {NAME: condition})
    for each in (engine, exact):  # all rows: none of a later slide is beyond the scale
        filled(each, events, window)
    touched = engine.attribute("AVG", condition).rows_read
    rows: list[dict[str, Any]] = []
    errors, place = [], 0
    for slide in range(slides + 1):
        if slide == slides:
            engine.rebuild()
        errors.append(missed(engine, exact))
        ours, truly = (each.attribute("AVG", condition) for each in (engine, exact))
        counts = [int(each.attribute("COUNT", condition).value) for each in (engine, exact)]
        rows.append({
            "slide": slide, "moved": place, "mechanism": ours.mechanism,
            "rows_missed": counts[0] - counts[1], "rows_exact": counts[1],
            "avg": ours.value, "avg_exact": truly.value, "avg_error": ours.error,
        })  # fmt: skip
        moved = np.arange(place, place := place + int(rng.integers(1, LARGEST + 1)))
        for each in (engine, exact):
            each.ingest(events.take(moved % events.num_rows))
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
    """By how much the rows, Σ q and Σ q² of every measure differ, in whole units of its grid."""
    ours, other = estimated._core, exact._core
    assert ours is not None
    assert other is not None
    found: list[int] = []
    for number, (mine, its) in enumerate(zip(ours.measures, other.measures, strict=True)):
        if mine.scale != its.scale:
            raise AssertionError("sums in different units cannot be compared")
        if ours.provisional:
            (one,) = ours.provisional.values()
            words = one.sums[number][0]
        else:
            words = mine.marginals[ours.membership.names.index(next(iter(estimated.promoted)))]
        rows, sums = mine.exact(words)
        truly, true_sums = its.exact(its.marginals[other.membership.names.index(NAME)])
        found += [rows - truly, *(a - b for a, b in zip(sums, true_sums, strict=True))]
    return tuple(found)
