"""What does a question to a running engine cost, next to the bare formula in Python?

The bare function is given six floats (N, A, B, m, A_P, B_P) and evaluates AVG's share and lift.
The engine is asked right after a slide, so that nothing is remembered; and asked again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import cycle
from time import perf_counter

import numpy as np

import ids
from benchmarks.record import describe, write

__all__ = ["main"]

GAMMA = 0.5772156649015329
TIMES = 20_000


def bare(n: float, a: float, _b: float, m: float, a_p: float, _b_p: float) -> tuple[float, ...]:
    """The closed form of AVG from six floats, with H by its series."""
    mean = a / n
    k = n - 1.0
    h = math.log(k) + GAMMA + 1.0 / (2.0 * k) - 1.0 / (12.0 * k * k)
    share = m / n * mean
    lift = h / k * (a_p - m * mean)
    return share + lift, share, lift


def main() -> None:
    """Measure, keep, show."""
    base = _percentiles(lambda: bare(1e4, 5e5, 3e7, 1250.0, 7e4, 4e6))
    rows = [("bare Python function", "", base)]
    for k in (1, 4, 16, 64):
        engine, batch = _engine(k)
        rows.append((f"registered, K = {k}", engine.atoms, _asked(engine, batch, "p0")))
    repeated = _percentiles(lambda: engine.attribute("AVG", "p0"))
    rows.append(("registered, asked again", engine.atoms, repeated))
    for k in (2, 6, 10):
        engine, batch = _overlapping(k)
        predicate = " OR ".join(f"p{i}" for i in range(k))
        rows.append((f"compositional, K = {k}", engine.atoms, _asked(engine, batch, predicate)))
    print("| question | live atoms | p50 | p99 | p50, relative |\n|---|---:|---:|---:|---:|")
    for label, atoms, (p50, p99) in rows:
        print(f"| {label} | {atoms} | {p50:.2f} µs | {p99:.2f} µs | {p50 / base[0]:.2f} × |")
    found = [{"question": q, "atoms": a, "p50_us": p[0], "p99_us": p[1]} for q, a, p in rows]
    write({"name": "question", "times": TIMES, "questions": found, **describe()})


def _asked(engine: ids.Engine, batch: dict[str, object], predicate: str) -> tuple[float, float]:
    """Each question follows a slide; only the question is on the clock."""
    engine.attribute("AVG", predicate)
    spent = []
    for _ in range(2_000):
        engine.ingest(batch)
        start = perf_counter()
        engine.attribute("AVG", predicate)
        spent.append(perf_counter() - start)
    return _of(spent)


def _percentiles(work: Callable[[], object]) -> tuple[float, float]:
    spent = []
    for _ in range(TIMES):
        start = perf_counter()
        work()
        spent.append(perf_counter() - start)
    return _of(spent)


def _of(spent: list[float]) -> tuple[float, float]:
    p50, p99 = np.percentile(np.array(spent) * 1e6, [50, 99])
    return float(p50), float(p99)


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
