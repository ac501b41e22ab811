"""What a question to a running engine costs: p50 and p99, through the Python API.

Three readings. *Computed anew*: the question is asked again and again, the answer forgotten each
time. *After a slide*: each question follows a row that came, so the caches hold the slide's data.
*Remembered*: the window stands still, and the engine knows the answer. Beside them the bare closed
form as a Python function of six floats, which knows no engine at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from itertools import cycle
from typing import NamedTuple

import pyarrow as pa

import ids
from evaluation.asking import Percentiles, after_slides, in_a_row
from evaluation.bench import Bench
from evaluation.engines import registered
from evaluation.repeated import Repeated
from evaluation.rq2.stream import PREDICATES
from evaluation.size import Size
from evaluation.step import Findings, Step
from evaluation.subject import SUBJECTS
from evaluation.values import equality

__all__ = ["AFTER", "AGAIN", "ANEW", "BARE", "SIX", "bare", "steps"]

ANEW = "computed anew"
AFTER = "after a slide"
AGAIN = "remembered"
BARE = "bare function"

_GAMMA = 0.5772156649015329
_WINDOW = 10_000
SIX = (1e4, 5e5, 3e7, 1250.0, 7e4, 4e6)  # N, A, B, m, A_P, B_P


def bare(n: float, a: float, _b: float, m: float, a_p: float, _b_p: float) -> tuple[float, ...]:
    """The closed form of AVG from six floats, with H by its series."""
    mean = a / n
    k = n - 1.0
    h = math.log(k) + _GAMMA + 1.0 / (2.0 * k) - 1.0 / (12.0 * k * k)
    share = m / n * mean
    lift = h / k * (a_p - m * mean)
    return share + lift, share, lift


def steps(size: Size) -> list[Step]:
    """One step for all K, which take turns."""
    return [
        Step(
            "rq2-latency",
            "questions to a running engine",
            size.of(quick=6.0, full=20.0),
            _work,
            needs=("synthetic",),
        )
    ]


def _work(bench: Bench) -> Findings:
    slides = bench.size.of(quick=300, full=1_000)
    table = bench.events(SUBJECTS["synthetic"], _WINDOW + slides)
    asked = [each for count in PREDICATES for each in _asked(table, count)]
    found: list[dict[str, list[Percentiles]]] = [{ANEW: [], AFTER: [], AGAIN: []} for _ in asked]
    for repetition in range(bench.size.repetitions):
        for one, spent in zip(asked, found, strict=True):
            spent[AFTER].append(after_slides(one.engine, one.batches, one.work, slides))
            forget = one.engine._questions.slid  # as a slide has it, without the slide
            spent[ANEW].append(in_a_row(one.work, 10 * slides, forget))
            spent[AGAIN].append(in_a_row(one.work, 10 * slides))
        bench.said((repetition + 1) / bench.size.repetitions)
    return {
        "rq2_latency": [
            {
                "predicates": one.predicates,
                "live": one.live,
                "path": one.path,
                "reading": reading,
                "p50": Repeated.of(p.p50 for p in spent[reading]),
                "p99": Repeated.of(p.p99 for p in spent[reading]),
            }
            for reading in (ANEW, AFTER, AGAIN)
            for one, spent in zip(asked, found, strict=True)
        ]
    }


class _Asked(NamedTuple):
    """A question, and the engine that it is put to."""

    predicates: int
    live: int
    path: str
    engine: ids.Engine
    batches: Iterable[object]
    work: Callable[[], object]


def _asked(table: pa.Table, count: int) -> list[_Asked]:
    """Both paths to one engine; where four are registered, also the bare function after slides."""
    conditions = {f"p{k}": equality(*test) for k, test in enumerate(PREDICATES[count])}
    engine = registered(ids.Engine(ids.CountWindow(_WINDOW), "latency"), conditions)
    rows = table.to_pydict()
    columns = {column for column, _ in PREDICATES[count]} | {"latency"}
    engine.ingest({name: rows[name][:_WINDOW] for name in columns})
    batches = cycle(
        [{name: [rows[name][i]] for name in columns} for i in range(_WINDOW, table.num_rows)]
    )
    questions = {"marginal": "p0", "compositional": "p0 OR p1" if count > 1 else "NOT p0"}
    found = []
    for path, question in questions.items():
        answer = engine.attribute("AVG", question)
        if answer.mechanism != path:
            raise AssertionError(f"{question} is answered by {answer.mechanism}, not {path}")
        work = partial(engine.attribute, "AVG", question)
        found.append(_Asked(count, engine.atoms, path, engine, batches, work))
    if count == 4:
        found.append(_Asked(count, engine.atoms, BARE, engine, batches, partial(bare, *SIX)))
    return found
