"""The engine's own samples, one for each of many seeds, beside what theory says of random ones.

The trials draw rows by NumPy's generator. This shows that what the engine keeps while rows come in
is as good as that: without bias, as spread as r rows at random, within its bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluation.engines import filled
from evaluation.rq4.conditions import window_of
from evaluation.rq4.trials import CONFIDENCE
from evaluation.rq4.window import Window
from evaluation.step import Row
from evaluation.subject import Subject
from ids.engine import Engine
from ids.model.sampling import Sampling, extremes_of
from ids.model.window import CountWindow

__all__ = ["judged"]

GAMES = ("AVG", "VAR_POP")
BATCH = 20_000


def judged(
    events: pa.Table,
    subject: Subject,
    sizes: Sequence[int],
    times: int,
    said: Callable[[float], None] = lambda _: None,
) -> list[Row]:
    """Every predicate and game, from a sample of each size by ``times`` seeds."""
    inside = events.num_rows // 2
    # the first half has left again in the end: what is drawn must be drawn of the others
    window = window_of(events.slice(events.num_rows - inside), subject)
    refuse_other_answers(events, subject, window)
    cells = [(game, name, r) for r in sizes for game in GAMES for name in window.holds]
    value, error = np.empty((2, len(cells), times))
    for seed in range(times):
        sampling = Sampling(size=max(sizes), seed=seed)
        engine = Engine(
            window=CountWindow(inside), value=subject.value, retain=False, sampling=sampling
        )
        filled(engine, events, BATCH)
        for k, (game, name, r) in enumerate(cells):
            answer = engine.attribute(game, name, sample=r, confidence=CONFIDENCE)
            value[k, seed], error[k, seed] = answer.value, answer.error
        said((seed + 1) / times)
    return [_row(window, subject, *cell, value[k], error[k]) for k, cell in enumerate(cells)]


def refuse_other_answers(events: pa.Table, subject: Subject, window: Window) -> None:
    """Stop unless a scan by the engine gives what the window says is exact."""
    engine = Engine(window=CountWindow(len(window.value)), value=subject.value)
    engine.ingest(events)
    for name, holds in window.holds.items():
        for game in GAMES:
            scanned, exact = engine.attribute(game, name).value, window.exact(game, holds)
            if abs(scanned - exact) > 1e-9 * max(abs(exact), abs(window.worth(game))):
                raise AssertionError(f"{game} of {name} is {scanned} by a scan, and not {exact}")


def _row(
    window: Window,
    subject: Subject,
    game: str,
    name: str,
    r: int,
    value: npt.NDArray[np.float64],
    error: npt.NDArray[np.float64],
) -> Row:
    off = value - window.exact(game, window.holds[name])
    expected = window.deviation(game, name, r, extremes_of(r), replacement=False)
    rmse = float(np.sqrt(np.mean(off**2)))
    return {
        "subject": subject.workload,
        "n": len(window.value),
        "game": game,
        "predicate": name,
        "r": r,
        "trials": len(off),
        "worth": window.worth(game),
        "mae": float(np.mean(np.abs(off))),
        "rmse": rmse,
        "expected": expected,
        "z": float(np.mean(off)) / (expected / len(off) ** 0.5) if expected else 0.0,
        "coverage": float(np.mean(np.abs(off) <= error * (1 + 1e-12))),
    }
