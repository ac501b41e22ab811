"""How far off are running sums after a million slides, next to exact rational arithmetic?

Two streams under a window of 1,000 rows that slides by one. *stress*: mean 10⁹, standard deviation
10⁻³. *spikes*: lognormal latencies, one row in 5,000 a billion times too large; it comes, and it
goes. Three additive states of doubles (raw, centred, compensated) and IDS, each asked at the end
for AVG and VAR_POP. The truth is a recount of the last window in rationals.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import ids
from benchmarks.record import describe, write

__all__ = ["STREAMS", "drift", "main"]

Floats = npt.NDArray[np.float64]

WINDOW = 1_000
STREAMS = {"stress": 1e9, "spikes": 50.0}
"""Each stream, and the coarse centre a person would choose for it."""


def main(slides: int = 1_000_000) -> None:
    """Measure, keep, show."""
    print("| stream | state | AVG, off by | VAR_POP, off by |\n|---|---|---:|---:|")
    errors: dict[str, Any] = {}
    for stream in STREAMS:
        for label, (average, variance) in drift(stream, slides).items():
            print(f"| {stream} | {label} | {average:.1e} | {variance:.1e} |")
            errors.setdefault(stream, {})[label] = {"avg": average, "var_pop": variance}
    record = {"name": "drift", "slides": slides, "window": WINDOW, "relative_errors": errors}
    write({**record, **describe()})


def drift(stream: str, slides: int) -> dict[str, tuple[float, float]]:
    """Relative errors of AVG and VAR_POP after so many slides, by the kind of state."""
    centre = STREAMS[stream]
    values = _values(stream, WINDOW + slides)
    exact = _exact(values[-WINDOW:].tolist())
    answers = {
        "doubles, += and -=": _additive(values, 0.0),
        "doubles, centred": _additive(values, centre),
        "doubles, centred and compensated": _compensated(values, centre),
        "IDS": _ours(values),
    }
    return {label: _off(given, exact) for label, given in answers.items()}


def _values(stream: str, rows: int) -> Floats:
    rng = np.random.default_rng(0)
    if stream == "stress":
        return 1e9 + 1e-3 * rng.standard_normal(rows)
    values = rng.lognormal(4.0, 0.5, rows)
    values[: rows - 2 * WINDOW : 5_000] *= 1e9
    return values


def _off(given: tuple[float, float], exact: tuple[Fraction, Fraction]) -> tuple[float, float]:
    average, variance = (float(abs(Fraction(g) - e) / e) for g, e in zip(given, exact, strict=True))
    return average, variance


def _exact(values: list[float]) -> tuple[Fraction, Fraction]:
    ys = [Fraction(y) for y in values]
    mean = sum(ys, Fraction(0)) / len(ys)
    return mean, sum(((y - mean) ** 2 for y in ys), Fraction(0)) / len(ys)


def _moves(values: Floats, centre: float) -> Iterator[tuple[float, float]]:
    """Each row as it comes (+1) and as it goes (-1), centred."""
    centred = (values - centre).tolist()
    for i, z in enumerate(centred):
        yield 1.0, z
        if i >= WINDOW:
            yield -1.0, centred[i - WINDOW]


def _additive(values: Floats, centre: float) -> tuple[float, float]:
    """Add what comes, subtract what goes."""
    total = squares = 0.0
    for sign, z in _moves(values, centre):
        total += sign * z
        squares += sign * (z * z)
    return _answers(total, squares, centre)


def _compensated(values: Floats, centre: float) -> tuple[float, float]:
    """The same by Neumaier's sum: what each addition loses is added up beside it."""
    total = lost = squares = lost_squares = 0.0
    for sign, z in _moves(values, centre):
        total, lost = _neumaier(total, lost, sign * z)
        squares, lost_squares = _neumaier(squares, lost_squares, sign * (z * z))
    return _answers(total + lost, squares + lost_squares, centre)


def _neumaier(total: float, lost: float, z: float) -> tuple[float, float]:
    new = total + z
    return new, lost + ((total - new) + z if abs(total) >= abs(z) else (z - new) + total)


def _answers(total: float, squares: float, centre: float) -> tuple[float, float]:
    mean = total / WINDOW
    return centre + mean, squares / WINDOW - mean * mean


def _ours(values: Floats) -> tuple[float, float]:
    """The incremental engine: every row comes, and all but the last thousand go."""
    engine = ids.Engine(window=ids.CountWindow(WINDOW), value="y")
    for start in range(0, len(values), WINDOW // 2):
        engine.ingest({"y": values[start : start + WINDOW // 2]})
    average, variance = engine.aggregate("AVG"), engine.aggregate("VAR_POP")
    assert average is not None
    assert variance is not None
    return average, variance
