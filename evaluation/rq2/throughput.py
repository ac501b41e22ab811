"""A window of summaries that slides over a stream, and two compiled ways to have them each time.

*Incremental*: the rows that left are subtracted and those that came are added. *Per-window scan*:
all rows inside are added up afresh. Both leave the same integers in the same table: a row for each
live atom and, where all is kept that Algorithm 1 keeps, for each predicate and for the window.
"""

# mypy: disable-error-code="no-untyped-call,no-untyped-def,untyped-decorator,no-any-return"
from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from evaluation.bench import Bench
from evaluation.step import REGIONS, SUBJECTS, Findings, Row, in_turns
from ids.kernels.compiling import compiled
from ids.kernels.digits import accumulate
from ids.kernels.scatter import add_summary
from ids.model.expression import Column, Comparison, Literal
from ids.predicates.refinement import Refinement
from ids.source import open_table
from ids.state.scaling import cut_column, fit_column

Words = npt.NDArray[np.int64]
Test = tuple[str, str]  # an attribute and the value it must have

ATOMS = "atoms"
EVERYTHING = "atoms, marginals, window"
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
    ids, scanned = took["ids"], took["scan"]
    return {
        "window": window, "step": step, "kept": kept, "slides": slides, "scans": scans,
        "ids_tuples_s": ids.rate(slides * step), "scan_tuples_s": scanned.rate(scans * step),
        "ids_slides_s": ids.rate(slides), "scan_slides_s": scanned.rate(scans),
        "speedup": scanned.scaled(1 / scans).over(ids.scaled(1 / slides)),
    }  # fmt: skip


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
        scale = fit_column(self.value, self.value.max(), self.value.min(), degree)
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
    """``ids.kernels.scatter.slide`` for steps of any size."""
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
