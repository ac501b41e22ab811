"""What does a question to a running engine cost, next to the bare formula in Python?

The bare function is given six floats (N, A, B, m, A_P, B_P) and evaluates AVG's share and lift.
The engine is asked right after a slide, so that nothing is remembered; and asked again.
"""

from __future__ import annotations

from functools import partial
from itertools import cycle, repeat
from typing import NamedTuple

import numpy as np

import ids
from evaluation.asking import after_slides, in_a_row
from evaluation.benchmarks.record import describe, write
from evaluation.rq2.latency import SIX, bare

__all__ = ["main"]

TIMES = 20_000


def main() -> None:
    """Measure, keep, show."""
    rows: list[Row] = []
    formula = partial(bare, *SIX)
    engine, batch = _engine(64)
    base = after_slides(engine, repeat(batch), formula)
    rows.append(Row("bare Python function, after a slide", 0, *base, 1.0))
    for k in (1, 4, 16, 64):
        engine, batch = _engine(k)
        asked = after_slides(engine, repeat(batch), partial(engine.attribute, "AVG", "p0"))
        rows.append(Row(f"registered, after a slide, K = {k}", engine.atoms, *asked, base[0]))
    for k in (2, 6, 10):
        engine, batch = _overlapping(k)
        either = partial(engine.attribute, "AVG", " OR ".join(f"p{i}" for i in range(k)))
        asked = after_slides(engine, repeat(batch), either)
        rows.append(Row(f"compositional, after a slide, K = {k}", engine.atoms, *asked, base[0]))
    again = in_a_row(formula, TIMES)
    rows.append(Row("bare Python function, again and again", 0, *again, 1.0))
    for k in (1, 64):
        engine, _ = _engine(k)
        asked = in_a_row(partial(engine.attribute, "AVG", "p0"), TIMES)
        rows.append(Row(f"registered, again and again, K = {k}", engine.atoms, *asked, again[0]))
    print("| question | live atoms | p50 | p99 | p50, relative |\n|---|---:|---:|---:|---:|")
    for row in rows:
        atoms = row.atoms or ""
        ratio = row.p50 / row.base if row.base != 1.0 else 1.0
        print(f"| {row.label} | {atoms} | {row.p50:.2f} µs | {row.p99:.2f} µs | {ratio:.2f} × |")
    found = [
        {"question": r.label, "atoms": r.atoms, "p50_us": r.p50, "p99_us": r.p99} for r in rows
    ]
    write({"name": "question", "times": TIMES, "questions": found, **describe()})


class Row(NamedTuple):
    """A line of the table; ``base`` is the bare function's p50 under the same conditions."""

    label: str
    atoms: int
    p50: float
    p99: float
    base: float


def _engine(k: int) -> tuple[ids.Engine, dict[str, object]]:
    """K exclusive categories, a window of 10,000 rows."""
    engine = ids.Engine(window=ids.CountWindow(10_000), value="y")
    for i in range(k):
        engine.register(f"p{i}", f"c = 'v{i}'")
    rng = np.random.default_rng(k)
    names = cycle([f"v{i}" for i in range(k + 1)])
    engine.ingest({"c": [next(names) for _ in range(10_000)], "y": rng.lognormal(4, 0.5, 10_000)})
    return engine, {"c": ["v0"], "y": [50.0]}


def _overlapping(k: int) -> tuple[ids.Engine, dict[str, object]]:
    """K overlapping Boolean columns: up to 2**K atoms."""
    engine = ids.Engine(window=ids.CountWindow(10_000), value="y")
    rng = np.random.default_rng(k)
    columns: dict[str, object] = {f"b{i}": rng.random(10_000) < 0.5 for i in range(k)}
    for i in range(k):
        engine.register(f"p{i}", f"b{i}")
    engine.ingest({**columns, "y": rng.lognormal(4, 0.5, 10_000)})
    return engine, {**{f"b{i}": [i % 2 == 0] for i in range(k)}, "y": [50.0]}
