"""A slide of one row: Algorithm 1 taken literally, the slide loop of IDS, and the live engine.

*The slide loop* is given atoms and digits, which the engine finds once for each row that comes.
*From codes and values* both are counted in, as Algorithm 1 forms its signature in the loop.
``Engine.ingest`` is all that a user pays for a batch in Python's hands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import ids
from evaluation.baselines import algorithm1
from evaluation.bench import Bench, equality, registered
from evaluation.rq2.throughput import EVERYTHING, PREDICATES, Maintained, Prepared, Words
from evaluation.step import SUBJECTS, Findings, Row, in_turns
from ids.kernels.digits import cut
from ids.kernels.scatter import slide

LOOP = "IDS, the slide loop"
WHOLE = "IDS, from codes and values"
LITERAL = "Algorithm 1, literally"
CENTRE = 60.0
_COLUMNS = ("region", "tier")


def work(bench: Bench) -> Findings:
    """All contenders in turns; what each costs a tuple that came."""
    window, rows = bench.size.of(quick=(20_000, 400_000), full=(100_000, 2_000_000))
    slides = bench.size.of(quick=200, full=2_000)
    events, names = bench.events(SUBJECTS["synthetic"], rows), [f"s{k}" for k in range(70)]
    drawn = pa.array(bench.rng("shards").integers(0, len(names), rows, dtype=np.int32))
    sharded = events.append_column("shard", pa.DictionaryArray.from_arrays(drawn, names))
    shards = Prepared(sharded, [("shard", name) for name in names[:64]])
    whole = Maintained(Prepared(events, PREDICATES[4]), window, 1, EVERYTHING)
    works: list[tuple[str, int, int, Callable[[], object]]] = [
        *((label, rows, 4, one) for label, one in contenders(events, window).items()),
        (f"{LOOP}, 64 live predicates", rows, 64, partial(_looped, shards, window)),
        (f"{LOOP}, all that Algorithm 1 keeps", rows - window, 4, whole.incremental(rows - window)),
        *((label, count, 4, one) for label, count, one in _engines(events, window, slides)),
    ]
    took = in_turns({label: one for label, _, _, one in works}, bench.size.repetitions)
    costs = {label: took[label].scaled(1e9 / count) for label, count, _, _ in works}
    found: list[Row] = [
        {"contender": label, "window": window, "predicates": predicates, "rows": count,
         "ns_per_tuple": costs[label], "times_faster": costs[LITERAL].over(costs[label])}
        for label, count, predicates, _ in works
    ]  # fmt: skip
    return {"rq2_algorithm1": found}


def contenders(events: pa.Table, window: int) -> dict[str, Callable[[], Any]]:
    """The slide loop, Algorithm 1, and the slide loop with what precedes it; K = 4, all rows."""
    read = Prepared(events, PREDICATES[4])

    def whole() -> Words:
        read.atoms = read.refinement.assign(read.table)
        cut(read.value, 2.0**-read.scale.exponent, read.scale.layout, read.digits)
        return _looped(read, window)

    coded = {name: events[name].chunk(0) for name in _COLUMNS}
    region, tier = (column.indices.to_numpy() for column in coded.values())
    codes = [(_COLUMNS.index(c), coded[c].dictionary.index(v).as_py()) for c, v in PREDICATES[4]]
    given = read.value, window, np.array(codes, np.int32), CENTRE
    literal = partial(algorithm1.slide, region, tier, *given)
    return {LOOP: partial(_looped, read, window), LITERAL: literal, WHOLE: whole}


def _looped(read: Prepared, window: int) -> Words:
    """The engine's own kernel over the whole stream; the summaries of the last window's atoms."""
    summaries = np.zeros((read.refinement.atoms, read.scale.words), np.int64)
    slide(summaries, read.atoms, read.digits, window, read.centre, read.scale.layout)
    return summaries


def _engines(
    events: pa.Table, window: int, slides: int
) -> Iterator[tuple[str, int, Callable[[], object]]]:
    """(label, rows, work): a live engine with a full window that takes so many batches."""
    events = events.select([*_COLUMNS, "latency"])
    ones = [events.slice(window + i, 1) for i in range(slides)]
    conditions = {f"p{k}": equality(*test) for k, test in enumerate(PREDICATES[4])}
    for label, rows, batches in (
        ("a dict of one row", 1, [one.to_pydict() for one in ones]),
        ("an Arrow batch of one row", 1, ones),
        ("an Arrow batch of 1,000 rows", 1_000, [events.slice(window, 1_000)] * 20),
    ):
        engine = registered(ids.Engine(ids.CountWindow(window), "latency"), conditions)
        engine.ingest(events.slice(0, window))
        yield f"Engine.ingest, {label}", rows * len(batches), partial(_ingest, engine, batches)


def _ingest(engine: ids.Engine, batches: list[Any]) -> None:
    for batch in batches:
        engine.ingest(batch)
