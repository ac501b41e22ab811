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
from evaluation.rq2.slides import EVERYTHING, PREDICATES, Maintained, Prepared, Stream, Test, Words
from evaluation.step import SUBJECTS, Findings
from ids.kernels.digits import cut
from ids.kernels.scatter import slide
from ids.state.scaling import decode, grid

LOOP = "IDS, the slide loop"
SHARDS = "IDS, the slide loop, 64 live predicates"
ALL = "IDS, the slide loop, all that Algorithm 1 keeps"
WHOLE = "IDS, from codes and values"
LITERAL = "Algorithm 1, literally"

_CENTRE = 60.0
_COLUMNS = ("region", "tier")


def work(bench: Bench) -> Findings:
    """All contenders in turns; what each costs a tuple that came."""
    window, rows = bench.size.of(quick=(20_000, 400_000), full=(100_000, 2_000_000))
    events = bench.events(SUBJECTS["synthetic"], rows)
    shard = bench.rng("shards").integers(0, 70, rows, dtype=np.int32)
    names = [f"s{k}" for k in range(70)]
    shards = pa.DictionaryArray.from_arrays(pa.array(shard), names)
    stream = Stream(events.append_column("shard", shards), "latency")
    four, many = PREDICATES[4], [("shard", name) for name in names[:64]]
    work = contenders(stream, window, four)
    prepared = stream.prepared(four)
    refuse_other_atoms(prepared, work[LOOP](), work[LITERAL]())
    work[SHARDS] = partial(_looped, stream.prepared(many), window)
    work[ALL] = Maintained(prepared, window, 1, EVERYTHING).incremental(rows - window)
    # All that begin with a full window; the others fill it.
    tuples = dict.fromkeys(work, rows) | {ALL: rows - window}
    slides = bench.size.of(quick=200, full=2_000)
    for label, taken, ingest in _engines(events, window, four, slides):
        work[label], tuples[label] = ingest, taken
    took = in_turns(work, bench.size.repetitions)
    costs = {label: spent.scaled(1e9 / tuples[label]) for label, spent in took.items()}
    return {
        "rq2_algorithm1": [
            {
                "contender": label,
                "window": window,
                "predicates": len(many if label == SHARDS else four),
                "rows": tuples[label],
                "ns_per_tuple": cost,
                "times_faster": costs[LITERAL].over(cost),
            }
            for label, cost in costs.items()
        ]
    }


def contenders(stream: Stream, window: int, tests: list[Test]) -> dict[str, Callable[[], object]]:
    """The slide loop, Algorithm 1, and the slide loop with what precedes it, over all rows."""
    prepared = stream.prepared(tests)

    def whole() -> Words:
        scale = prepared.scale
        atoms = prepared.refinement.assign(stream.table)
        cut(stream.value, 2.0**-scale.exponent, scale.layout, prepared.digits)
        return _looped(prepared, window, atoms)

    columns = [stream.table.columns[name] for name in _COLUMNS]
    codes = [column.values.astype(np.int32, copy=False) for column in columns]
    named = [list(column.dictionary) for column in columns]  # type: ignore[arg-type]
    at = [(_COLUMNS.index(name), value) for name, value in tests]
    predicates = np.array([(c, named[c].index(value)) for c, value in at], np.int32)
    region, tier = codes
    literal = partial(algorithm1.slide, region, tier, stream.value, window, predicates, _CENTRE)
    return {LOOP: partial(_looped, prepared, window), LITERAL: literal, WHOLE: whole}


def refuse_other_atoms(prepared: Prepared, summaries: object, state: object) -> None:
    """Stop unless Algorithm 1 ended in the same atoms, up to its rounding."""
    assert isinstance(summaries, np.ndarray)
    assert isinstance(state, algorithm1.State)
    unit = 2.0 ** grid(prepared.scale)
    for words, holds in zip(summaries, prepared.holds, strict=True):
        count, (first, second) = decode(words, prepared.scale)
        total, squares = first * unit, second * unit**2
        squares += _CENTRE**2 * count - 2 * _CENTRE * total
        signature = sum(1 << k for k, held in enumerate(holds) if held)
        exact = [count, total - _CENTRE * count, squares]
        np.testing.assert_allclose(state.atoms[signature], exact, rtol=1e-9, atol=1e-6)


def _looped(prepared: Prepared, window: int, atoms: object = None) -> Words:
    """The engine's own kernel over the whole stream; the summaries of the last window's atoms."""
    summaries = np.zeros((prepared.refinement.atoms, prepared.scale.words), np.int64)
    given = prepared.atoms if atoms is None else atoms
    slide(summaries, given, prepared.digits, window, prepared.centre, prepared.scale.layout)
    return summaries


def _engines(
    events: pa.Table, window: int, tests: list[Test], slides: int
) -> Iterator[tuple[str, int, Callable[[], None]]]:
    """(label, rows, work): a live engine with a full window that takes so many batches."""
    events = events.select([*_COLUMNS, "latency"])
    ones = [events.slice(window + i, 1) for i in range(slides)]
    works: dict[str, list[Any]] = {
        "a dict of one row": [one.to_pydict() for one in ones],
        "an Arrow batch of one row": ones,
        "an Arrow batch of 1,000 rows": [events.slice(window, 1_000)] * 20,
    }
    conditions = {f"p{k}": equality(*test) for k, test in enumerate(tests)}
    for label, batches in works.items():
        engine = registered(ids.Engine(ids.CountWindow(window), "latency"), conditions)
        engine.ingest(events.slice(0, window))
        rows = sum(batch.num_rows if isinstance(batch, pa.Table) else 1 for batch in batches)
        yield f"Engine.ingest, {label}", rows, partial(_ingest, engine, batches)


def _ingest(engine: ids.Engine, batches: list[Any]) -> None:
    for batch in batches:
        engine.ingest(batch)
