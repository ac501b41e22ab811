"""What a question to a running engine costs, p50 and p99, beside the bare closed form."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import cycle, starmap
from math import log

import numpy as np
import pyarrow as pa

import ids
from evaluation.bench import Bench, equality
from evaluation.rq2.throughput import PREDICATES, ready
from evaluation.step import SUBJECTS, Findings, Repeated, Row, in_a_row

# its answer forgotten each time, or after a row that came, or known as the window stands still
READINGS = ("computed anew", "after a slide", "remembered")
Asked = tuple[int, str, ids.Engine, Callable[[], None], Callable[[], object]]
"""K, the path, the engine, what brings it the next row, the question."""

_WINDOW = 10_000
_SIX = (1e4, 5e5, 3e7, 1250.0, 7e4, 4e6)  # N, A, B, m, A_P, B_P


def work(bench: Bench) -> Findings:
    """All questions take turns, repetition by repetition."""
    times = bench.size.of(quick=150, full=1_000)
    table = bench.events(SUBJECTS["synthetic"], _WINDOW + times)
    asked = [one for count in PREDICATES for one in _registered(table, count)]
    asked.append(_overlapping(table, bench.rng("overlapping")))
    spent: dict[tuple[str, int], list[Repeated]] = {}
    for repetition in range(bench.size.repetitions):
        for at, (_, _, engine, slide, ask) in enumerate(asked):
            forget = engine._questions.forget_answers  # as a slide has it, without the slide
            after = in_a_row(ask, times, slide)
            found = in_a_row(ask, 10 * times, forget), after, in_a_row(ask, 10 * times)
            for reading, each in zip(READINGS, found, strict=True):
                spent.setdefault((reading, at), []).append(each)
        bench.said((repetition + 1) / bench.size.repetitions)
    rows: list[Row] = [
        {"predicates": count, "live": engine.atoms, "path": path, "reading": reading,
         "p50": Repeated.of(1e6 * each.median for each in spent[reading, at]),
         "p99": Repeated.of(1e6 * np.percentile(each.samples, 99) for each in spent[reading, at])}
        for reading in READINGS
        for at, (count, path, engine, _, _) in enumerate(asked)
    ]  # fmt: skip
    return {"rq2_latency": rows}


def bare(n: float, a: float, _b: float, m: float, a_p: float, _b_p: float) -> tuple[float, ...]:
    """The closed form of AVG from six floats, with H by its series."""
    mean = a / n
    k = n - 1.0
    h = log(k) + np.euler_gamma + 1.0 / (2.0 * k) - 1.0 / (12.0 * k * k)
    share = m / n * mean
    lift = h / k * (a_p - m * mean)
    return share + lift, share, lift


def _registered(table: pa.Table, count: int) -> Iterator[Asked]:
    """Both paths: of the first, the middle and the last of K, and each with a neighbour."""
    conditions = starmap(equality, PREDICATES[count])
    engine, slide = _engine(conditions, table.drop(["event_time"]))
    places = {count - 1: ", the last of K", count // 2: ", in the middle of K", 0: ""}
    for k, place in places.items():
        either = f"p{abs(k - 1)} OR p{k}" if count > 1 else "NOT p0"
        for path, question in (("marginal", f"p{k}"), ("compositional", either)):
            if (by := engine.attribute("AVG", question).mechanism) != path:
                raise AssertionError(f"{question} is answered by {by}, not {path}")
            yield count, path + place, engine, slide, partial(engine.attribute, "AVG", question)
    if count == 4:
        yield count, "bare function", engine, slide, partial(bare, *_SIX)


def _overlapping(table: pa.Table, rng: np.random.Generator) -> Asked:
    """The union of ten Boolean columns, each true of half of the rows: all 2¹⁰ atoms live."""
    columns = {f"b{k}": rng.random(table.num_rows) < 0.5 for k in range(10)}
    engine, slide = _engine(columns, pa.table({**columns, "latency": table["latency"]}))
    ask = partial(engine.attribute, "AVG", " OR ".join(engine.predicates))
    return len(columns), "union of all K, overlapping", engine, slide, ask


def _engine(conditions: Iterable[str], events: pa.Table) -> tuple[ids.Engine, Callable[[], None]]:
    """An engine with a full window, and what slides it by the next row, over and over."""
    engine = ready(conditions, events.slice(0, _WINDOW))
    rows = cycle([events.slice(row, 1).to_pydict() for row in range(_WINDOW, events.num_rows)])
    return engine, lambda: engine.ingest(next(rows))
