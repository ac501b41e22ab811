"""A Zipfian trace of ad hoc questions, put to an engine under each policy; what it touches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import ids
from evaluation.bench import Bench
from evaluation.engines import as_text, equality, frequent, literal
from evaluation.repeated import Repeated
from evaluation.step import Findings, Row, Subject

CONDITIONS = 40
MOST = 8  # predicates that a policy may keep
EVERY = 20  # questions between two points of a curve
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
            {
                "alpha": alpha,
                "policy": policy,
                "question": place,
                "touched": float(total[place - 1]),
            }
            for place in (1, *range(EVERY, len(total) + 1, EVERY))
        ]
    return {"rq5_trace": table, "rq5_curve": curve}


def replay(
    events: pa.Table, value: str, window: int, policy: str, asked: Sequence[str],
    clock: Callable[[], float] = perf_counter,
) -> Replay:  # fmt: skip
    """Ask the trace's questions, each after one row more; ``events`` has enough of them."""
    engine = ids.Engine(ids.CountWindow(window), value, promotion=POLICIES[policy])
    if policy == "oracle":
        for number, (condition, _) in enumerate(Counter(asked).most_common(MOST)):
            engine.register(f"known_{number}", condition)
    engine.ingest(events.slice(0, window))
    found = []
    for number, condition in enumerate(asked):
        engine.ingest(events.slice(window + number, 1))
        start = clock()
        one = engine.attribute("AVG", condition)
        seconds = clock() - start
        found.append((one.touched, one.why == "this question promoted it", one.value, seconds))
    return Replay(*map(np.array, zip(*found, strict=True)))


def zipfian(
    asked: Sequence[str], alpha: float, rng: np.random.Generator, questions: int
) -> list[str]:
    """Questions by Zipf's law; which condition has which rank is drawn, too."""
    weights = 1.0 / np.arange(1, len(asked) + 1) ** alpha
    ranked = rng.permutation(np.array(asked))
    return [str(c) for c in rng.choice(ranked, questions, p=weights / weights.sum())]


def conditions(events: pa.Table, subject: Subject) -> list[str]:
    """Forty, all different: equalities, ranges of the measure, hours; then conjunctions.

    The values are those the stream has most of, the bounds are quantiles: whatever the workload,
    some hold on most rows and some on few.
    """
    name, column = subject.value, events[subject.value].to_numpy()
    equal = [[equality(attribute, value) for value, _ in frequent(events, attribute)[:6]]
             for attribute in subject.attributes]  # fmt: skip
    found = [condition for each in equal for condition in each]

    def at(share: float) -> str:
        return literal(np.quantile(column, share, method="lower").item())

    found += [f"{name} > {at(share)}" for share in (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)]
    found += [f"{name} BETWEEN {at(low)} AND {at(high)}"
              for low, high in ((0.1, 0.4), (0.4, 0.6), (0.6, 0.9))]  # fmt: skip
    quarters = np.unique(pc.hour(events["event_time"]).to_numpy() // 6).tolist()
    if len(quarters) > 1:  # of the day
        found += [f"HOUR(event_time) BETWEEN {6 * q} AND {6 * q + 5}" for q in quarters]
    for one, other in combinations(equal, 2):
        found += [f"{a} AND {b}" for a in one[:4] for b in other[:3]]
    distinct = list(dict.fromkeys(found))
    if len(distinct) < CONDITIONS:
        raise ValueError(f"{subject.workload} has columns for {len(distinct)} conditions only")
    return distinct[:CONDITIONS]
