"""The steps of RQ5: a trace for each skew, the costs of a promotion, a provisional error."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluation.bench import Bench
from evaluation.repeated import Repeated
from evaluation.rq5.conditions import conditions
from evaluation.rq5.costs import Promotable, costs
from evaluation.rq5.paper import QUESTIONS, WINDOW
from evaluation.rq5.provisional import invariance
from evaluation.rq5.trace import POLICIES, Outcome, replay, zipfian
from evaluation.size import Size
from evaluation.step import Findings, Row, Step
from evaluation.values import as_text

__all__ = ["ALPHAS", "compared", "steps"]

ALPHAS = (1, 2)
_EVERY = 20  # questions between two points of a curve
_WARM_UP = 50  # questions
_KNOWN = 4  # predicates registered where one more is promoted


def steps(size: Size) -> list[Step]:
    """One for each skew, so that a run that was stopped has at most one trace to ask again."""
    questions = _questions(size)
    seconds = size.of(quick=8.0, full=32.0)
    return [
        *(
            Step(f"rq5-trace-{alpha}", f"asks {questions:,} questions, Zipf {alpha}", seconds,
                 partial(_trace, alpha), ("real",))
            for alpha in ALPHAS
        ),
        Step("rq5-costs", "promotes and demotes", size.of(quick=1.0, full=3.0), _costs,
             ("real",)),
        Step("rq5-provisional", "follows a provisional error", size.of(quick=1.0, full=3.0),
             _provisional, ("real",)),
    ]  # fmt: skip


def _questions(size: Size) -> int:
    return size.of(quick=400, full=QUESTIONS)


def _events(bench: Bench, rows: int) -> pa.Table:
    return as_text(bench.events(bench.real, rows))


def _trace(alpha: int, bench: Bench) -> Findings:
    window, questions = bench.size.of(quick=20_000, full=WINDOW), _questions(bench.size)
    events = _events(bench, window + questions)
    asked = conditions(events, bench.real)
    seeds = bench.size.repetitions
    warm_up = zipfian(asked, alpha, bench.rng("rq5-warm-up"), _WARM_UP)
    for policy in POLICIES:
        replay(events, bench.real.value, window, policy, warm_up)
    outcomes: dict[str, list[Outcome]] = {policy: [] for policy in POLICIES}
    for seed in range(seeds):
        trace = zipfian(asked, alpha, bench.rng(f"rq5-{alpha}-{seed}"), questions)
        for number, policy in enumerate(POLICIES):
            outcomes[policy].append(replay(events, bench.real.value, window, policy, trace))
            bench.said((seed * len(POLICIES) + number + 1) / (seeds * len(POLICIES)))
    facts: Row = {"workload": bench.real.workload, "window": window, "questions": questions}
    return compared(alpha, outcomes, facts)


def compared(alpha: int, outcomes: dict[str, list[Outcome]], facts: Row) -> Findings:
    """Every policy's replays of the same traces beside static's; all must answer the same."""
    static = outcomes["static"]
    table: list[Row] = []
    curve: list[Row] = []
    for policy, replays in outcomes.items():
        if not all(np.array_equal(a.value, b.value) for a, b in zip(replays, static, strict=True)):
            raise AssertionError(f"{policy} answers otherwise than a scan")
        pairs = list(zip(static, replays, strict=True))
        table.append({
            "alpha": alpha, "policy": policy, **facts,
            "promotions": Repeated.of(r.promotions for r in replays),
            "adhoc": Repeated.of(r.adhoc for r in replays),
            "rebuild": Repeated.of(r.rebuild for r in replays),
            "scans": Repeated.of(int((r.touched > 0).sum()) for r in replays),
            "gain": Repeated.of(s.touched.sum() / r.touched.sum() for s, r in pairs),
            "seconds": Repeated.of(r.time for r in replays),
            "scan_seconds": Repeated.of(r.time_of_scan for r in replays),
        })  # fmt: skip
        curve += [
            {"alpha": alpha, "policy": policy, "question": question, "touched": touched}
            for question, touched in _cumulative(replays)
        ]
    return {"rq5_trace": table, "rq5_curve": curve}


def _cumulative(replays: list[Outcome]) -> list[tuple[int, float]]:
    """Rows touched up to a question, that one included; the mean of the replays."""
    total: npt.NDArray[np.float64] = np.mean([np.cumsum(r.touched) for r in replays], axis=0)
    places = [1, *range(_EVERY, len(total) + 1, _EVERY)]
    return [(place, float(total[place - 1])) for place in places]


def _costs(bench: Bench) -> Findings:
    windows: tuple[int, ...] = bench.size.of(quick=(5_000, 50_000), full=(5_000, 50_000, 500_000))
    events, value = _events(bench, max(windows)), bench.real.value
    asked = conditions(events, bench.real)
    condition = next(c for c in asked if c.startswith(f"{value} >"))
    made = [Promotable.of(events, value, rows, asked[:_KNOWN], condition) for rows in windows]
    found = costs(made, bench.size.repetitions)
    facts: Row = {"workload": bench.real.workload, "predicates": _KNOWN, "condition": condition}
    return {"rq5_costs": [{**facts, **row} for row in found]}


def _provisional(bench: Bench) -> Findings:
    window = bench.size.of(quick=10_000, full=WINDOW)
    slides = bench.size.of(quick=100, full=400)
    events = _events(bench, 2 * window)
    condition = conditions(events, bench.real)[1]
    rows, short = invariance(
        events, bench.real.value, condition, window=window, slides=slides,
        sample=1_000, rng=bench.rng("rq5-provisional"), said=bench.said,
    )  # fmt: skip
    facts: Row = {"workload": bench.real.workload, "condition": condition}
    return {"rq5_provisional": rows, "rq5_invariance": [{**facts, **short}]}
