"""The steps of the chapter on sampling."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from evaluation.bench import Bench
from evaluation.engines import filled
from evaluation.repeated import in_turns
from evaluation.rq4 import own_samples
from evaluation.rq4.conditions import aligned, window_of
from evaluation.rq4.ingest import Work, eagerly, fed, lazily, refuse_another_sample
from evaluation.rq4.strata import beside_uniform, size_for
from evaluation.rq4.trials import GAMES_ASKED, Way, trials
from evaluation.size import Size
from evaluation.step import Findings, Row, Step
from evaluation.values import frequent
from ids.engine import Engine
from ids.model.sampling import Sampling
from ids.model.window import CountWindow, TimeWindow
from ids.source import open_table

__all__ = ["FRACTIONS", "SIZES", "WAYS", "steps"]

WAYS = {
    "default": Way("extremes whole"),
    "plain": Way("without replacement", extremes=False),
    "replaced": Way("with replacement", replacement=True, extremes=False),
    "control": Way("control variate", control_variate=True, extremes=False),
    "control-default": Way("control variate, extremes whole", control_variate=True),
    "hoeffding": Way("Hoeffding", "hoeffding", extremes=False),
    "hoeffding-default": Way("Hoeffding, extremes whole", "hoeffding"),
}
N = 100_000  # the paper's
FRACTIONS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)  # of the window's rows
BUDGETS = (100, 200, 500, 1_000, 2_000)  # rows of both samples in all, where strata are compared
SIZES = (64, 256, 1_024, 2_048, 4_096)  # r, while a window slides
BATCH = 1_000  # rows that a sampler is given at once
ENGINE_BATCH = 10_000


def steps(size: Size) -> list[Step]:
    """Errors and bounds for each way to draw, strata, the engine's own samples, and ingest."""
    reads = ("real",)
    return [
        *(
            Step(
                f"rq4-error-{name}",
                f"samples: {way.label}",
                size.of(quick=1.5, full=20.0) * (2 if way.control_variate else 1),
                partial(_error, name=name, way=way),
                reads,
            )
            for name, way in WAYS.items()
        ),
        Step(
            "rq4-strata",
            "strata beside a uniform sample",
            size.of(quick=0.5, full=6.0),
            _strata,
            reads,
        ),
        Step(
            "rq4-engine",
            "the engine's own samples, by many seeds",
            size.of(quick=2.0, full=20.0),
            _engine,
            reads,
        ),
        *(
            Step(
                f"rq4-ingest-{r}",
                f"ingest while r = {r:,} rows are sampled",
                size.of(quick=0.5 + r / 2_000, full=2.0 + r / 300),
                partial(_ingest, r=r),
                reads,
            )
            for r in SIZES
        ),
    ]


def _while_sliding(size: Size) -> int:
    """N where rows come and go."""
    return size.of(quick=20_000, full=N)


def _error(bench: Bench, name: str, way: Way) -> Findings:
    window = window_of(bench.events(bench.real, N), bench.real)
    rng = bench.rng(f"rq4-error-{name}")
    sizes = [round(fraction * len(window.value)) for fraction in FRACTIONS]
    drawn = {r: r * _times(bench.size, r) for r in sizes}  # a step's time goes with the rows drawn
    whole = sum(drawn.values())
    found: list[Row] = []
    for r in sizes:
        done = sum(rows for s, rows in drawn.items() if s < r)
        said = _within(bench.said, done / whole, drawn[r] / whole)
        for one in trials(window, way, r, _times(bench.size, r), rng, said):
            facts: Row = {
                "subject": bench.real.workload,
                "n": len(window.value),
                # the paper asks about attributes; ranges of the measure itself are ours
                "kind": "range" if bench.real.value in one.predicate else "equality",
            }
            found.append({**facts, **one._asdict()})
    return {"rq4_error": found}


