"""The engine's answers beside the definition: every coalition of windows of up to 12 rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import ids
from evaluation.bench import Bench
from evaluation.step import Findings, Row
from tests.oracles.shapley import GAMES, shapley_values

Array = npt.NDArray[Any]

# What a window's values are like; offset is the stress workload's.
KINDS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "lognormal": lambda rng, n: rng.lognormal(3.0, 0.5, n),
    "both signs": lambda rng, n: rng.normal(0.0, 10.0, n),
    "negative": lambda rng, n: -rng.lognormal(2.0, 1.0, n),
    "whole": lambda rng, n: rng.integers(0, 20, n).astype(float),
    "ties": lambda rng, n: rng.choice([0.1, 0.7, 12.3], n),
    "zeros": lambda rng, n: rng.lognormal(3.0, 0.5, n) * (rng.random(n) < 0.3),
    "tiny": lambda rng, n: 1e-9 * rng.lognormal(0.0, 1.0, n),
    "offset": lambda rng, n: 1e9 + 1e-3 * rng.standard_normal(n),
}


def enumerated(bench: Bench) -> Findings:
    """The worst of every game and kind of values."""
    rows: list[Row] = []
    drawn = list(windows(bench.rng("rq1-enumeration"), bench.size.of(quick=1, full=5)))
    for done, window in enumerate(drawn, start=1):
        rows += compared(*window)
        bench.said(done / len(drawn))
    return {"rq1_enumeration": worst(rows, "game", "kind")}


def windows(rng: np.random.Generator, times: int) -> Iterator[tuple[str, Array, Array, Array]]:
    """Of every kind and N up to 12: values, their random rank, and others that came before."""
    for _ in range(times):
        for kind, draw in KINDS.items():
            for n in range(13):
                yield kind, draw(rng, n), rng.permutation(n), draw(rng, max(n, 3))


def compared(kind: str, values: Array, rank: Array, before: Array) -> Iterator[Row]:
    """A case is a predicate: one of every size m = 0 … N, the rows of ``rank < m``."""
    given, order, n = answers(values, rank, before), np.argsort(rank), len(values)
    for game in GAMES:
        phi = shapley_values(game, values.tolist())
        whole = sum(phi, Fraction(0))
        for m in range(n + 1):
            share = Fraction(m, n or 1) * whole
            lift = sum((phi[row] for row in order[:m]), Fraction(0)) - share
            errors = off(given[game, m], share, lift, whole)
            named = zip(("abs_err", "rel_err", "units"), errors, strict=True)
            yield {"game": game, "kind": kind, "cases": True, **dict(named)}


def answers(values: Array, rank: Array, before: Array) -> dict[tuple[str, int], float]:
    """The engine's attribution by game and size of the predicate, after others came and went."""
    n = len(values)
    engine = ids.Engine(window=ids.CountWindow(n) if n else ids.Changelog(), value="y", degree=4)
    for m in range(n + 1):
        engine.register(f"p{m}", f"rank < {m}")
    gone = {"rank": np.arange(len(before)) % (n + 1), "y": before}
    if n:
        engine.ingest(gone)
        engine.ingest({"rank": rank, "y": values})
    else:
        engine.apply(inserts=gone)
        engine.apply(deletes=gone)
    assert engine.rows == n
    return {(g, m): engine.attribute(g, f"p{m}").value for g in GAMES for m in range(n + 1)}


def off(given: float, share: Fraction, lift: Fraction, whole: Fraction) -> tuple[float, ...]:
    """An answer's error: as it is, relatively, and in units of 2⁻⁵³·(|share| + |lift|)."""
    error = abs(Fraction(given) - share - lift)
    unit = (abs(share) + abs(lift)) / 2**53
    relative = error / (abs(share + lift) or abs(whole) or 1)  # to the aggregate where phi is 0
    return float(error), float(relative), float(error / (unit or 1))


def worst(rows: Iterable[Mapping[str, Any]], *by: str) -> list[dict[str, Any]]:
    """A row for each group: the largest of a number, how many times of what is true or false."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        group = groups.setdefault(tuple(row[name] for name in by), {})
        for name, value in row.items():
            if isinstance(value, bool):
                group[name] = group.get(name, 0) + value
            else:
                group[name] = max(value, group.get(name, value))
    return list(groups.values())
