"""What does a question to a running engine cost, next to the bare formula in Python?

The bare function is given six floats (N, A, B, m, A_P, B_P) and evaluates AVG's share and lift.
The engine is asked right after a slide, so that nothing is remembered; and asked again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import cycle
from time import perf_counter
from typing import NamedTuple

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
    rows: list[Row] = []
    engine, batch = _engine(64)
    base = _after_slides(engine, batch, lambda: bare(1e4, 5e5, 3e7, 1250.0, 7e4, 4e6))
    rows.append(Row("bare Python function, after a slide", 0, *base, 1.0))
    for k in (1, 4, 16, 64):
        engine, batch = _engine(k)
        asked = _after_slides(engine, batch, partial(engine.attribute, "AVG", "p0"))
        rows.append(Row(f"registered, after a slide, K = {k}", engine.atoms, *asked, base[0]))
    for k in (2, 6, 10):
        engine, batch = _overlapping(k)
        either = partial(engine.attribute, "AVG", " OR ".join(f"p{i}" for i in range(k)))
        asked = _after_slides(engine, batch, either)
        rows.append(Row(f"compositional, after a slide, K = {k}", engine.atoms, *asked, base[0]))
    again = _in_a_row(lambda: bare(1e4, 5e5, 3e7, 1250.0, 7e4, 4e6))
    rows.append(Row("bare Python function, again and again", 0, *again, 1.0))
    for k in (1, 64):
        engine, _ = _engine(k)
        asked = _in_a_row(partial(engine.attribute, "AVG", "p0"))
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


def _after_slides(
    engine: ids.Engine, batch: dict[str, object], work: Callable[[], object]
) -> tuple[float, float]:
    """Each question follows a slide; only the question is on the clock."""
    work()
    spent = []
    for _ in range(2_000):
        engine.ingest(batch)
        start = perf_counter()
        work()
        spent.append(perf_counter() - start)
    return _of(spent)


def _in_a_row(work: Callable[[], object]) -> tuple[float, float]:
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
