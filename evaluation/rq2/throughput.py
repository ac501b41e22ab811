"""A window's summaries after every slide, by deltas and by a scan of all rows inside, compiled.

Both leave the same integers in a table: of each live atom, or also of each predicate and of all.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import product, starmap
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

import ids
from evaluation.baselines import loops
from evaluation.bench import Bench, equality, filled, registered
from evaluation.step import REGIONS, SUBJECTS, Findings, Row, in_turns
from ids.kernels import cut
from ids.kernels.compiler import compiled
from ids.kernels.slide import accumulate, add_summary, slide
from ids.model import Column, Comparison, Literal, Scale
from ids.predicates import Refinement
from ids.source import open_table
from ids.state import cut_column

Words = npt.NDArray[np.int64]
Test = tuple[str, str]  # an attribute and the value it must have

ATOMS = "atoms"
EVERYTHING = "atoms, marginals, window"
LOOP = "IDS, the slide loop"
WHOLE = "IDS, from codes and values"  # finds atoms and digits, too, which the loop is given
LITERAL = "Algorithm 1, literally"
CENTRE = 60.0
_COLUMNS = ("region", "tier")
_GAMES = {"AVG": 1, "VAR": 2}  # the degree of the moments that a game needs: (m, A) or (m, A, B)


def _exclusive(count: int) -> list[Test]:
    """Values of two attributes; all but six, which stand first, in the middle and last, unseen."""
    seen = [("region", region) for region in REGIONS]
    seen += [("endpoint", "/search"), ("endpoint", "/feed")]
    unseen = [("region", f"Edge-{k:02d}") for k in range(count - len(seen))]
    half = len(unseen) // 2
    return [*seen[:2], *unseen[:half], *seen[2:4], *unseen[half:], *seen[4:]]


PREDICATES: dict[int, list[Test]] = {  # with as many live atoms as the paper has: 2, 6, 12 and 12
    1: [("region", "EU-West")],
    4: [("region", "EU-West"), ("region", "US-East"), ("tier", "premium"), ("tier", "basic")],
    16: _exclusive(16),
    64: _exclusive(64),
}


def work(window: int, bench: Bench) -> Findings:
    """Every number of predicates, game, step and what is kept, at one window size."""
    tuples = bench.size.of(quick=400_000, full=1_000_000)
    # A scan costs as much at every slide: a few of them tell what all would take.
    most = bench.size.of(quick=1_000_000, full=4_000_000) // window
    events = bench.events(SUBJECTS["synthetic"], window + tuples)
    rows: list[Row] = []
    for count, game in product(PREDICATES, _GAMES):
        prepared = Prepared(events, PREDICATES[count], _GAMES[game])
        about: Row = {"predicates": count, "live": prepared.refinement.atoms, "game": game}
        for kept, step in product((ATOMS, EVERYTHING), (1, 10, 100)):
            slides = tuples // step
            both = Maintained(prepared, window, step, kept), slides, max(2, min(most, slides))
            rows.append({**about, **cell(*both, bench.size.repetitions)})
        bench.said(len(rows) / 48)
    return {"rq2_throughput": rows}


def cell(maintained: Maintained, slides: int, scans: int, repetitions: int) -> Row:
    """Both ways side by side, after making sure that they give the same summaries."""
    _, window, step, kept = maintained
    incremental, scan = maintained.incremental(slides), maintained.scan(scans)
    if not np.array_equal(incremental(), maintained.scan(1, before=slides - 1)()):
        raise AssertionError(f"slides and scan disagree: {window}, {step}")
    took = in_turns({"ids": incremental, "scan": scan}, repetitions)
    ours, scanned = took["ids"], took["scan"]
    return {
        "window": window, "step": step, "kept": kept, "slides": slides, "scans": scans,
        "ids_tuples_s": ours.rate(slides * step), "scan_tuples_s": scanned.rate(scans * step),
        "ids_slides_s": ours.rate(slides), "scan_slides_s": scanned.rate(scans),
        "speedup": scanned.scaled(1 / scans).over(ours.scaled(1 / slides)),
    }  # fmt: skip


def one_row(bench: Bench) -> Findings:
    """A slide of one row: Algorithm 1, the slide loop, the live engine; what each costs a tuple."""
    window, rows = bench.size.of(quick=(20_000, 400_000), full=(100_000, 2_000_000))
    slides = bench.size.of(quick=200, full=2_000)
    events, names = bench.events(SUBJECTS["synthetic"], rows), [f"s{k}" for k in range(70)]
    drawn = pa.array(bench.rng("shards").integers(0, len(names), rows, dtype=np.int32))
    sharded = events.append_column("shard", pa.DictionaryArray.from_arrays(drawn, names))
    shards = Prepared(sharded, [("shard", name) for name in names[:64]])
    whole = Maintained(Prepared(events, PREDICATES[4]), window, 1, EVERYTHING)
    plain = events.select([*_COLUMNS, "latency"])
    ones, thousand = [plain.slice(window + i, 1) for i in range(slides)], plain.slice(window, 1_000)
    given = (
        ("Engine.ingest, a dict of one row", slides, [one.to_pydict() for one in ones]),
        ("Engine.ingest, an Arrow batch of one row", slides, ones),
        ("Engine.ingest, an Arrow batch of 1,000 rows", 20_000, [thousand] * 20),
    )
    works: list[tuple[str, int, int, Callable[[], object]]] = [
        *((label, rows, 4, one) for label, one in contenders(events, window).items()),
        (f"{LOOP}, 64 live predicates", rows, 64, partial(_looped, shards, window)),
        (f"{LOOP}, all that Algorithm 1 keeps", rows - window, 4, whole.incremental(rows - window)),
        *((label, count, 4, _ingest(plain, window, some)) for label, count, some in given),
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
    tests = np.array(codes, np.int32)
    literal = partial(loops.algorithm1, region, tier, read.value, window, tests, CENTRE)
    return {LOOP: partial(_looped, read, window), LITERAL: literal, WHOLE: whole}


def _looped(read: Prepared, window: int) -> Words:
    """The engine's own kernel over the whole stream; the summaries of the last window's atoms."""
    summaries = np.zeros((read.refinement.atoms, read.scale.words), np.int64)
    slide(summaries, read.atoms, read.digits, window, read.centre, read.scale.layout)
    return summaries


def ready(conditions: Iterable[str], events: pa.Table) -> ids.Engine:
    """A live engine with p0, p1, … whose window is filled by these events."""
    engine = ids.Engine(ids.CountWindow(events.num_rows), "latency")
    registered(engine, {f"p{k}": condition for k, condition in enumerate(conditions)})
    return filled(engine, events, events.num_rows)


def _ingest(events: pa.Table, window: int, batches: list[Any]) -> Callable[[], object]:
    engine = ready(starmap(equality, PREDICATES[4]), events.slice(0, window))
    return lambda: [engine.ingest(batch) for batch in batches]  # type: ignore[func-returns-value]


class Prepared:
    """What the slide loop reads, found once for each row as in the engine.

    atoms   uint32[n]       each row's atom
    digits  int64[n, D]     each row's value, cut to keep every bit
    holds   bool[live, K]   which predicates hold on which atom
    """

    def __init__(self, events: pa.Table, tests: list[Test], degree: int = 2) -> None:
        self.table = open_table(events, "events").read(events.column_names)
        self.value: npt.NDArray[np.float64] = events["latency"].to_numpy()
        self.refinement = Refinement([Comparison("=", Column(c), Literal(v)) for c, v in tests])
        self.atoms = self.refinement.assign(self.table)
        self.holds = self.refinement.holds(np.arange(self.refinement.atoms))
        scale = Scale.fit_column(self.value, self.value.max(), self.value.min(), degree)
        assert scale is not None
        self.scale, self.digits = scale, cut_column(self.value, scale)
        self.centre = np.zeros(scale.digits, np.int64)  # no power above the second is kept


class Maintained(NamedTuple):
    """A window of so many rows that slides so many at a time, and what is kept of it."""

    prepared: Prepared
    window: int
    step: int
    kept: str

    def incremental(self, slides: int) -> Callable[[], Words]:
        """So many slides, from the first full window on; the table after the last of them."""
        # many rows at once are summed by atom before marginals and the window are touched
        kernel = _merged if self.kept == EVERYTHING and self.step > 1 else _by_row
        return self._work(kernel, self.scan(0)(), 0, slides)

    def scan(self, slides: int, before: int = 0) -> Callable[[], Words]:
        """The windows from slide ``before`` + 1 on, each scanned whole; of no slides, the first."""
        live, count = self.prepared.holds.shape
        rows = live + count + 1 if self.kept == EVERYTHING else live
        table = np.zeros((rows, self.prepared.scale.words), np.int64)
        return self._work(_scanned, table, (before + bool(slides)) * self.step, max(1, slides))

    def _work(self, kernel: Any, start: Words, first: int, slides: int) -> Callable[[], Words]:
        """The kernel over the stream from row ``first`` on, upon a table that begins as given."""
        read, beyond = self.prepared, None
        if self.kept == EVERYTHING:  # atom a is part of the table's rows[starts[a]:starts[a + 1]]
            live, count = read.holds.shape
            found = [[*(live + np.flatnonzero(held)), live + count] for held in read.holds]
            starts = np.cumsum([0, *map(len, found)]).astype(np.int64)
            beyond = starts, np.concatenate(found).astype(np.int64)
        stream = beyond, read.atoms[first:], read.digits[first:]
        moves = self.window, self.step, slides, read.centre, read.scale.layout

        def work() -> Words:
            table = start.copy()
            kernel(table, *stream, *moves)
            return table

        return work


@njit(inline="always")
def _add(table, beyond, atom, digits, first, step, centre, scratch, layout, sign):
    """Rows to their atoms, and to what these are part of; compiled for each sign, a constant."""
    for i in range(np.uint64(first), np.uint64(first + step)):
        a = np.uint64(atom[i])
        accumulate(table, a, digits[i], centre, scratch, layout, sign)
        if beyond is not None:
            starts, rows = beyond
            for p in range(np.uint64(starts[a]), np.uint64(starts[a + np.uint64(1)])):
                accumulate(table, np.uint64(rows[p]), digits[i], centre, scratch, layout, sign)


@compiled()
def _by_row(table, beyond, atom, digits, window, step, slides, centre, layout):
    """``ids.kernels.slide.slide`` for steps of any size."""
    scratch = np.zeros_like(centre)
    for t in range(slides):
        gone = t * step
        _add(table, beyond, atom, digits, gone, step, centre, scratch, layout, -1)
        _add(table, beyond, atom, digits, gone + window, step, centre, scratch, layout, 1)


@compiled()
def _merged(table, beyond, atom, digits, window, step, slides, centre, layout):
    """The rows of a slide go to a delta by atom, as in the engine, and that goes to the table."""
    scratch = np.zeros_like(centre)
    starts, rows = beyond
    live = len(starts) - 1
    delta = np.zeros((live, table.shape[1]), np.int64)
    touched = np.zeros(live, np.bool_)
    for t in range(slides):
        gone = t * step
        _add(delta, None, atom, digits, gone, step, centre, scratch, layout, -1)
        _add(delta, None, atom, digits, gone + window, step, centre, scratch, layout, 1)
        for first in (gone, gone + window):
            for i in range(first, first + step):
                touched[atom[i]] = True
        for a in range(live):
            if touched[a]:
                add_summary(table[a], delta[a], layout)
                for p in range(starts[a], starts[a + 1]):
                    add_summary(table[rows[p]], delta[a], layout)
                delta[a] = 0
                touched[a] = False


@compiled()
def _scanned(table, beyond, atom, digits, window, step, windows, centre, layout):
    """The table of the last window; returns a sum over all, so that none is left out as useless."""
    scratch = np.zeros_like(centre)
    found = 0
    for t in range(windows):
        table[:] = 0
        _add(table, None, atom, digits, t * step, window, centre, scratch, layout, 1)
        if beyond is not None:
            starts, rows = beyond
            for a in range(len(starts) - 1):
                for p in range(starts[a], starts[a + 1]):
                    add_summary(table[rows[p]], table[a], layout)
        found += table[0, 0] + table[0, 1]
    return found
