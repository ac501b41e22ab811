"""How far K predicates divide a window: live atoms, what they cost, and what their limit does."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import fsum, isclose
from statistics import median
from time import perf_counter

import numpy as np

import ids
from evaluation.bench import Bench
from evaluation.beyond.fanout.schemas import SCHEMAS, Schema, Stream, signatures
from evaluation.engines import registered
from evaluation.repeated import Repeated, in_turns
from evaluation.size import Size
from evaluation.step import Findings, Row, Step
from ids.kernels.scatter import slide
from ids.state.scaling import cut_column, fit_column

__all__ = ["Divided", "steps"]

_PREDICATES = (8, 16, 32, 64)
_BATCH = 1_000
_SLIDES = 4  # in one repetition
_ASKED = 5  # times in one repetition
_COMBINATION = "p0 AND NOT p1"


def steps(size: Size) -> list[Step]:
    """One step for each K, over all schemas, and one that walks up to the limit and past it."""
    found = [
        Step(
            f"beyond-fanout-{predicates}",
            f"atoms of {predicates} predicates, five schemas",
            size.of(quick=0.4, full=2.0),
            partial(_by_schema, predicates=predicates),
        )
        for predicates in _PREDICATES
    ]
    return [
        *found,
        Step(
            "beyond-fanout-limit",
            "atoms of Booleans up to their limit and past it",
            size.of(quick=0.4, full=2.0),
            _to_the_limit,
        ),
    ]


def _window(size: Size) -> int:
    return size.of(quick=10_000, full=100_000)


def _limit(size: Size) -> int:
    """The engine's own, or for a small window one that it can reach."""
    return size.of(quick=2**12, full=2**16)


def _by_schema(bench: Bench, predicates: int) -> Findings:
    divided = [
        Divided(bench, schema, predicates, bench.size.repetitions) for schema in SCHEMAS.values()
    ]
    return {"beyond_fanout": _rows(bench, divided)}


def _to_the_limit(bench: Bench) -> Findings:
    """Booleans one by one: the first K that gives the atoms up, those before it and one beyond."""
    first = bench.size.of(quick=11, full=15)
    every = [first, first + 1, first + 2, first + 4]
    schema = SCHEMAS["independent"]
    divided = [Divided(bench, schema, k, bench.size.repetitions) for k in every]
    return {"beyond_fanout_limit": _rows(bench, divided)}


def _rows(bench: Bench, divided: list[Divided]) -> list[Row]:
    """Everything timed side by side, then checked."""
    engine = in_turns({str(n): one.slide for n, one in enumerate(divided)}, bench.size.repetitions)
    bench.said(0.6)
    kernel = in_turns(
        {str(n): one.slide_atoms for n, one in enumerate(divided) if one.refined},
        bench.size.repetitions,
    )
    bench.said(0.8)
    found: list[Row] = []
    for n, one in enumerate(divided):
        asked = one.asked()
        one.check()
        loop = kernel.get(str(n))
        found.append(
            {
                **one.facts(),
                "slide_ns": engine[str(n)].scaled(1e9 / (_SLIDES * _BATCH)),
                "kernel_ns": None if loop is None else loop.scaled(1e9 / one.looped),
                "marginal_us": asked["p0"],
                "combination_us": asked[_COMBINATION],
                "combination_by": one.engine.attribute("AVG", _COMBINATION).mechanism,
            }
        )
        bench.said(0.8 + 0.2 * (n + 1) / len(divided))
    return found


