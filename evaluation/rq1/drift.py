"""How far off running sums are after many slides, next to a recount in exact rationals.

Two streams under a window of 1,000 rows that slides by one. *stress*: mean 10⁹, standard deviation
10⁻³. *spikes*: lognormal latencies, one row in 5,000 a billion times too large; it comes and goes.
"""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import ids
from evaluation.bench import Bench, filled
from evaluation.step import Findings, Row
from tests.oracles.stretches import Stretches

Floats = npt.NDArray[np.float64]
WINDOW = 1_000
STREAMS = {"stress": 1e9, "spikes": 50.0}  # each, and the coarse centre a person would choose
_EVERY = 5_000  # one row in so many is a spike


def drifted(bench: Bench, stream: str) -> Findings:
    """The errors of every state along a stream."""
    at = moments(bench.size.of(quick=30_000, full=1_000_000))
    return {"rq1_drift": list(trace(stream, at))}


def moments(slides: int) -> list[int]:
    """When to ask: five times in each factor of ten, and at the end; never with a spike inside."""
    evenly = np.geomspace(10, slides, round(5 * np.log10(slides / 10)) + 1).astype(int)
    place = evenly % _EVERY  # a spike swells the variance: the error would seem small beside it
    clean = np.where((place > 0) & (place <= _EVERY - WINDOW), evenly, evenly - place + 1)
    return [*np.unique(clean[clean < slides]).tolist(), slides]


def trace(stream: str, at: Sequence[int]) -> Iterator[Row]:
    """Relative errors of AVG and VAR_POP after each of these numbers of slides, by state."""
    values, centre = _values(stream, WINDOW + at[-1]), STREAMS[stream]
    truth = [Stretches(values[slid : slid + WINDOW], {}) for slid in at]
    states = {
        "doubles, += and -=": _doubles(values, 0.0, at),
        "doubles, centred": _doubles(values, centre, at),
        "doubles, centred and compensated": _doubles(values, centre, at, compensated=True),
        "IDS": _ours(values, at),
    }
    for state, answers in states.items():
        for slid, exact, given in zip(at, truth, answers, strict=True):
            errors = {
                game.lower(): float(abs(Fraction(answer) / exact.aggregate(game, 0, WINDOW) - 1))
                for game, answer in zip(("AVG", "VAR_POP"), given, strict=True)
            }
            yield {"stream": stream, "state": state, "slides": slid, **errors}


def _values(stream: str, rows: int) -> Floats:
    rng = np.random.default_rng(0)
    if stream == "stress":
        return 1e9 + 1e-3 * rng.standard_normal(rows)
    values = rng.lognormal(4.0, 0.5, rows)
    values[: rows - 2 * WINDOW : _EVERY] *= 1e9
    return values


def _doubles(
    values: Floats, centre: float, at: Sequence[int], *, compensated: bool = False
) -> Iterable[tuple[float, float]]:
    """Add what comes, subtract what goes once the window is full, one after the other."""
    came = values - centre
    went = np.concatenate([np.zeros(WINDOW), came[:-WINDOW]])
    asked = 2 * (WINDOW + np.array(at)) - 1
    total, squares = (
        _summed(np.column_stack([plus, -minus]).ravel(), compensated)[asked]
        for plus, minus in ((came, went), (came * came, went * went))
    )
    mean = total / WINDOW
    return zip(centre + mean, squares / WINDOW - mean * mean, strict=True)


def _summed(terms: Floats, compensated: bool) -> Floats:
    """The sum after each term; by Neumaier, what each addition loses is added up beside it."""
    total: Floats = np.cumsum(terms)  # from the first to the last, as += does
    if not compensated:
        return total
    before = np.concatenate([[0.0], total[:-1]])
    larger = np.abs(before) >= np.abs(terms)
    lost = np.where(larger, (before - total) + terms, (terms - total) + before)
    found: Floats = total + np.cumsum(lost)
    return found


def _ours(values: Floats, at: Sequence[int]) -> Iterator[tuple[float, float]]:
    """The incremental engine: every row comes, and all but the last thousand go."""
    engine = ids.Engine(window=ids.CountWindow(WINDOW), value="y")
    for start, end in pairwise([0, *(WINDOW + slid for slid in at)]):
        filled(engine, pa.table({"y": values[start:end]}), WINDOW // 2)
        yield engine.aggregate("AVG") or 0.0, engine.aggregate("VAR_POP") or 0.0
