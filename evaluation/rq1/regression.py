"""The enumeration regression: the engine's answers beside the definition, for windows of N ≤ 12."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import ids
from evaluation.bench import Bench
from evaluation.rq1.accuracy import Worst
from evaluation.rq1.enumeration import GAMES, shapley_values, worth
from evaluation.size import Size
from evaluation.step import Findings, Step

__all__ = ["KINDS", "STRESS", "Window", "answers", "compare", "steps", "windows"]

Floats = npt.NDArray[np.float64]
LARGEST = 12
STRESS = "offset"

KINDS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "lognormal": lambda rng, n: rng.lognormal(3.0, 0.5, n),
    "both signs": lambda rng, n: rng.normal(0.0, 10.0, n),
    "negative": lambda rng, n: -rng.lognormal(2.0, 1.0, n),
    "whole": lambda rng, n: rng.integers(0, 20, n).astype(float),
    "ties": lambda rng, n: rng.choice([0.1, 0.7, 12.3], n),
    "zeros": lambda rng, n: rng.lognormal(3.0, 0.5, n) * (rng.random(n) < 0.3),
    "tiny": lambda rng, n: 1e-9 * rng.lognormal(0.0, 1.0, n),
    STRESS: lambda rng, n: 1e9 + 1e-3 * rng.standard_normal(n),
}
"""What a window's values are like. *offset* is the stress workload's: mean 10⁹, deviation 10⁻³."""


class Window(NamedTuple):
    """Rows that are inside, and rows that came before them and must leave no trace.

    ``rank`` is a random order of the rows inside: ``rank < m`` holds on m of them, at random.
    """

    kind: str
    values: Floats
    rank: npt.NDArray[np.int64]
    before: Floats


def steps(size: Size) -> list[Step]:
    """One, of all windows."""
    about = size.of(quick=3.5, full=40.0)
    does = f"every coalition of windows up to N = {LARGEST}"
    return [Step("rq1-enumeration", does, about, _work)]


def _work(bench: Bench) -> Findings:
    """Every window of the regression by the engine and by the definition, per game and kind."""
    worst = {(game, kind): Worst() for game in GAMES for kind in KINDS}
    drawn = list(windows(bench.rng("rq1-enumeration"), bench.size.of(quick=1, full=5)))
    for done, window in enumerate(drawn):
        compare(window, worst)
        bench.said((done + 1) / len(drawn))
    rows = [{"game": game, "kind": kind, **found.row()} for (game, kind), found in worst.items()]
    return {"rq1_enumeration": rows}


def windows(rng: np.random.Generator, times: int) -> Iterator[Window]:
    """So many windows of every kind and every N from 0 to 12."""
    for _ in range(times):
        for kind, draw in KINDS.items():
            for n in range(LARGEST + 1):
                yield Window(kind, draw(rng, n), rng.permutation(n), draw(rng, max(n, 3)))


def compare(window: Window, worst: dict[tuple[str, str], Worst]) -> None:
    """A case is a predicate: one of every size m = 0 … N."""
    given = answers(window)
    order = np.argsort(window.rank)
    ys = window.values.tolist()
    for game in GAMES:
        phi = shapley_values(game, ys)
        whole = worth(game, ys)
        exact = Fraction(0)
        for m in range(len(ys) + 1):
            answer = given[game, m]
            magnitude = abs(answer.share) + abs(answer.lift)
            worst[game, window.kind].see(answer.value, exact, whole, magnitude)
            if m < len(ys):
                exact += phi[order[m]]


def answers(window: Window) -> dict[tuple[str, int], ids.Attribution]:
    """The engine's attribution by game and size of the predicate, after others came and went."""
    n = len(window.values)
    engine = ids.Engine(window=ids.CountWindow(n) if n else ids.Changelog(), value="y", degree=4)
    for m in range(n + 1):
        engine.register(f"p{m}", f"rank < {m}")
    before = {"rank": np.arange(len(window.before)) % (n + 1), "y": window.before}
    if n:
        engine.ingest(before)
        engine.ingest({"rank": window.rank, "y": window.values})
    else:
        engine.apply(inserts=before)
        engine.apply(deletes=before)
    assert engine.rows == n
    return {(game, m): engine.attribute(game, f"p{m}") for game in GAMES for m in range(n + 1)}