class Divided:
    """One schema's engine, its window full, with more of its stream to slide over."""

    def __init__(self, bench: Bench, schema: Schema, predicates: int, repetitions: int) -> None:
        self.schema = schema
        self.predicates = predicates
        self.window = _window(bench.size)
        self.limit = _limit(bench.size)
        self._repetitions = repetitions
        rows = self.window + (repetitions + 1) * (_SLIDES * _BATCH + _ASKED)
        self.stream = schema.make(bench.rng(f"{schema.key} {predicates}"), rows, predicates)
        self.engine = _engine(self.window, self.stream.conditions, self.limit)
        self.engine.ingest(self.stream.table.slice(0, self.window))
        self.met = self.window
        self.slide_atoms, self.looped = _loop(self.stream)

    def _ingest(self, rows: int) -> None:
        self.engine.ingest(self.stream.table.slice(self.met, rows))
        self.met += rows

    @property
    def refined(self) -> bool:
        """Whether there are atoms still."""
        return self.engine.atoms > 0

    def slide(self) -> None:
        """Let some batches come, and as many rows go."""
        for _ in range(_SLIDES):
            self._ingest(_BATCH)

    def asked(self) -> dict[str, Repeated]:
        """Microseconds of a registered predicate and of a combination, each just after a slide:
        a window that stands still would be asked for what it has said already.
        """
        spent: dict[str, list[float]] = {"p0": [], _COMBINATION: []}
        for _ in range(self._repetitions + 1):
            once = [self._ask_after_a_slide() for _ in range(_ASKED)]
            for condition, times in spent.items():
                times.append(median(one[condition] for one in once))
        return {condition: Repeated.of(times[1:]) for condition, times in spent.items()}

    def _ask_after_a_slide(self) -> dict[str, float]:
        self._ingest(1)
        spent = {}
        for condition in ("p0", _COMBINATION):
            start = perf_counter()
            self.engine.attribute("AVG", condition)
            spent[condition] = 1e6 * (perf_counter() - start)
        return spent

    def check(self) -> None:
        """Atoms are counted from the truths, sums added up with ``fsum``, and another engine that
        knows nothing but the condition must give the same bits.
        """
        inside = slice(self.met - self.window, self.met)
        truths, y = self.stream.truths[inside], self.stream.table["y"].to_numpy()[inside]
        live = self.atoms
        if self.engine.atoms != (live if self.refined else 0):
            raise AssertionError(f"{self.schema.key}: {self.engine.atoms} atoms, and {live} live")
        both = truths[:, 0] & ~truths[:, 1]
        for condition, members in (("p0", truths[:, 0]), (_COMBINATION, both)):
            found = self.engine.attribute("SUM", condition).value
            if found is None or not isclose(found, fsum(y[members]), rel_tol=1e-12):
                raise AssertionError(f"{self.schema.key}: SUM of {condition} is {found}")
        first = {name: self.stream.conditions[name] for name in ("p0", "p1")}
        other = _engine(self.window, first, self.limit)
        other.ingest(self.stream.table.slice(inside.start, self.window))
        for condition in ("p0", _COMBINATION):
            pair = [one.attribute("AVG", condition).value for one in (self.engine, other)]
            if pair[0] != pair[1]:
                raise AssertionError(f"{self.schema.key}: AVG of {condition} is {pair}")

    @property
    def atoms(self) -> int:
        """The signatures that a row inside has, counted without the engine."""
        return len(np.unique(signatures(self.stream.truths[self.met - self.window : self.met])))

    def facts(self) -> dict[str, str | int | float | bool]:
        """What is not a time."""
        held = self.engine.memory()
        return {
            "schema": self.schema.key,
            "label": self.schema.label,
            "predicates": self.predicates,
            "window": self.window,
            "limit": self.limit,
            "nominal": 2.0**self.predicates,
            "bound": self.schema.bound(self.predicates),
            "signatures": self.atoms,
            "refined": self.refined,
            "bytes": held.summaries + held.atoms,
            "retained": held.retained,
        }


def _engine(window: int, conditions: dict[str, str], limit: int) -> ids.Engine:
    return registered(ids.Engine(ids.CountWindow(window), "y", atom_limit=limit), conditions)


def _loop(stream: Stream) -> tuple[Callable[[], None], int]:
    """The slide loop alone, one row at a time over the whole stream, and how many rows that is.

    Its window is an eighth of them: at nearly every step one row comes and one goes.
    """
    y = stream.table["y"].to_numpy()
    atoms = signatures(stream.truths)
    scale = fit_column(y, float(y.max()), float(y.min()), 2)
    assert scale is not None
    digits, centre = cut_column(y, scale), np.zeros(scale.digits, np.int64)
    summaries = np.zeros((int(atoms.max()) + 1, scale.words), np.int64)

    def work() -> None:
        summaries.fill(0)
        slide(summaries, atoms, digits, len(y) // 8, centre, scale.layout)

    return work, len(y)
