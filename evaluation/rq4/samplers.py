"""The samplers themselves, over a stream: what they cost, what they hold, how good their rows are.

*Lazy sweeps* and *eager domination* are compiled loops alone; the others take batches of raw rows.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import log

import numpy as np
import pyarrow as pa

from evaluation.baselines import loops
from evaluation.bench import Bench, filled, frequent
from evaluation.rq4.trials import CONFIDENCE, WAYS, N, judged, size_for
from evaluation.rq4.window import Window
from evaluation.step import Findings, Row, Subject, in_turns
from ids import CountWindow, Engine, Sampling, TimeWindow
from ids.kernels import likely_survivors, mix
from ids.kernels.compiler import compiled
from ids.kernels.priority_sample import mixed
from ids.model import Table
from ids.predicates import Measure
from ids.source import open_table
from ids.state import WindowSample

BATCH, ENGINE_BATCH = 1_000, 10_000  # rows given at once: to a sampler, to an engine
SEED = np.uint64(0)
Candidates = tuple[np.ndarray, np.ndarray]  # rows by their number, and the priority of each


def ingest(bench: Bench, n: int, r: int) -> Findings:
    """The same stream to every kind of sampler, in turns.

    The slowest stop at the first full window, where candidates are fewest: in their favour.
    """
    refuse_another_sample(r, 2 * n, n)
    subject, many = bench.real, 3 * n
    events, table = _stream(bench, many)
    window, plain, replaced = CountWindow(n), Sampling(size=r), Sampling(size=r, replacement=True)
    counts = [count for _, count in frequent(events, subject.attributes[0])]
    stratified = Sampling(size=size_for(counts, r), strata=subject.attributes[:1])

    def engine(sampling: Sampling | None) -> Engine:
        return filled(Engine(window, subject.value, sampling=sampling), events, ENGINE_BATCH)

    def sampler(sampling: Sampling, inside: CountWindow | TimeWindow, rows: int) -> object:
        return deque(fed(table, subject.value, sampling, inside, rows), maxlen=0)

    contenders: dict[str, tuple[int, Callable[[], object]]] = {
        "lazy sweeps": (10 * many, lambda: _swept(r, 10 * many, n)),
        "eager domination": (n, lambda: _dominated(r, n, n)),
        "WindowSample": (many, lambda: sampler(plain, window, many)),
        "chain-sample": (many, lambda: sampler(replaced, window, many)),
        "priority-sample": (n, lambda: sampler(replaced, TimeWindow(n), n)),
        "engine with a sample": (many, lambda: engine(plain)),
        "engine without": (many, lambda: engine(None)),
        "engine with strata": (many, lambda: engine(stratified)),
    }
    spent = in_turns({k: work for k, (_, work) in contenders.items()}, bench.size.repetitions)
    found: list[Row] = [
        {"subject": subject.workload, "n": n, "r": r, "contender": label, "rows": rows,
         "ns": spent[label].scaled(1e9 / rows)} for label, (rows, _) in contenders.items()
    ]  # fmt: skip
    return {"rq4_ingest": found}


def _stream(bench: Bench, rows: int) -> tuple[pa.Table, Table]:
    """What is given to an engine, and what an engine gives to a sampler."""
    events = bench.events(bench.real, rows).select(bench.real.columns[1:])
    return events, open_table(events, "events").read(events.column_names)


@compiled()
def slide_sample(seed, rows, window, size, sequence, priority):
    """A sample of a count window sliding one row at a time over a whole stream: |Δ| = 1.

    rows      how many arrive, numbered from 0
    sequence  int64[room], priority  float64[room]  written: the candidates, oldest row first

    Gives how many candidates there are. They are swept whenever the room is full, so it should be
    some times ``size + size * log(window / size)``. O(rows), whatever the size.
    """
    keep = np.empty(len(priority), np.bool_)
    held = 0
    for i in range(rows):
        if held == len(priority):
            likely_survivors(priority, size, keep)
            held = 0
            for k in range(np.uint64(len(priority))):  # branchless: who stays is hard to guess
                sequence[held], priority[held] = sequence[k], priority[k]
                held += keep[k] & (sequence[k] >= i - window)
        sequence[held] = i
        priority[held] = mixed(seed, i)
        held += 1
    return held


def _swept(size: int, rows: int, window: int) -> Candidates:
    """Candidates swept now and then: the kernel, alone."""
    room = max(4096, int(3 * size * (1 + log(window / size))))
    sequence, priority = np.empty(room, np.int64), np.empty(room)
    held = slide_sample(SEED, rows, window, size, sequence, priority)
    return sequence[:held], priority[:held]


def _dominated(size: int, rows: int, window: int) -> Candidates:
    """Every arrival compared with every candidate: compiled and vectorised, too."""
    room = 64 * size
    sequence, priority, passed = np.empty(room, np.int64), np.empty(room), np.empty(room, np.int32)
    held = loops.eager(SEED, rows, window, size, sequence, priority, passed)
    return sequence[:held], priority[:held]


def refuse_another_sample(size: int, rows: int, window: int) -> None:
    """Stop unless lazy sweeps, eager domination and a plain sort of the window agree on rows."""
    every: Candidates = np.arange(rows), np.empty(rows)
    mix(SEED, *every)
    drawn = []
    for sequence, priority in _swept(size, rows, window), _dominated(size, rows, window), every:
        inside = sequence >= rows - window
        highest = np.argsort(-priority[inside])[:size]
        drawn.append(set(sequence[inside][highest].tolist()))
    if not drawn[0] == drawn[1] == drawn[2]:
        raise AssertionError(f"samplers of {size} rows disagree")


def fed(
    table: Table, value: str, sampling: Sampling, window: CountWindow | TimeWindow, rows: int,
    batch: int = BATCH,
) -> Iterator[WindowSample]:  # fmt: skip
    """The sample after each batch of a stream that repeats the table, as the engine feeds it."""
    kinds = {name: column.kind for name, column in table.columns.items()}
    sample = WindowSample(kinds, 1, sampling, window)
    timed = isinstance(window, TimeWindow)  # its clock ticks once a row: both hold the same rows
    inside = window.duration if isinstance(window, TimeWindow) else window.size
    for first in range(0, rows, batch):
        start, arrived = first % table.rows, np.arange(first, first + batch)
        some = table.take(slice(start, start + batch))
        y = some.columns[value].values.astype(np.float64, copy=False)
        sample.insert(
            some, [Measure(y, None, 0.0)], arrived if timed else None, arrived,
            sample.strata_of(some),
        )  # fmt: skip
        before, oldest = max(0, first - inside), max(0, first + batch - inside)
        sample.expire((oldest if timed else 0, oldest), np.zeros(oldest - before, np.int32))
        yield sample


def held(bench: Bench, windows: Sequence[int], sizes: Sequence[int]) -> Findings:
    """The most bytes that a sample takes, against the rows that one of N needs: r + r ln(N/r)."""
    _, table = _stream(bench, 3 * N)
    found: list[Row] = []
    for n in windows:
        for r in sizes:
            given = table, bench.real.value, Sampling(size=r), CountWindow(n), 2 * n, ENGINE_BATCH
            most = max(sample.nbytes for sample in fed(*given))
            found.append({"n": n, "r": r, "needed": r * (1 + log(n / r)), "bytes": most})
        bench.said(sum(w for w in windows if w <= n) / sum(windows))
    return {"rq4_bytes": found}


def own(bench: Bench, n: int, times: int) -> Findings:
    """The engine's own samples, one for each of many seeds, beside what random rows would show."""
    events, subject = bench.events(bench.real, 2 * n), bench.real
    # the first half has left again in the end: what is drawn must be drawn of the others
    window = Window.of_events(events.slice(n), subject)
    refuse_other_answers(events, subject, window)
    sizes = [round(part * n) for part in (0.01, 0.05)]
    cells = [(g, name, r) for r in sizes for g in ("AVG", "VAR_POP") for name in window.holds]
    value, error = np.empty((2, len(cells), times))
    for seed in range(times):
        sampling = Sampling(size=max(sizes), seed=seed)
        engine = Engine(CountWindow(n), subject.value, retain=False, sampling=sampling)
        filled(engine, events, 2 * ENGINE_BATCH)
        for k, (game, name, r) in enumerate(cells):
            answer = engine.attribute(game, name, sample=r, confidence=CONFIDENCE)
            value[k, seed], error[k, seed] = answer.value, answer.error
        bench.said((seed + 1) / times)
    found = zip(cells, value, error, strict=True)
    rows = [judged(window, WAYS["default"], *cell, *both) for cell, *both in found]
    return {"rq4_engine": [{"subject": subject.workload, **row} for row in rows]}


def refuse_other_answers(events: pa.Table, subject: Subject, window: Window) -> None:
    """Stop unless a scan by the engine gives what the window says is exact."""
    engine = filled(Engine(CountWindow(len(window.value)), subject.value), events, ENGINE_BATCH)
    for game, name in product(("AVG", "VAR_POP"), window.holds):
        scanned, exact = engine.attribute(game, name).value, window.exact(game, name)
        if abs(scanned - exact) > 1e-9 * max(abs(exact), abs(window.worth(game))):
            raise AssertionError(f"{game} of {name} is {scanned} by a scan, and not {exact}")
