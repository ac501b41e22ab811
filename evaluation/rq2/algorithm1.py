"""Algorithm 1 taken literally, side by side with the slide loop of IDS.

Two ways to count. *The slide loop*: atoms and digits given, as in the engine, which finds both once
for each arriving row. *From codes and values*: signature and digits counted in, as Algorithm 1
forms its signature inside the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from evaluation.baselines import algorithm1
from evaluation.bench import Bench
from evaluation.repeated import in_turns
from evaluation.rq2.maintaining import EVERYTHING, Maintained, Words
from evaluation.rq2.stream import PREDICATES, Prepared, Stream, Test, equals
from evaluation.size import Size
from evaluation.step import Findings, Step
from evaluation.subject import SUBJECTS
from ids.kernels.scatter import slide
from ids.predicates.refinement import Refinement
from ids.state.scaling import decode, grid

__all__ = ["ALL", "LITERAL", "LOOP", "WHOLE", "contenders", "looped", "refuse_other_atoms", "steps"]

LOOP = "IDS, the slide loop"
ALL = "IDS, the slide loop, all that Algorithm 1 keeps"
WHOLE = "IDS, from codes and values"
LITERAL = "Algorithm 1, literally"

_CENTRE = 60.0
_COLUMNS = ("region", "tier")


def steps(size: Size) -> list[Step]:
    """One step: K = 4, a slide of one row."""
    return [
        Step(
            "rq2-algorithm1",
            "Algorithm 1, literally, and the slide loop",
            size.of(quick=1.5, full=5.0),
            _work,
            needs=("synthetic",),
        )
    ]


def _work(bench: Bench) -> Findings:
    window = bench.size.of(quick=20_000, full=100_000)
    rows = bench.size.of(quick=400_000, full=2_000_000)
    stream = Stream(bench.events(SUBJECTS["synthetic"], rows), "latency")
    tests = PREDICATES[4]
    work = contenders(stream, window, tests)
    prepared = stream.prepared([equals(test) for test in tests])
    refuse_other_atoms(prepared, work[LOOP](), work[LITERAL]())
    whole = Maintained(prepared, window, 1, EVERYTHING)
    work[ALL] = whole.incremental(rows - window)
    took = in_turns(work, bench.size.repetitions)
    # The last begins with a full window; the others fill it.
    tuples = {label: rows - window if label == ALL else rows for label in work}
    return {
        "rq2_algorithm1": [
            {
                "contender": label,
                "window": window,
                "predicates": len(tests),
                "rows": tuples[label],
                "ns_per_tuple": spent.scaled(1e9 / tuples[label]),
                "times_faster": took[LITERAL]
                .scaled(1 / rows)
                .over(spent.scaled(1 / tuples[label])),
            }
            for label, spent in took.items()
        ]
    }


def contenders(stream: Stream, window: int, tests: list[Test]) -> dict[str, Callable[[], object]]:
    """The slide loop, Algorithm 1, and the slide loop with what precedes it, over all rows."""
    predicates = [equals(test) for test in tests]
    region, tier = (stream.codes(name) for name in _COLUMNS)
    refinement, prepared = Refinement(predicates), stream.prepared(predicates)

    def whole() -> Words:
        return looped(prepared, window, stream.prepare(refinement, prepared))

    codes = np.array([[_COLUMNS.index(test[0]), stream.code(test)] for test in tests], np.int32)
    literal = partial(algorithm1.slide, region, tier, stream.value, window, codes, _CENTRE)
    return {LOOP: partial(looped, prepared, window), LITERAL: literal, WHOLE: whole}


def looped(prepared: Prepared, window: int, atoms: object = None) -> Words:
    """The engine's own kernel over the whole stream; the summaries of the last window's atoms."""
    summaries = np.zeros((prepared.live, prepared.scale.words), np.int64)
    given = prepared.atoms if atoms is None else atoms
    slide(summaries, given, prepared.digits, window, prepared.centre, prepared.scale.layout)
    return summaries


def refuse_other_atoms(prepared: Prepared, summaries: object, state: object) -> None:
    """Stop unless Algorithm 1 ended in the same atoms, up to its rounding."""
    assert isinstance(summaries, np.ndarray)
    assert isinstance(state, algorithm1.State)
    unit = 2.0 ** grid(prepared.scale)
    for words, holds in zip(summaries, prepared.holds, strict=True):
        count, (first, second) = decode(words, prepared.scale)
        total, squares = first * unit, second * unit**2
        exact = [count, total - _CENTRE * count]
        exact.append(squares - 2 * _CENTRE * total + _CENTRE**2 * count)
        signature = sum(1 << k for k, held in enumerate(holds) if held)
        np.testing.assert_allclose(state.atoms[signature], exact, rtol=1e-9, atol=1e-6)
