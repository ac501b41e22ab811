"""How far off running sums are after many slides, next to exact rational arithmetic.

Two streams under a window of 1,000 rows that slides by one. *stress*: mean 10⁹, standard deviation
10⁻³. *spikes*: lognormal latencies, one row in 5,000 a billion times too large; it comes, and it
goes. Three additive states of doubles (raw, centred, compensated) and IDS, each asked along the way
for AVG and VAR_POP. The truth is a recount of the window in rationals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
import numpy.typing as npt

import ids
from evaluation.bench import Bench
from evaluation.recount import Recount
from evaluation.size import Size
from evaluation.step import Findings, Row, Step

__all__ = ["STATES", "STREAMS", "WINDOW", "drift", "moments", "steps", "trace"]

Floats = npt.NDArray[np.float64]
Answer = tuple[float, float]
"""AVG and VAR_POP."""

WINDOW = 1_000
STREAMS = {"stress": 1e9, "spikes": 50.0}
"""Each stream, and the coarse centre a person would choose for it."""
_EVERY = 5_000  # one row in so many is a spike


def steps(size: Size) -> list[Step]:
    """One for each stream."""
    does, about = "running sums over a long stream", size.of(quick=0.3, full=5.0)
    return [
        Step(f"rq1-drift-{stream}", f"{does}, {stream}", about, partial(_work, stream=stream))
        for stream in STREAMS
    ]


def _work(bench: Bench, stream: str) -> Findings:
    """The relative errors of every state along a stream."""
    slides = bench.size.of(quick=30_000, full=1_000_000)
    rows: list[Row] = [
        {"stream": stream, "state": label, "slides": at, "avg": average, "var_pop": variance}
        for label, errors in trace(stream, slides, moments(slides), bench.said).items()
        for at, (average, variance) in errors.items()
    ]
    return {"rq1_drift": rows}


def drift(stream: str, slides: int) -> dict[str, Answer]:
    """Relative errors of AVG and VAR_POP after so many slides, by the kind of state."""
    return {label: errors[slides] for label, errors in trace(stream, slides, [slides]).items()}


def moments(slides: int) -> list[int]:
    """When to ask: five times in each factor of ten, and at the end; never with a spike inside.

    A spike that is inside swells the variance, and the error would seem small beside it.
    """
    decades = np.log10(slides / 10)
    evenly = np.geomspace(10, slides, round(5 * decades) + 1).astype(int).tolist()
    clean = (
        at if 0 < at % _EVERY <= _EVERY - WINDOW else at // _EVERY * _EVERY + 1 for at in evenly
    )
    return sorted({at for at in clean if at < slides} | {slides})


def trace(
    stream: str,
    slides: int,
    at: Sequence[int],
    said: Callable[[float], None] = lambda _: None,
) -> dict[str, dict[int, Answer]]:
    """Relative errors of AVG and VAR_POP after each of these numbers of slides, by state."""
    values = _values(stream, WINDOW + slides)
    truth = {each: Recount(values[each : each + WINDOW], {}) for each in at}
    errors: dict[str, dict[int, Answer]] = {}
    for label, answers in STATES.items():
        given = zip(at, answers(values, STREAMS[stream], at), strict=True)
        errors[label] = {slid: _off(answer, truth[slid]) for slid, answer in given}
        said(len(errors) / len(STATES))
    return errors


def _values(stream: str, rows: int) -> Floats:
    rng = np.random.default_rng(0)
    if stream == "stress":
        return 1e9 + 1e-3 * rng.standard_normal(rows)
    values = rng.lognormal(4.0, 0.5, rows)
    values[: rows - 2 * WINDOW : _EVERY] *= 1e9
    return values


def _off(given: Answer, truth: Recount) -> Answer:
    exact = (truth.aggregate(game, 0, WINDOW) for game in ("AVG", "VAR_POP"))
    average, variance = (float(abs(Fraction(g) - e) / e) for g, e in zip(given, exact, strict=True))
    return average, variance


def _moves(values: Floats, centre: float) -> Iterator[tuple[float, float]]:
    """Each row as it comes (+1) and, once the window is full, the one that goes (-1), centred."""
    centred = (values - centre).tolist()
    for i, z in enumerate(centred):
        yield 1.0, z
        yield -1.0, centred[i - WINDOW] if i >= WINDOW else 0.0


def _raw(values: Floats, _: float, at: Sequence[int]) -> list[Answer]:
    return _centred(values, 0.0, at)


def _centred(values: Floats, centre: float, at: Sequence[int]) -> list[Answer]:
    """Add what comes, subtract what goes."""
    total = squares = 0.0
    found: list[Answer] = []
    due = {2 * (WINDOW + slid) for slid in at}
    for moved, (sign, z) in enumerate(_moves(values, centre), start=1):
        total += sign * z
        squares += sign * (z * z)
        if moved in due:
            found.append(_answers(total, squares, centre))
    return found


def _compensated(values: Floats, centre: float, at: Sequence[int]) -> list[Answer]:
    """The same by Neumaier's sum: what each addition loses is added up beside it."""
    total = lost = squares = lost_squares = 0.0
    found: list[Answer] = []
    due = {2 * (WINDOW + slid) for slid in at}
    for moved, (sign, z) in enumerate(_moves(values, centre), start=1):
        total, lost = _neumaier(total, lost, sign * z)
        squares, lost_squares = _neumaier(squares, lost_squares, sign * (z * z))
        if moved in due:
            found.append(_answers(total + lost, squares + lost_squares, centre))
    return found


def _neumaier(total: float, lost: float, z: float) -> tuple[float, float]:
    new = total + z
    return new, lost + ((total - new) + z if abs(total) >= abs(z) else (z - new) + total)


def _answers(total: float, squares: float, centre: float) -> Answer:
    mean = total / WINDOW
    return centre + mean, squares / WINDOW - mean * mean


def _ours(values: Floats, _: float, at: Sequence[int]) -> list[Answer]:
    """The incremental engine: every row comes, and all but the last thousand go."""
    engine = ids.Engine(window=ids.CountWindow(WINDOW), value="y")
    found: list[Answer] = []
    start = 0
    for end in (WINDOW + slid for slid in at):
        for first in range(start, end, WINDOW // 2):
            engine.ingest({"y": values[first : min(first + WINDOW // 2, end)]})
        start = end
        average, variance = engine.aggregate("AVG"), engine.aggregate("VAR_POP")
        assert average is not None
        assert variance is not None
        found.append((average, variance))
    return found


STATES: dict[str, Callable[[Floats, float, Sequence[int]], list[Answer]]] = {
    "doubles, += and -=": _raw,
    "doubles, centred": _centred,
    "doubles, centred and compensated": _compensated,
    "IDS": _ours,
}
"""Each kind of state, given the stream, its centre and when to answer."""
