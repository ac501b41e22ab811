"""A slide of one row: Algorithm 1 taken literally, the slide loop of IDS, and the live engine.

Three ways to count. *The slide loop*: atoms and digits given, as in the engine, which finds both
once for each arriving row. *From codes and values*: signature and digits counted in, as Algorithm 1
forms its signature inside the loop. ``Engine.ingest``: all that a user pays, from a batch in
Python's hands to a window that answers questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import ids
from evaluation.baselines import algorithm1
from evaluation.bench import Bench
from evaluation.engines import equality, registered
from evaluation.repeated import in_turns
from evaluation.rq2.throughput import EVERYTHING, PREDICATES, Maintained, Prepared, Stream, Words
from evaluation.step import SUBJECTS, Findings
from ids.kernels.digits import cut
from ids.kernels.scatter import slide

LOOP = "IDS, the slide loop"
WHOLE = "IDS, from codes and values"
LITERAL = "Algorithm 1, literally"
CENTRE = 60.0
_COLUMNS = ("region", "tier")
_SHARDS = 70


def work(bench: Bench) -> Findings:
    """All contenders in turns; what each costs a tuple that came."""
    window, rows = bench.size.of(quick=(20_000, 400_000), full=(100_000, 2_000_000))
    slides = bench.size.of(quick=200, full=2_000)
    events = bench.events(SUBJECTS["synthetic"], rows)
    drawn = bench.rng("shards").integers(0, _SHARDS, rows, dtype=np.int32)
    names = [f"s{k}" for k in range(_SHARDS)]
    shards = pa.DictionaryArray.from_arrays(pa.array(drawn), names)
    stream = Stream(events.append_column("shard", shards), "latency")
    many = stream.prepared([("shard", name) for name in names[:64]])
    full = Maintained(stream.prepared(PREDICATES[4]), window, 1, EVERYTHING)  # begins with a window
    works: list[tuple[str, int, int, Callable[[], object]]] = [
        *((label, rows, 4, one) for label, one in contenders(stream, window).items()),
        (f"{LOOP}, 64 live predicates", rows, 64, partial(_looped, many, window)),
        (f"{LOOP}, all that Algorithm 1 keeps", rows - window, 4, full.incremental(rows - window)),
        *(
            (f"Engine.ingest, {label}", n, 4, one)
            for label, n, one in _engines(events, window, slides)
        ),
    ]
    took = in_turns({label: one for label, _, _, one in works}, bench.size.repetitions)
    costs = {label: took[label].scaled(1e9 / tuples) for label, tuples, _, _ in works}
    return {
        "rq2_algorithm1": [
            {
                "contender": label,
                "window": window,
                "predicates": count,
                "rows": tuples,
                "ns_per_tuple": costs[label],
                "times_faster": costs[LITERAL].over(costs[label]),
            }
            for label, tuples, count, _ in works
        ]
    }


def contenders(stream: Stream, window: int) -> dict[str, Callable[[], Any]]:
    """The slide loop, Algorithm 1, and the slide loop with what precedes it; K = 4, all rows."""
    prepared = stream.prepared(PREDICATES[4])

    def whole() -> Words:
        scale = prepared.scale
        cut(stream.value, 2.0**-scale.exponent, scale.layout, prepared.digits)
        return _looped(prepared._replace(atoms=prepared.refinement.assign(stream.table)), window)

    columns = [stream.table.columns[name] for name in _COLUMNS]
    region, tier = (column.values.astype(np.int32, copy=False) for column in columns)
    named = [list(column.dictionary) for column in columns]  # type: ignore[arg-type]
    at = [(_COLUMNS.index(name), value) for name, value in PREDICATES[4]]
    tests = np.array([(c, named[c].index(value)) for c, value in at], np.int32)
    literal = partial(algorithm1.slide, region, tier, stream.value, window, tests, CENTRE)
    return {LOOP: partial(_looped, prepared, window), LITERAL: literal, WHOLE: whole}


def _looped(prepared: Prepared, window: int) -> Words:
    """The engine's own kernel over the whole stream; the summaries of the last window's atoms."""
    refinement, atoms, digits, scale = prepared
    summaries = np.zeros((refinement.atoms, scale.words), np.int64)
    slide(summaries, atoms, digits, window, prepared.centre, scale.layout)
    return summaries


def _engines(
    events: pa.Table, window: int, slides: int
) -> Iterator[tuple[str, int, Callable[[], None]]]:
    """(label, rows, work): a live engine with a full window that takes so many batches."""
    events = events.select([*_COLUMNS, "latency"])
    ones = [events.slice(window + i, 1) for i in range(slides)]
    given: dict[str, tuple[int, list[Any]]] = {
        "a dict of one row": (1, [one.to_pydict() for one in ones]),
        "an Arrow batch of one row": (1, ones),
        "an Arrow batch of 1,000 rows": (1_000, [events.slice(window, 1_000)] * 20),
    }
    conditions = {f"p{k}": equality(*test) for k, test in enumerate(PREDICATES[4])}
    for label, (rows, batches) in given.items():
        engine = registered(ids.Engine(ids.CountWindow(window), "latency"), conditions)
        engine.ingest(events.slice(0, window))
        yield label, rows * len(batches), partial(_ingest, engine, batches)


def _ingest(engine: ids.Engine, batches: list[Any]) -> None:
    for batch in batches:
        engine.ingest(batch)