def _times(size: Size, r: int) -> int:
    """Trials: more where a sample is small, and cheap."""
    least, most, rows = size.of(quick=(60, 400, 600_000), full=(1_000, 4_000, 10_000_000))
    return min(most, max(least, rows // r))


def _within(said: Callable[[float], None], done: float, own: float) -> Callable[[float], None]:
    return lambda part: said(done + own * part)


def _strata(bench: Bench) -> Findings:
    events = bench.events(bench.real, N)
    window = window_of(events, bench.real)
    name, holds = aligned(events, bench.real)
    counts = np.unique(window.stratum, return_counts=True)[1]
    times = bench.size.of(quick=400, full=4_000)
    rng = bench.rng("rq4-strata")
    found: list[Row] = []
    for budget in BUDGETS:
        size = size_for(counts, budget)
        found += [
            {
                "subject": bench.real.workload,
                "n": len(window.value),
                "by": bench.real.attributes[0],
                "predicate": name,
                "selectivity": float(holds.mean()),
                "budget": budget,
                "worth": window.worth(one.game),
                **one._asdict(),
            }
            for one in beside_uniform(window, holds, GAMES_ASKED, size, times, rng)
        ]
        bench.said(sum(b for b in BUDGETS if b <= budget) / sum(BUDGETS))
    return {"rq4_strata": found}


def _engine(bench: Bench) -> Findings:
    n = _while_sliding(bench.size)
    found = own_samples.judged(
        bench.events(bench.real, 2 * n),
        bench.real,
        sizes=[round(fraction * n) for fraction in (0.01, 0.05)],
        times=bench.size.of(quick=60, full=200),
        said=bench.said,
    )
    return {"rq4_engine": found}


def _ingest(bench: Bench, r: int) -> Findings:
    n = _while_sliding(bench.size)
    refuse_another_sample(r, 2 * n, n)
    bench.said(0.1)
    contenders = {label: (rows, work) for label, rows, work in _contenders(bench, n, r)}
    spent = in_turns({k: work for k, (_, work) in contenders.items()}, bench.size.repetitions)
    return {
        "rq4_ingest": [
            {
                "subject": bench.real.workload,
                "n": n,
                "r": r,
                "contender": label,
                "rows": contenders[label][0],
                "ns": seconds.scaled(1e9 / contenders[label][0]),
            }
            for label, seconds in spent.items()
        ]
    }


def _contenders(bench: Bench, n: int, r: int) -> list[tuple[str, int, Work]]:
    """Those that cost much per row get fewer rows: from an empty window to the first full one.

    Their candidates are fewest there, so this is in their favour. The fastest gets more, for
    its time to be longer than a moment's disturbance.
    """
    subject, many = bench.real, 3 * n
    events = bench.events(subject, many).select([*subject.attributes, subject.value])
    table = open_table(events, "events").read(events.column_names)
    replaced = Sampling(size=r, replacement=True)

    def sampler(sampling: Sampling, window: CountWindow | TimeWindow, rows: int) -> Work:
        return fed(table, subject.value, sampling, window, rows, BATCH)

    def engine(sampling: Sampling | None) -> Work:
        def work() -> Engine:
            kept = Engine(window=CountWindow(n), value=subject.value, sampling=sampling)
            return filled(kept, events, ENGINE_BATCH)

        return work

    return [
        ("lazy sweeps", 10 * many, lazily(r, 10 * many, n)),
        ("eager domination", n, eagerly(r, n, n)),
        ("WindowSample", many, sampler(Sampling(size=r), CountWindow(n), many)),
        ("chain-sample", many, sampler(replaced, CountWindow(n), many)),
        ("priority-sample", n, sampler(replaced, TimeWindow(n), n)),
        ("engine with a sample", many, engine(Sampling(size=r))),
        ("engine without", many, engine(None)),
        ("engine with strata", many, engine(_stratified(events, subject.attributes[0], r))),
    ]


def _stratified(events: pa.Table, by: str, r: int) -> Sampling:
    """As many rows in all, of every stratum alike."""
    counts = np.array([count for _, count in frequent(events, by)])
    return Sampling(size=size_for(counts, r), strata=(by,))
